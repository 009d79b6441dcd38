"""The world around a simulated run: clock, service, pipe and target; nothing waits for real."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from singer_sdk.singerlib import Message
from urllib3 import HTTPResponse
from urllib3.exceptions import ProtocolError

from tap_audit_events.events.page import Text
from tap_audit_events.extraction.plan import Export
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.extraction.window_reader import Exported, Reading
from tap_audit_events.extraction.workers import Workers
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.service.rate_limiter import Gate
from tap_audit_events.singer.messages import MessageWriter
from tap_audit_events.singer.tap import TapAuditEvents
from tests.simulation.histories import (
    SERVICE_FAULTS,
    START,
    TRANSPORT_FAULTS,
    Happening,
    PlannedRun,
)

SIGTERM = 15
MOST_REQUESTS = 500
"""No history needs as many in one run: more means that a loop has no end."""


class KilledError(BaseException):
    """The process is gone: nothing catches this, and nothing it writes afterwards arrives."""


class World:
    """The clock, and what the service holds by then."""

    def __init__(
        self, happenings: list[Happening], cursor_lifetime: int | None, rng: random.Random
    ) -> None:
        self.seconds = 0.0
        self.random = rng
        self.service = Service(cursor_lifetime_requests=cursor_lifetime, clock=lambda: self.seconds)
        self._ahead = sorted(happenings, key=lambda each: each.visible_at)

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def pass_time(self, seconds: float) -> None:
        """Let time go by, and what becomes visible meanwhile be visible."""
        self.seconds += seconds
        while self._ahead and self._ahead[0].visible_at <= self.seconds:
            self.service.add([self._ahead.pop(0).event])


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
        commits_at_state: whether records wait for a STATE to be kept, and are dropped where none
            comes; else each is kept at once.
    """

    def __init__(self, *, commits_at_state: bool) -> None:
        self.records: list[dict[str, Any]] = []
        self.state: dict[str, Any] = {}
        self.states: list[dict[str, Any]] = []
        self._commits_at_state = commits_at_state
        self._pending: list[dict[str, Any]] = []
        self._line = b""
        self.last_kind = ""

    def begin(self) -> None:
        """Start again, as with each run of a pipeline; what was not committed is gone."""
        self._pending, self._line, self.last_kind = [], b"", ""

    def feed(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        self.last_kind = message["type"]
        if message["type"] == "RECORD":
            kept = self._pending if self._commits_at_state else self.records
            kept.append(message["record"])
        elif message["type"] == "STATE":
            self.records += self._pending
            self._pending = []
            self.state = message["value"]
            self.states.append(message["value"])

    @property
    def ids(self) -> Counter[str]:
        return Counter(record["id"] for record in self.records)


class Network(BaseAdapter):
    """Carries requests to the service without a socket, and meets faults on the way."""

    def __init__(self, world: World, run: PlannedRun, met: Callable[[str], None]) -> None:
        super().__init__()
        self._world = world
        self._run = run
        self._met = met
        self.count = 0

    def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:  # type: ignore[override]
        self.count += 1
        assert self.count <= MOST_REQUESTS, "the run does not end"
        self._met("request")
        self._world.pass_time(self._world.random.choice([0.0, 0.01, 1.5]))
        fault = self._fault()
        if fault in SERVICE_FAULTS:
            number = len(self._world.service.requests) + 1
            self._world.service.add_faults([Fault(kind=cast("Any", fault), when=str(number))])
        answer = self._answer(request)
        return answer if fault in (None, *SERVICE_FAULTS) else self._failed(fault, answer)

    def close(self) -> None:
        """Nothing is open."""

    def _fault(self) -> str | None:
        if self._world.random.random() >= self._run.fault_share:
            return None
        return self._world.random.choice([*TRANSPORT_FAULTS, *SERVICE_FAULTS])

    def _answer(self, request: requests.PreparedRequest) -> requests.Response:
        parts = urlsplit(request.url or "")
        response = self._world.service.respond(
            "GET", parts.path, parts.query.encode(), dict(request.headers)
        )
        body = response.body
        if self._run.shuffles and response.status == 200:
            body = self._shuffled(body)
        return a_response(response.status, body, dict(response.headers))

    def _shuffled(self, body: bytes) -> bytes:
        page = json.loads(body)
        self._world.random.shuffle(page["auditEvents"])
        return json.dumps(page).encode()

    def _failed(self, fault: str | None, answer: requests.Response) -> requests.Response:
        if fault == "reset":
            raise requests.ConnectionError("reset")
        if fault == "timeout":
            raise requests.ReadTimeout("timeout")
        if fault == "cut":
            raise ProtocolError("cut")
        if fault == "not JSON":
            return a_response(200, answer.raw.read()[:-1] or b"<html>", {})
        headers = {"Retry-After": "3"} if fault == "status 429" else {}
        return a_response(int((fault or "").removeprefix("status ")), b"{}", headers)


def a_response(status: int, body: bytes, headers: dict[str, str]) -> requests.Response:
    """An answer whose body is ready to be read."""
    response = requests.Response()
    response.status_code = status
    response.raw = HTTPResponse(BytesIO(body), preload_content=False)
    response.headers.update(headers)
    return response


class InlineWorkers(Workers):
    """Sends requests in the same thread, in an order and as far ahead as the seed has it."""

    def __init__(self, export: Export, stop: Stop, count: int, rng: random.Random) -> None:
        super().__init__(export, stop, count)
        self._most = count
        self._random = rng
        self._asked: list[Reading] = []

    def pages(self, idle: Callable[[], object]) -> Iterator[Exported]:
        while True:
            self._stop.check()
            idle()
            while self._random.random() < 0.3 and self._goes_on():
                self._stop.check()
            exported = self._export.next_page()
            if exported is not None:
                yield exported
            elif self._export.is_done:
                return
            else:
                assert self._goes_on(), "nothing is asked for, and nothing comes"

    def _goes_on(self) -> bool:
        """Some requests start, in threads that would be free, and one of them ends."""
        while len(self._asked) < self._most and (not self._asked or self._random.random() < 0.7):
            reading = self._export.next_request()
            if reading is None:
                break
            self._asked.append(reading)
        if not self._asked:
            return False
        self.perform(self._asked.pop(self._random.randrange(len(self._asked))))
        return True


class InlineGate(Gate):
    """Lets simulated time go by."""

    def __init__(self, most: int, world: World) -> None:
        super().__init__(most, lambda: world.seconds)
        self._world = world

    def _wait(self, seconds: float) -> None:
        self._world.pass_time(seconds)


class Writer(MessageWriter):
    """Writes into the simulated pipe; the run's end may be met at a message."""

    def __init__(self, pipe: Pipe, clock: Callable[[], float], met: Callable[[str], None]) -> None:
        super().__init__(clock)
        self._pipe = pipe
        self._met = met

    def write_message(self, message: Message) -> None:
        self._met("message")
        super().write_message(message)

    def write_records(self, stream: str, texts: Sequence[Text], extracted_at: datetime) -> None:
        if texts:
            self._met("message")
        super().write_records(stream, texts, extracted_at)

    def _output(self) -> BinaryIO:
        return cast("BinaryIO", self._pipe)

    def _abandon_output(self) -> None:
        """The pipe closes without a word."""


class SimulatedTap(TapAuditEvents):
    """The tap, with the world it is given in place of the real one."""

    world: World
    network: Network

    def now(self) -> datetime:
        return self.world.now

    def new_gate(self) -> Gate:
        return InlineGate(self.settings.concurrency, self.world)

    def run_apart(self, work: Callable[[], object], idle: Callable[[], object]) -> None:
        del idle
        work()

    def new_workers(self, export: Export, *, may_wait: bool = False) -> Workers:
        del may_wait
        return InlineWorkers(export, self.stop, self.settings.concurrency, self.world.random)

    def new_session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        session.mount("https://", self.network)
        return session
