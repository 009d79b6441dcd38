"""The service of interface.md without a network: it creates a response to each request."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from tap_audit_events.sandbox.data.events import ORGANIZATION_ID, LiveEvents, generated
from tap_audit_events.sandbox.data.generator import Event
from tap_audit_events.sandbox.data.store import Store, row_of, row_of_text
from tap_audit_events.sandbox.effects import as_sent, replacement
from tap_audit_events.sandbox.faults import ActiveFaults, Fault, FaultPlan
from tap_audit_events.sandbox.pages import Cursors, Pages
from tap_audit_events.sandbox.request import (
    ReceivedRequest,
    check_organization,
    check_request,
    read_parameters,
    read_query,
)
from tap_audit_events.sandbox.response import RefusedError, Response

ACCESS_TOKEN: Final = "sandbox_pat_opens-nothing-but-the-sandbox"  # noqa: S105
"""The access token, unless another one is set."""


class Service:
    """Responds to requests with the events it holds, and records the requests.

    Attributes:
        requests: Every request so far.
        violations: What clients did that the interface forbids, one sentence each. A refusal
            that a correct client may receive, such as for a wrong token, is not among them.
    """

    def __init__(
        self,
        *,
        organization_id: str = ORGANIZATION_ID,
        access_token: str = ACCESS_TOKEN,
        faults: Iterable[Fault | str] = (),
        rate_limit: "float | RateLimit | None" = None,
        page_latency_seconds: float = 0.0,
        cursor_lifetime_requests: int | None = None,
        live_events_per_second: float = 0.0,
        live_from: datetime | None = None,
        seed: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a service without events.

        Faults may have the text form of `Fault.parse`. Beyond `rate_limit` requests per second, or
        beyond a limit that several services with the same token share, the response is 429 with
        `Retry-After`. Live events happen after `live_from`, None for now, and depend on the seed.
        The clock gives the time in seconds, for the rate limit and the live events.
        """
        self.organization_id = organization_id
        self.access_token = access_token
        self.requests: list[ReceivedRequest] = []
        self.violations: list[str] = []
        self._lock = threading.Lock()
        self._clock = clock
        self._latency_seconds = page_latency_seconds
        if isinstance(rate_limit, float | int):
            rate_limit = RateLimit(rate_limit)
        self._rate_limit = rate_limit
        self._live = LiveEvents(live_events_per_second, live_from, organization_id, seed, clock())
        self._store = Store()
        self._pages = Pages(self._store, Cursors(cursor_lifetime_requests))
        self._plan = FaultPlan()
        self.add_faults(faults)

    @property
    def event_count(self) -> int:
        """How many events are visible now."""
        with self._lock:
            return len(self._store)

    def add(self, events: Iterable[Event], visible_from_request: int = 0) -> None:
        """Add events; with `visible_from_request`, they are hidden from requests before that one.

        Raises ValueError for an `occurredAt` that is not an instant, and for an event with the
        instant and the id of another.
        """
        with self._lock:
            self._store.add(map(row_of, events), visible_from_request)

    def add_raw(self, texts: Iterable[bytes], visible_from_request: int = 0) -> None:
        """Add events as JSON texts, which are served byte for byte; else as `add`."""
        with self._lock:
            self._store.add(map(row_of_text, texts), visible_from_request)

    def add_generated(self, count: int, days: float, seed: int | str, until: datetime) -> None:
        """Add the events of `generate`, of which each is rendered only when it is served.

        A million of them take a few seconds and some 150 MB.
        """
        with self._lock:
            self._store.add_sorted(*generated(count, days, seed, until, self.organization_id))

    def add_late(self, events: Iterable[Event]) -> None:
        """Add events that become visible right after the newest event was served."""
        with self._lock:
            self._store.add_late(map(row_of, events))

    def add_faults(self, faults: Iterable[Fault | str]) -> None:
        """Add faults; without `only`, requests are numbered from the service's very first."""
        with self._lock:
            for fault in faults:
                parsed = Fault.parse(fault) if isinstance(fault, str) else fault
                self._plan.add(parsed, requests_before=len(self.requests))

    def respond(
        self,
        method: str,
        path: str,
        query_string: bytes,
        headers: Mapping[str, str],
        reused: bool = False,
    ) -> Response:
        """Respond to a request and record it; safe to call from several threads.

        `reused` says whether the connection had carried a request before.
        """
        with self._lock:
            lowered = {name.lower(): value for name, value in headers.items()}
            parameters, unreadable = _parameters(query_string)
            number = len(self.requests) + 1
            request = ReceivedRequest(
                number, method, path, parameters, lowered, self._clock(), reused
            )
            self._store.reveal(number)
            self._store.add(self._live.due(request.seconds))
            faults = self._plan.concerning(request)
            response = as_sent(faults, self._decide(request, unreadable, faults))
            self.requests.append(replace(request, status=response.status))
        return replace(response, wait_seconds=response.wait_seconds + self._latency_seconds)

    def _decide(
        self, request: ReceivedRequest, unreadable: RefusedError | None, faults: ActiveFaults
    ) -> Response:
        """The response of a fault or of the service; violations are recorded in either case."""
        instead = replacement(faults)
        try:
            self._admit(request)
            if unreadable is not None:
                raise unreadable
            query = read_query(request.params)
            issued = self._pages.issued_cursor(request, query, faults)
            if issued is not None and issued.filters != request.filters:
                self._record(request, "other parameters than on the page before (4.1, rule 4)")
            return instead or self._pages.respond(request, query, issued, faults)
        except RefusedError as refused:
            if refused.violation:
                self._record(request, str(refused))
            return instead or refused.response

    def _admit(self, request: ReceivedRequest) -> None:
        organization_id = check_request(request, self.access_token)
        wait_seconds = self._rate_limit.seconds_to_wait(request.seconds) if self._rate_limit else 0
        if wait_seconds:
            retry_after = (("retry-after", str(math.ceil(wait_seconds))),)
            raise RefusedError(429, "tooManyRequests", "too many requests", headers=retry_after)
        check_organization(organization_id, self.organization_id)

    def _record(self, request: ReceivedRequest, violation: str) -> None:
        self.violations.append(f"request {request.number}: {violation}")


class RateLimit:
    """Admits requests at a rate: for 3, 3 in any second; for 2.5, 2 in 0.8 s; for 0.5, 1 in 2 s."""

    def __init__(self, requests_per_second: float) -> None:
        self._requests = max(1, int(requests_per_second))
        self._window_seconds = self._requests / requests_per_second
        self._admitted: deque[float] = deque(maxlen=self._requests)

    def seconds_to_wait(self, now: float) -> float:
        """Admit a request and return 0, or return after how many seconds one can be admitted."""
        if len(self._admitted) == self._requests:
            free_at = self._admitted[0] + self._window_seconds
            if now < free_at:
                return free_at - now
        self._admitted.append(now)
        return 0.0


def _parameters(query_string: bytes) -> tuple[dict[str, str], RefusedError | None]:
    """The parameters, or none and why they cannot be read."""
    try:
        return read_parameters(query_string), None
    except RefusedError as refused:
        return {}, refused
