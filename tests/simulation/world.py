"""The world around a simulated run: clock, service, pipe and target; nothing waits for real."""

import gzip
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from math import isinf
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from singer_sdk.singerlib import Message
from upath import UPath
from urllib3.exceptions import ProtocolError

from tap_audit_events.events.exact_json import JsonText
from tap_audit_events.extraction.planning.concurrency import ConcurrencyEstimator
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.extraction.workers import Fetch, Requests, Workers
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.service.rate_limiter import RateLimiter, RunRequests
from tap_audit_events.singer.messages import MessageWriter
from tests.builders import a_response
from tests.simulation.histories import (
    EARLY_RETRY_AFTER_SECONDS,
    SERVICE_FAULTS,
    START,
    TRANSPORT_FAULTS,
    History,
    PlannedRun,
)

SIGTERM = 15
THREADED_RETRY_AFTER_SECONDS = 30
"""Longer than the requests that are in flight together take."""

PATIENCE_SECONDS = 5
"""Threads that do nothing for so long hang."""


class KilledError(BaseException):
    """The process is gone: nothing catches this, and nothing it writes afterwards arrives."""


class World:
    """The clock, and what the service holds by then.

    Attributes:
        active: the kinds of faults that the service applies to the next request.
        lock: held by whoever uses the service.
    """

    def __init__(self, history: History) -> None:
        self.seconds = 0.0
        self.random = history.rng
        self.history = history
        self.active: set[str] = set()
        self.lock = threading.RLock()
        self.service = Service(
            cursor_lifetime_requests=history.cursor_lifetime,
            clock=lambda: self.seconds,
            faults=self._faults(history),
        )
        self._ahead = sorted(history.happenings, key=lambda each: each.visible_at)

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    @property
    def displaced_id(self) -> str | None:
        """The event that comes too late in every response, once the service has chosen it."""
        keys = self.service._pages._displaced.values()
        return next((key.partition("\0")[2] for key in keys), None)

    def pass_time(self, seconds: float) -> None:
        """Let time go by, and show what becomes visible meanwhile."""
        with self.lock:
            self.seconds += seconds
            while self._ahead and self._ahead[0].visible_at <= self.seconds:
                self.service.add([self._ahead.pop(0).event])

    def reach(self, seconds: float) -> None:
        """Let time go by until then: those who wait at the same time wait together."""
        with self.lock:
            self.pass_time(max(0.0, seconds - self.seconds))

    def _is_active(self, kind: str, request: object) -> bool:
        del request
        return kind in self.active

    def _faults(self, history: History) -> Iterator[Fault]:
        for kind in (*SERVICE_FAULTS, "ignore-cursor", "empty-cursor"):
            yield Fault(kind=cast("Any", kind), only=partial(self._is_active, kind))
        if history.displaced_places is not None:
            yield Fault(kind="displaced", places=history.displaced_places)


class Pipe:
    """Stdout: what is flushed reaches the target, what is not is lost with the process."""

    def __init__(self, target: "Target", rng: random.Random) -> None:
        self.closed_by_reader = False
        self.dead = False
        self._target = target
        self._random = rng
        self._waiting = b""

    def write(self, data: bytes) -> int:
        if self.closed_by_reader and not self.dead:
            raise BrokenPipeError
        self._waiting += data
        if self._random.random() < 0.1:  # the buffer is full: a part of a line may leave
            self._push(self._random.randint(0, len(self._waiting)))
        return len(data)

    def flush(self) -> None:
        self._push(len(self._waiting))

    def die(self) -> None:
        """The process is killed, perhaps while a part of its buffer is on the way."""
        self._push(self._random.choice([0, self._random.randint(0, len(self._waiting))]))
        self.dead = True

    def _push(self, count: int) -> None:
        if not self.dead:
            self._target.feed(self._waiting[:count])
            self._waiting = self._waiting[count:]


