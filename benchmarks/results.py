"""What a run of the benchmarks leaves: every sample, and on what it was taken."""

from pathlib import Path
from typing import Final

import msgspec

RESULTS: Final = Path(__file__).with_name("results.json")


class Scenario(msgspec.Struct, frozen=True):
    """One amount of events at one distance, and who reads them in turn.

    Attributes:
        latency_seconds: How long the service takes to reply, at least.
        runs: How often each candidate runs in one repetition.
    """

    name: str
    events: int
    latency_seconds: float
    candidates: tuple[str, ...]
    runs: int = 1


class Check(msgspec.Struct, frozen=True):
    """What a candidate delivered in a run that was not timed.

    `output_bytes` is the size of what it wrote.
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
        service_cpu_seconds: The same of the sandbox, during the run.
        peak_mib: The largest resident set.
        requests: What the sandbox was sent.
    """

    scenario: str
    candidate: str
    repetition: int
    seconds: float
    cpu_seconds: float
    service_cpu_seconds: float
    peak_mib: float
    requests: int


class Results(msgspec.Struct, frozen=True):
    """All of one run; what stands in `results.json`."""

    date: str
    machine: dict[str, str]
    versions: dict[str, str]
    repetitions: int
    scenarios: list[Scenario]
    checks: list[Check]
    samples: list[Sample]


def load(path: Path = RESULTS) -> Results:
    return msgspec.json.decode(path.read_bytes(), type=Results)


def save(results: Results, path: Path) -> None:
    """Write them one sample a line, so that changes can be read."""
    text = msgspec.json.format(msgspec.json.encode(results), indent=1)
    path.write_bytes(text + b"\n")
