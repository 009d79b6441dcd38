"""The network between a simulated run and its service, with its faults."""

import json
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from urllib3.exceptions import ProtocolError

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


class Network(BaseAdapter):
    """Carries requests to the service without a socket, with faults on the way.

    Attributes:
        count: requests so far.
        cursors_ignored: how many of them had a cursor that a gateway ignored.
        is_over: whether the run has ended; requests of its remaining threads fail then.
        impatient: the most requests that were sent during the wait after one 429.
        most_in_flight: the most requests at a time.
    """

    def __init__(self, world: World, run: PlannedRun, met: Callable[[str], None]) -> None:
        super().__init__()
        self.count = self.cursors_ignored = self.impatient = self.most_in_flight = 0
        self.is_over = False
        self._world = world
        self._run = run
        self._met = met
        self._most = 600 + 12 * len(world.history.happenings)
        self._refused_until = 0.0
        self._came_early = 0
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
        if self._world.seconds < self._refused_until - 1e-6:
            self._came_early += 1
            self.impatient = max(self.impatient, self._came_early)
        self._world.pass_time(self._world.random.choice([0.0, 0.01, 1.5]))
        if self.count <= self._run.early_429:
            return self._refused(EARLY_RETRY_AFTER_SECONDS)
        return self._respond(request, self._fault())

    def _fault(self) -> str | None:
        if self._world.random.random() >= self._run.fault_share:
            return None
        fault = self._world.random.choice([*TRANSPORT_FAULTS, *SERVICE_FAULTS])
        if fault == "expire" and self._world.history.displaced_places is not None:
            return "short"  # docs/delivery.md: a refused cursor may miss an event out of order
        return fault

    def _respond(self, request: requests.PreparedRequest, fault: str | None) -> requests.Response:
        parts = urlsplit(request.url or "")
        run, active = self._run, self._world.active
        active.clear()
        active |= {fault} if fault in SERVICE_FAULTS else set()
        active |= {"empty-cursor"} if run.empty_cursor else set()
        if run.ignores_cursor and "cursor=" in parts.query:
            active |= {"ignore-cursor"}
        response = self._world.service.respond(
            "GET", parts.path, parts.query.encode(), dict(request.headers)
        )
        body = response.body
        self.cursors_ignored += response.status == 200 and "ignore-cursor" in active
        if run.shuffles and response.status == 200:
            body = self._shuffled(body)
        arrived = a_response(response.status, body, dict(response.headers))
        return arrived if fault in (None, *SERVICE_FAULTS) else self._failed(fault, arrived)

    def _shuffled(self, body: bytes) -> bytes:
        page = json.loads(body)
        self._world.random.shuffle(page["auditEvents"])
        return json.dumps(page).encode()

    def _failed(self, fault: str | None, response: requests.Response) -> requests.Response:
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
            return self._refused(THREADED_RETRY_AFTER_SECONDS if is_threaded else 3)
        return a_response(int((fault or "").removeprefix("status ")), b"{}", {})

    def _refused(self, seconds: int) -> requests.Response:
        self._refused_until = self._world.seconds + seconds
        self._came_early = 0
        return a_response(429, b"{}", {"Retry-After": str(seconds)})


def new_session(network: Network) -> requests.Session:
    """A session that reaches only the simulated service."""
    session = requests.Session()
    session.trust_env = False
    session.mount("https://", network)
    return session
