"""The world around a simulated run: clock, services, pipe and target. Nothing waits for real."""

import gzip
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, BinaryIO, cast

from singer_sdk.singerlib import Message
from upath import UPath

from tap_audit_events.events.exact_json import JsonText
from tap_audit_events.events.stream_names import COVERAGE_STREAM
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.singer.messages import MessageWriter
from tests.simulation.histories import (
    SERVICE_FAULTS,
    START,
    History,
)

SIGTERM = 15


class KilledError(BaseException):
    """The process was killed: nothing catches this error, and nothing written later arrives."""


class Organization:
    """The service of one organization, and its events that are not visible yet.

    Attributes:
        active: the kinds of faults that the service applies to the next request.
    """

    def __init__(self, world: "World", organization_id: str) -> None:
        history = world.history
        self.active: set[str] = set()
        self.happenings = history.happenings[organization_id]
        self._ahead = sorted(self.happenings, key=lambda each: each.visible_at)
        self.service = Service(
            organization_id=organization_id,
            access_token=history.tokens[organization_id],
            cursor_lifetime_requests=history.cursor_lifetime,
            clock=lambda: world.seconds,
            faults=self._faults(history.displaced_places),
        )

    @property
    def displaced_id(self) -> str | None:
        """The event that is too late in every response, None until the service has chosen it."""
        keys = self.service._pages._displaced.values()
        return next((key.partition("\0")[2] for key in keys), None)

    def show(self, seconds: float) -> None:
        """Show the events that are visible by then."""
        while self._ahead and self._ahead[0].visible_at <= seconds:
            self.service.add([self._ahead.pop(0).event])

    def _is_active(self, kind: str, request: object) -> bool:
        del request
        return kind in self.active

    def _faults(self, displaced_places: int | None) -> Iterator[Fault]:
        for kind in (*SERVICE_FAULTS, "ignore-cursor", "empty-cursor"):
            yield Fault(kind=cast("Any", kind), only=partial(self._is_active, kind))
        if displaced_places is not None:
            yield Fault(kind="displaced", places=displaced_places)


class World:
    """The clock, and the organizations with the events that are visible by then.

    Attributes:
        lock: held while a service is used.
    """

    def __init__(self, history: History) -> None:
        self.seconds = 0.0
        self.random = history.rng
        self.history = history
        self.lock = threading.RLock()
        self.organizations = {each: Organization(self, each) for each in history.happenings}

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def pass_time(self, seconds: float) -> None:
        """Let time go by, and show the events that become visible meanwhile."""
        with self.lock:
            self.seconds += seconds
            for each in self.organizations.values():
                each.show(self.seconds)

    def reach(self, seconds: float) -> None:
        """Let time go by until then; waits that begin at the same time pass together."""
        with self.lock:
            self.pass_time(max(0.0, seconds - self.seconds))


class Pipe:
    """Stdout: flushed bytes reach the target, and others are lost if the process is killed."""

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
        if self._random.random() < 0.1:  # the buffer is full: a part of a line may be sent
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


@dataclass(frozen=True)
class CoverageRecord:
    """A coverage record that arrived.

    Attributes:
        record: the record.
        arrived: how many records of events arrived before it.
        states: how many STATEs arrived before it.
    """

    record: dict[str, Any]
    arrived: int
    states: int


class Target:
    """A loader that appends to two tables, and acknowledges states.

    Args:
        commits_at_state: whether records are kept only with the STATE that follows them, and
            dropped if none comes; otherwise each is kept at once.

    Attributes:
        kept: the organization and the id of each record that it keeps.
        arrived: the records of the present run.
        coverage: its coverage records.
        states: the STATE lines of the present run, each with its length and with how many records
            of the run arrived before it.
        last_kind: the type of the last line of the present run.
    """

    def __init__(self, *, commits_at_state: bool) -> None:
        self.kept: list[tuple[str, str]] = []
        self._commits_at_state = commits_at_state

    def begin(self, only: str | None) -> None:
        """Start again, as in each run of a pipeline; uncommitted records are dropped.

        Args:
            only: the organization, if the records do not name it.
        """
        self._only = only
        self._pending: list[tuple[str, str]] = []
        self._line = b""
        self.arrived: list[dict[str, Any]] = []
        self.coverage: list[CoverageRecord] = []
        self.states: list[tuple[dict[str, Any], int, int]] = []
        self.last_kind = ""

    def feed(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._receive(json.loads(line), len(line))

    def _receive(self, message: dict[str, Any], length: int) -> None:
        self.last_kind = message["type"]
        if message.get("stream") == COVERAGE_STREAM:
            if message["type"] == "RECORD":
                arrived, states = len(self.arrived), len(self.states)
                self.coverage.append(CoverageRecord(message["record"], arrived, states))
        elif message["type"] == "RECORD":
            self._keep(message["record"])
        elif message["type"] == "BATCH":
            self._load(message)
        elif message["type"] == "STATE":
            self.kept += self._pending
            self._pending = []
            self.states.append((message["value"], length, len(self.arrived)))

    def _keep(self, record: dict[str, Any]) -> None:
        self.arrived.append(record)
        key = (self._only or record["organization_id"], record["id"])
        (self._pending if self._commits_at_state else self.kept).append(key)

    def _load(self, message: dict[str, Any]) -> None:
        """Load the files of a BATCH message, and remove them."""
        for url in message["manifest"]:
            content = UPath(url).read_bytes()
            UPath(url).unlink()
            is_compressed = message["encoding"]["compression"] == "gzip"
            lines = (gzip.decompress(content) if is_compressed else content).splitlines()
            for line in lines:
                self._keep(json.loads(line))

    def ids(self, organization_id: str) -> Counter[str]:
        return Counter(name for each, name in self.kept if each == organization_id)


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
        """There is nothing to do for a simulated pipe."""