class Target:
    """A loader that appends, and acknowledges states.

    Args:
        commits_at_state: whether records are kept only with the STATE that follows them, and
            dropped if none comes; otherwise each is kept at once.

    Attributes:
        records: what it keeps.
        arrived: the records of the present run.
        states: the STATE lines of the present run, each with its length and with how many records
            of the run arrived before it.
        last_kind: the type of the last line of the present run.
    """

    def __init__(self, *, commits_at_state: bool) -> None:
        self.records: list[dict[str, Any]] = []
        self._commits_at_state = commits_at_state
        self.begin()

    def begin(self) -> None:
        """Start again, as with each run of a pipeline; what was not committed is gone."""
        self._pending: list[dict[str, Any]] = []
        self._line = b""
        self.arrived: list[dict[str, Any]] = []
        self.states: list[tuple[dict[str, Any], int, int]] = []
        self.last_kind = ""

    def feed(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._receive(json.loads(line), len(line))

    def _receive(self, message: dict[str, Any], length: int) -> None:
        self.last_kind = message["type"]
        if message["type"] == "RECORD":
            self._keep(message["record"])
        elif message["type"] == "BATCH":
            self._load(message)
        elif message["type"] == "STATE":
            self.records += self._pending
            self._pending = []
            self.states.append((message["value"], length, len(self.arrived)))

    def _keep(self, record: dict[str, Any]) -> None:
        self.arrived.append(record)
        (self._pending if self._commits_at_state else self.records).append(record)

    def _load(self, message: dict[str, Any]) -> None:
        """Load the files of a BATCH message, and remove them."""
        for url in message["manifest"]:
            content = UPath(url).read_bytes()
            UPath(url).unlink()
            is_compressed = message["encoding"]["compression"] == "gzip"
            lines = (gzip.decompress(content) if is_compressed else content).splitlines()
            for line in lines:
                self._keep(json.loads(line))

    @property
    def ids(self) -> Counter[str]:
        return Counter(record["id"] for record in self.records)


class Network(BaseAdapter):
    """Carries requests to the service without a socket, and meets faults on the way.

    Attributes:
        count: requests so far.
        cursors_ignored: how many of them had a cursor that a gateway ignored.
        is_over: whether the run has ended: requests of threads that are left fail.
        impatient: the most requests that came before the end of a wait that a 429 demanded.
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


class InlineWorkers(Workers):
    """Sends requests in the main thread; the world draws which response arrives when."""

    def __init__(self, plan: Requests, fetch: Fetch, stop: Stop, count: int, world: World) -> None:
        super().__init__(plan, fetch, stop, count)
        self._random = world.random
        self._most_in_flight = world.history.most_in_flight
        self._in_flight: list[Any] = []

    def pages(self, idle: Callable[[], object]) -> Generator[Any, None, None]:
        while True:
            self._stop.check()
            idle()
            while self._random.random() < 0.3 and self._receive():
                self._stop.check()
            page = self._plan.next_page()
            if page is not None:
                yield page
            elif self._plan.is_done:
                return
            else:
                assert self._receive(), "nothing is requested, and nothing comes"

    def _receive(self) -> bool:
        """Some requests start, and the response of one of them arrives."""
        while not self._in_flight or self._random.random() < 0.7:
            request = self._plan.next_request(self._most_in_flight)
            if request is None:
                break
            self._in_flight.append(request)
        assert len(self._in_flight) <= self._count, "more requests in flight than concurrency"
        if not self._in_flight:
            return False
        request = self._in_flight.pop(self._random.randrange(len(self._in_flight)))
        try:
            page = self._fetch(request)
        except Exception as error:  # noqa: BLE001 - as in a worker
            self._plan.fail(request, error)
        else:
            self._plan.accept(request, page)
        return True


class FixedEstimator(ConcurrencyEstimator):
    """Takes responses for as slow as the history has it: the simulated ones take no time."""

    def __init__(self, most_in_flight: int) -> None:
        super().__init__()
        self._fixed = most_in_flight

    @property
    def most_in_flight(self) -> int:
        return self._fixed if self._waits else 1


class ThreadedWorkers(Workers):
    """The real ones; a main thread that would wait for ever fails."""

    def __init__(self, plan: Requests, fetch: Fetch, stop: Stop, count: int, world: World) -> None:
        super().__init__(plan, fetch, stop, count)
        self._estimator = FixedEstimator(world.history.most_in_flight)
        self._idle_seconds = 0

    def _wait(self, idle: Callable[[], object]) -> None:
        def count() -> None:
            self._idle_seconds += 1
            assert self._idle_seconds < PATIENCE_SECONDS, "the threads hang"
            idle()

        super()._wait(count)


class SimulatedRateLimiter(RateLimiter):
    """Lets simulated time go by instead of waiting.

    Attributes:
        waited_seconds: all of its waits for time.
    """

    def __init__(self, run: RunRequests, world: World) -> None:
        super().__init__(run, lambda: world.seconds)
        self._world = world
        self.waited_seconds = 0.0

    def _wait(self, seconds: float) -> None:
        if isinf(seconds):
            super()._wait(seconds)
            return
        until = self._world.seconds + seconds
        self.waited_seconds += seconds
        if self._world.history.uses_threads:
            super()._wait(0.002)  # other threads may send meanwhile, if nothing forbids it
        self._world.reach(until)


class Writer(MessageWriter):
    """Writes into the simulated pipe; the run may end at a message."""

    def __init__(self, pipe: Pipe, clock: Callable[[], float], met: Callable[[str], None]) -> None:
        super().__init__(clock)
        self._pipe = pipe
        self._met = met

    def write_message(self, message: Message) -> None:
        self._met("message")
        super().write_message(message)

    def write_records(self, stream: str, texts: Sequence[JsonText], extracted_at: datetime) -> None:
        if texts:
            self._met("message")
        super().write_records(stream, texts, extracted_at)

    def _output(self) -> BinaryIO:
        return cast("BinaryIO", self._pipe)

    def _abandon_output(self) -> None:
        """The pipe closes without a word."""


def new_session(network: Network) -> requests.Session:
    """A session that reaches the simulated service alone."""
    session = requests.Session()
    session.trust_env = False
    session.mount("https://", network)
    return session


@contextmanager
def threads_joined() -> Iterator[None]:
    """Wait afterwards for the threads that were started meanwhile."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "a thread outlives its run"
