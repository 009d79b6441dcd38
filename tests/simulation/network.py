"""The network between a simulated run and its services, with its faults."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from requests.adapters import BaseAdapter
from urllib3.exceptions import ProtocolError

from tap_audit_events.events.instants import Instant, parse_instant
from tests.builders import a_response
from tests.simulation.histories import (
    EARLY_RETRY_AFTER_SECONDS,
    SERVICE_FAULTS,
    TRANSPORT_FAULTS,
    PlannedRun,
)
from tests.simulation.world import World

THREADED_RETRY_AFTER_SECONDS = 30
"""A longer time than requests that are in flight together take."""


@dataclass
class Traffic:
    """The requests for one organization in one run.

    Attributes:
        range_end: the end of the range that the first of them requested.
        came_at: when that request was sent, in seconds.
        count: requests so far.
        cursors_ignored: how many of them had a cursor that a gateway ignored.
        impatient: the most requests with its token that were sent during the wait after one 429.
    """

    range_end: Instant | None = None
    came_at: float = 0.0
    count: int = 0
    cursors_ignored: int = 0
    impatient: int = 0


@dataclass
class Limit:
    """The wait of a token after a 429, and how many requests were sent during it."""

    until: float = 0.0
    came_early: int = 0


class Network(BaseAdapter):
    """Carries requests to the services without a socket, with faults on the way.

    Attributes:
        traffic: the requests for each organization.
        count: requests so far.
        is_over: whether the run has ended; requests of its remaining threads fail then.
        most_in_flight: the most requests at a time.
    """

    def __init__(self, world: World, run: PlannedRun, met: Callable[[str], None]) -> None:
        super().__init__()
        self.traffic = {each: Traffic() for each in run.organizations}
        self.count = self.most_in_flight = 0
        self.is_over = False
        self._world = world
        self._run = run
        self._met = met
        self._most = sum(600 + 12 * len(each) for each in world.history.happenings.values())
        self._limits = {each: Limit() for each in world.history.tokens.values()}
        self._in_flight: set[int] = set()

    def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:  # type: ignore[override]
        token = threading.get_ident()
        self._in_flight.add(token)
        self.most_in_flight = max(self.most_in_flight, len(self._in_flight))
        try:
            with self._world.lock:
                return self._carry(request)
        finally:
            self._in_flight.discard(token)

    def close(self) -> None:
        """Nothing is open."""

    def _carry(self, request: requests.PreparedRequest) -> requests.Response:
        if self.is_over:
            raise requests.ConnectionError("the run is over")
        self.count += 1
        assert self.count <= self._most, "the run does not end"
        self._met("request")
        parts = urlsplit(request.url or "")
        organization_id = parts.path.split("/")[3]
        assert organization_id in self.traffic, f"{organization_id} is not configured"
        token, traffic = self._world.history.tokens[organization_id], self.traffic[organization_id]
        sent = request.headers["Authorization"]
        assert sent == f"Bearer {token}", f"another organization's token: {organization_id}"
        self._count(traffic, self._limits[token], parts.query)
        self._world.pass_time(self._world.random.choice([0.0, 0.01, 1.5]))
        if self.count <= self._run.early_429:
            return self._refused(self._limits[token], EARLY_RETRY_AFTER_SECONDS)
        fault = self._trouble(organization_id) or self._fault()
        return self._respond(request, organization_id, fault)

    def _count(self, traffic: Traffic, limit: Limit, query: str) -> None:
        traffic.count += 1
        if traffic.range_end is None:
            traffic.range_end = parse_instant(parse_qs(query)["endTime"][0])
            traffic.came_at = self._world.seconds
        if self._world.seconds < limit.until - 1e-6:
            limit.came_early += 1
            traffic.impatient = max(traffic.impatient, limit.came_early)

    def _trouble(self, organization_id: str) -> str | None:
        trouble, count = (
            self._run.troubles.get(organization_id),
            self.traffic[organization_id].count,
        )
        if trouble is None or count <= trouble.after:
            return None
        if trouble.kind == "early 429":
            return "status 429" if count <= trouble.after + 2 else None
        return "ignore-cursor" if trouble.kind == "cursor" else f"status {trouble.kind}"

    def _fault(self) -> str | None:
        if self._world.random.random() >= self._run.fault_share:
            return None
        fault = self._world.random.choice([*TRANSPORT_FAULTS, *SERVICE_FAULTS])
        if fault == "expire" and self._world.history.displaced_places is not None:
            return "short"  # docs/delivery.md: a refused cursor may miss an event out of order
        return fault

    def _respond(
        self, request: requests.PreparedRequest, organization_id: str, fault: str | None
    ) -> requests.Response:
        parts = urlsplit(request.url or "")
        run, organization = self._run, self._world.organizations[organization_id]
        ignores_cursor = "cursor=" in parts.query and (
            run.ignores_cursor or fault == "ignore-cursor"
        )
        active = {fault} if fault in SERVICE_FAULTS else set()
        active |= {"empty-cursor"} if run.empty_cursor else set()
        active |= {"ignore-cursor"} if ignores_cursor else set()
        organization.active = active
        response = organization.service.respond(
            "GET", parts.path, parts.query.encode(), dict(request.headers)
        )
        body = response.body
        self.traffic[organization_id].cursors_ignored += response.status == 200 and ignores_cursor
        if run.shuffles and response.status == 200:
            body = self._shuffled(body)
        arrived = a_response(response.status, body, dict(response.headers))
        if fault in (None, "ignore-cursor", *SERVICE_FAULTS):
            return arrived
        return self._failed(fault, arrived, organization_id)

    def _shuffled(self, body: bytes) -> bytes:
        page = json.loads(body)
        self._world.random.shuffle(page["auditEvents"])
        return json.dumps(page).encode()

    def _failed(
        self, fault: str | None, response: requests.Response, organization_id: str
    ) -> requests.Response:
        if fault == "reset":
            raise requests.ConnectionError("reset")
        if fault == "timeout":
            raise requests.ReadTimeout("timeout")
        if fault == "cut":
            raise ProtocolError("cut")
        if fault == "not JSON":
            return a_response(200, response.raw.read()[:-1] or b"<html>", {})
        if fault == "status 429":
            is_threaded = self._world.history.uses_threads
            limit = self._limits[self._world.history.tokens[organization_id]]
            return self._refused(limit, THREADED_RETRY_AFTER_SECONDS if is_threaded else 3)
        return a_response(int((fault or "").removeprefix("status ")), b"{}", {})

    def _refused(self, limit: Limit, seconds: int) -> requests.Response:
        limit.until, limit.came_early = self._world.seconds + seconds, 0
        return a_response(429, b"{}", {"Retry-After": str(seconds)})
