"""The service of interface.md without a network: a request goes in, an answer comes out."""

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from tap_audit_events.sandbox import access, effects
from tap_audit_events.sandbox.answers import Answer, RefusedError, refusal
from tap_audit_events.sandbox.cursors import Cursors
from tap_audit_events.sandbox.events import Event
from tap_audit_events.sandbox.faults import Fault
from tap_audit_events.sandbox.identity import ACCESS_TOKEN, ORGANIZATION_ID
from tap_audit_events.sandbox.limits import RateLimit
from tap_audit_events.sandbox.live import LiveEvents
from tap_audit_events.sandbox.pages import Pages
from tap_audit_events.sandbox.plan import FaultPlan
from tap_audit_events.sandbox.query import read_parameters, read_query
from tap_audit_events.sandbox.seen import SeenRequest
from tap_audit_events.sandbox.store import Store


class Service:
    """Answers requests from the events it holds, and notes what it was asked.

    Attributes:
        requests: Every request so far.
        violations: What clients did that the interface forbids, one sentence each. A refusal
            that a correct client may meet, such as for a wrong token, is none.
    """

    def __init__(
        self,
        *,
        organization_id: str = ORGANIZATION_ID,
        access_token: str = ACCESS_TOKEN,
        faults: Iterable[Fault | str] = (),
        rate_limit: float | None = None,
        page_latency_seconds: float = 0.0,
        cursor_lifetime_requests: int | None = None,
        live_events_per_second: float = 0.0,
        live_from: datetime | None = None,
        seed: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Hold no events yet.

        Args:
            organization_id: The organization the token's owner administers.
            access_token: The only token that is taken.
            faults: What goes wrong and when, also in the text form of `Fault.parse`.
            rate_limit: Requests a second, beyond which the answer is 429 with `Retry-After`.
            page_latency_seconds: How long each answer takes at least.
            cursor_lifetime_requests: After how many further requests a cursor has expired.
            live_events_per_second: How many events are added while time goes by.
            live_from: The time after which these follow, the present with None.
            seed: What these are drawn from.
            clock: The seconds that go by, for the rate limit and the live events.
        """
        self.organization_id = organization_id
        self.access_token = access_token
        self.requests: list[SeenRequest] = []
        self.violations: list[str] = []
        self._lock = threading.Lock()
        self._clock = clock
        self._latency_seconds = page_latency_seconds
        self._rate_limit = RateLimit(rate_limit) if rate_limit is not None else None
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
        """Add events; with `visible_from_request`, requests before that number miss them.

        Raises ValueError for an `occurredAt` that is no instant, and for an event with the
        instant and the id of another.
        """
        with self._lock:
            self._store.add(events, visible_from_request)

    def add_raw(self, texts: Iterable[bytes], visible_from_request: int = 0) -> None:
        """Add events as JSON texts, which are served byte for byte; else as `add`."""
        with self._lock:
            self._store.add_raw(texts, visible_from_request)

    def add_late(self, events: Iterable[Event]) -> None:
        """Add events that appear behind the newest one, right after that was served."""
        with self._lock:
            self._store.add_late(events)

    def add_faults(self, faults: Iterable[Fault | str]) -> None:
        """Add faults; the requests they name are numbered from the service's very first."""
        with self._lock:
            for fault in faults:
                parsed = Fault.parse(fault) if isinstance(fault, str) else fault
                self._plan.add(parsed, requests_before=len(self.requests))

    def answer(
        self, method: str, path: str, query_string: bytes, headers: Mapping[str, str]
    ) -> Answer:
        """Answer a request and note it; safe to call from several threads."""
        with self._lock:
            seen, unreadable = self._see(method, path, query_string, headers)
            self._store.reveal(seen.number)
            self._store.add(self._live.due(seen.seconds))
            faults = self._plan.striking(seen)
            answer = effects.on_the_wire(faults, self._decide(seen, unreadable, faults))
            self.requests.append(replace(seen, status=answer.status))
        return replace(answer, wait_seconds=answer.wait_seconds + self._latency_seconds)

    def _see(
        self, method: str, path: str, query_string: bytes, headers: Mapping[str, str]
    ) -> tuple[SeenRequest, RefusedError | None]:
        number = len(self.requests) + 1
        lowered = {name.lower(): value for name, value in headers.items()}
        parameters: dict[str, str] = {}
        unreadable = None
        try:
            parameters = read_parameters(query_string)
        except RefusedError as refused:
            unreadable = refused
        return SeenRequest(number, method, path, parameters, lowered, self._clock()), unreadable

    def _decide(
        self, seen: SeenRequest, unreadable: RefusedError | None, faults: Sequence[Fault]
    ) -> Answer:
        """The answer of a fault or of the service; violations are noted in either case."""
        instead = effects.answer_instead(faults)
        try:
            self._admit(seen)
            if unreadable is not None:
                raise unreadable
            query = read_query(seen.params)
            issued = self._pages.issued(seen, query, faults)
            if issued is not None and issued.filters != seen.filters:
                self._note(seen, "other parameters than on the page before (4.1, rule 4)")
            return instead or self._pages.answer(seen, query, issued, faults)
        except RefusedError as refused:
            if refused.violation:
                self._note(seen, str(refused))
            return instead or refused.answer

    def _admit(self, seen: SeenRequest) -> None:
        organization_id = access.check_operation(seen.method, seen.path)
        access.check_no_body(seen.headers)
        access.check_token(seen.headers, self.access_token)
        wait_seconds = self._rate_limit.seconds_to_wait(seen.seconds) if self._rate_limit else 0
        if wait_seconds:
            retry_after = (("retry-after", str(math.ceil(wait_seconds))),)
            raise refusal(429, "tooManyRequests", "too many requests", headers=retry_after)
        access.check_organization(organization_id, self.organization_id)

    def _note(self, seen: SeenRequest, violation: str) -> None:
        self.violations.append(f"request {seen.number}: {violation}")
