"""An hour of runs in one process, against a sandbox that misbehaves all the while.

Real threads and real connections; only waiting is simulated: a clock advances whenever the tap or
the schedule would wait.
"""

import gc
import json
import random
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isinf
from pathlib import Path
from typing import Any

import tap_audit_events
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.sandbox import Service, serve
from tap_audit_events.sandbox.response import Response
from tap_audit_events.service.rate_limiter import RateLimiter, RunRequests
from tap_audit_events.singer.messages import MessageWriter
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event

START = datetime(2026, 3, 1, tzinfo=UTC)
LOOKBACK_SECONDS = 300
FAULTS = [
    "status:code=500@*/23",
    "status:code=503,retry-after=20@*/41",
    "status:code=429,retry-after=5@*/59",
    "reset@*/31",
    "cut@*/37",
    "hang:seconds=0.6@*/307",
    "expire@*/53",
    "empty@*/47",
    "short@*/29",
]
PACKAGE = Path(tap_audit_events.__file__).parent


class Clock:
    """A clock that advances instead of waiting."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds = 0.0

    def __call__(self) -> float:
        return self._seconds

    def wait(self, seconds: float) -> None:
        with self._lock:
            self._seconds += seconds

    def reach(self, seconds: float) -> None:
        """Advance to that time; waits that begin at the same time pass together."""
        with self._lock:
            self._seconds = max(self._seconds, seconds)

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self._seconds)


class QuickRateLimiter(RateLimiter):
    """Lets time pass instead of waiting."""

    def __init__(self, run: RunRequests, clock: Clock) -> None:
        super().__init__(run, clock)
        self._time = clock

    def _wait(self, seconds: float) -> None:
        if isinf(seconds):
            super()._wait(seconds)
            return
        until = self._time() + seconds
        super()._wait(0.001)
        self._time.reach(until)


class Sink(MessageWriter):
    """Counts what is written, and keeps the last STATE."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.state: dict[str, Any] = {}

    def _write(self, *pieces: bytes, flush: bool = False) -> None:
        del flush
        for line in b"".join(pieces).splitlines():
            message = json.loads(line)
            if message["type"] == "RECORD":
                self.ids[message["record"]["id"]] += 1
            elif message["type"] == "STATE":
                self.state = message["value"]


@dataclass(frozen=True)
class Footprint:
    """The memory that the tap's own code uses, and the threads and open files of the process."""

    kilobytes: int
    threads: int
    files: int


class Soak:
    """Runs of the tap, each from the state of the one before.

    Attributes:
        runs: how many there were.
        late: how many late events there were.
        tokens: how many times the token has rotated.
    """

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.clock = Clock()
        self.service = Service(
            faults=FAULTS,
            rate_limit=5,
            live_events_per_second=1.0,
            live_from=START,
            clock=self.clock,
        )
        self.sink = Sink()
        self.runs = self.late = self.tokens = 0
        self._random = random.Random(seed)
        self._token_file = folder / "token"
        self._write_token()

    @contextmanager
    def started(self) -> Iterator[str]:
        """The URL of the sandbox, which writes its new token into the file after a status 401."""
        respond = self.service.respond

        def rotate_after(
            method: str,
            path: str,
            query_string: bytes,
            headers: Mapping[str, str],
            reused: bool = False,
        ) -> Response:
            response = respond(method, path, query_string, headers, reused)
            if response.status == 401:
                self._write_token()
            return response

        self.service.respond = rotate_after  # type: ignore[method-assign]
        with serve(self.service) as server:
            yield server.base_url

    def play(self, base_url: str, minutes: float) -> None:
        """Run the tap every few seconds until so many minutes have gone by."""
        until = self.clock() + 60 * minutes
        while self.clock() < until:
            self.run(base_url)
            self.clock.wait(self._random.uniform(5, 30))
            self._happen()

    def run(self, base_url: str) -> None:
        """One run; it has to succeed."""
        tap = TapAuditEvents(
            config={
                "base_url": base_url,
                "organization_id": self.service.organization_id,
                "access_token_file": str(self._token_file),
                "page_size": 50,
                "lookback_seconds": LOOKBACK_SECONDS,
                "request_timeout_seconds": 0.3,
                "max_retries": 12,
            },
            state=json.loads(json.dumps(self.sink.state)),
            message_writer=self.sink,
            runtime=Runtime(
                now=lambda: self.clock.now,
                new_rate_limiter=lambda run: QuickRateLimiter(run, self.clock),
            ),
        )
        tap.sync_all()
        self.runs += 1

    def footprint(self) -> Footprint:
        """The footprint after the threads of the last run have ended."""
        waited = time.monotonic() + 5
        while threading.active_count() > self._threads_at_rest and time.monotonic() < waited:
            time.sleep(0.01)
        gc.collect()
        taken = tracemalloc.take_snapshot().filter_traces(
            [tracemalloc.Filter(inclusive=True, filename_pattern=f"{PACKAGE}/*.py")]
        )
        own = [each for each in taken.traces if "/sandbox/" not in each.traceback[0].filename]
        return Footprint(
            kilobytes=sum(each.size for each in own) // 1024,
            threads=threading.active_count(),
            files=len(list(Path("/proc/self/fd").iterdir())),
        )

    @property
    def _threads_at_rest(self) -> int:
        return 2  # the main thread and the sandbox's thread

    def _happen(self) -> None:
        """Between two runs, an event may be added late, and the token may be rotated."""
        if self._random.random() < 0.5:
            self.late += 1
            at = self.clock.now - timedelta(seconds=self._random.uniform(1, 200))
            self.service.add([an_event(id=f"late-{self.late}", at=f"{at:%Y-%m-%dT%H:%M:%S.%fZ}")])
        if self._random.random() < 0.1:
            self.tokens += 1
            self.service.access_token = f"soak_pat_{self.tokens}_{self._random.randrange(10**9)}"

    def _write_token(self) -> None:
        self._token_file.write_text(f"{self.service.access_token}\n")
        self._token_file.chmod(0o600)
