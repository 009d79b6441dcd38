"""The results of a run of the benchmarks: every sample, and the machine."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.shapes import OFFICE_HOURS

RESULTS: Final = Path(__file__).with_name("results.json")

DEFAULT_REPETITIONS: Final = 5

ALL_QUIET: Final = "quiet organizations"
LARGE_AMONG_QUIET: Final = "one large organization among quiet ones"

FAR_EARLIER: Final = {f"far-long-{hours}": hours for hours in range(14, 168, 14)}
"""Scenarios like ``far-long`` whose events end so many hours earlier.

How well windows can be cut depends on the hour of the week at which a history begins. Together
with ``far-long``, there are twelve scenarios, spread over the week.
"""

COPY: Final = "meltanolabs-target-postgres, COPY"
BATCH: Final = "meltanolabs-target-postgres, BATCH"
"""The two loads that are compared."""


class Content(msgspec.Struct, frozen=True):
    """The events that one sandbox serves, and how it serves them.

    Attributes:
        latency_seconds: The least time that each response takes.
        gzip: Whether bodies are compressed.
        shape: The times of the events: `OFFICE_HOURS`, or a name in `shapes.SHAPES`.
        organizations: The number of organizations, all with one token. The first has the events,
            the others have none. 0 means a single organization without a list.
        hours_earlier: How many hours before other contents its range and its events end.
    """

    events: int
    latency_seconds: float = 0.0
    gzip: bool = False
    shape: str = OFFICE_HOURS
    organizations: int = 0
    hours_earlier: int = 0

    @property
    def is_past(self) -> bool:
        """Whether its range ends earlier than others, so that clients have to be told its end."""
        return self.hours_earlier > 0

    def until(self, until: datetime) -> datetime:
        """Return the end of its range; `until` is the end of other contents."""
        return until - timedelta(hours=self.hours_earlier)


class Scenario(msgspec.Struct, frozen=True):
    """The content of a sandbox, and the candidates that read it in turn.

    Attributes:
        runs: How often each candidate runs in one repetition.
        page_size: Events per page of this tap; the other candidates always request 1,000.
    """

    name: str
    content: Content
    candidates: tuple[str, ...]
    runs: int = 1
    page_size: int = 1000

    @property
    def events(self) -> int:
        return self.content.events

    @property
    def milliseconds(self) -> int:
        return round(self.content.latency_seconds * 1000)

    @property
    def pages(self) -> int:
        """The number of requests of a sequential run."""
        return max(1, -(-self.events // self.page_size))


class Check(msgspec.Struct, frozen=True):
    """The counts of a candidate's events in a run that was not timed.

    `output_bytes` is the size of its output.
    """

    scenario: str
    candidate: str
    records: int
    distinct: int
    output_bytes: int


class Sample(msgspec.Struct, frozen=True):
    """One timed run of a process, from before its start to after its end.

    Attributes:
        cpu_seconds: User and system time of the process.
        service_cpu_seconds: User and system time of the sandbox, during the run.
        peak_mib: The largest resident set; for several processes, the sum of their largest ones.
        requests: The number of requests that the sandbox received.
    """

    scenario: str
    candidate: str
    repetition: int
    seconds: float
    cpu_seconds: float
    service_cpu_seconds: float
    peak_mib: float
    requests: int


class DisplacedCase(msgspec.Struct, frozen=True):
    """A service that returns one event too late.

    Attributes:
        event: The ordinal of that event, counted from the oldest.
        places: How many places after its correct place it is returned.
    """

    shape: str
    page_size: int
    event: int
    places: int


class DisplacedRun(msgspec.Struct, frozen=True):
    """The result of a run against such a service.

    Attributes:
        missing: The number of events that were not delivered.
        repeated: The number of records that were delivered again.
        error: The code of the error that ended the run, None if it ended with exit code 0.
    """

    case: DisplacedCase
    missing: int
    repeated: int
    error: str | None

    @property
    def is_silent_loss(self) -> bool:
        return self.missing > 0 and self.error is None


class Load(msgspec.Struct, frozen=True):
    """One timed load, from the start of the tap and a loader to the end of both."""

    case: str
    repetition: int
    events: int
    seconds: float


class Loads(msgspec.Struct, frozen=True):
    """All timed loads, and the versions of the loaders."""

    versions: dict[str, str]
    loads: list[Load]


class Results(msgspec.Struct, frozen=True):
    """All results of one run; the content of `results.json`.

    Attributes:
        scale: The share of the events of a full run.
        lines: Lines of Python, by the part of the package.
        steps: The microseconds that a step takes for each event, by step.
    """

    date: str
    machine: dict[str, str]
    versions: dict[str, str]
    repetitions: int
    scale: float
    lines: dict[str, int]
    scenarios: list[Scenario]
    checks: list[Check]
    samples: list[Sample]
    displaced: list[DisplacedRun]
    loads: list[Load] = msgspec.field(default_factory=list)
    steps: dict[str, float] = msgspec.field(default_factory=dict)


def load(path: Path = RESULTS) -> Results:
    return msgspec.json.decode(path.read_bytes(), type=Results)


def save(results: Results, path: Path) -> None:
    """Write the results with indentation, so that a diff can be read."""
    text = msgspec.json.format(msgspec.json.encode(results), indent=1)
    path.write_bytes(text + b"\n")
