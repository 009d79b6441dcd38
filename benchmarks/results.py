"""The figures of one run of the benchmarks: the content of `results.json`."""

import statistics
import sys
from pathlib import Path
from typing import Final, Self

import msgspec

RESULTS: Final = Path(__file__).with_name("results.json")


class Run(msgspec.Struct, frozen=True):
    """One timed process.

    Attributes:
        seconds: from before its start to after its end.
        peak_mib: the sum of the largest resident sets of it and the processes that it started.
    """

    seconds: float
    peak_mib: float


class Figure(msgspec.Struct, frozen=True):
    """The runs of one candidate against one sandbox.

    Attributes:
        candidate: begins with a name in `candidates.TOOLS` or `loading.LOADS`.
        milliseconds: the time that each response took at least.
        events: how many events it delivered.
        requests: how many requests it sent in one run; None if that is not known.
        is_quiet: whether it resumed from the state of a run that had delivered everything.
    """

    candidate: str
    milliseconds: int
    events: int
    runs: list[Run]
    requests: int | None = None
    is_quiet: bool = False

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds

    @property
    def peak_mib(self) -> float:
        """The largest."""
        return max(run.peak_mib for run in self.runs)

    def shown(self) -> Self:
        """Show the figure on stderr while the next one is measured."""
        sys.stderr.write(
            f"{self.candidate:24} {self.milliseconds:4} ms {self.events:9,} events"
            f" {self.seconds:7.2f} s {self.peak_mib:6.0f} MiB\n"
        )
        return self


class Results(msgspec.Struct, frozen=True):
    """Everything that was measured, on one machine on one day."""

    date: str
    machine: dict[str, str]
    versions: dict[str, str]
    repetitions: int
    figures: list[Figure]

    def find(self, candidate: str, milliseconds: int, *, is_quiet: bool = False) -> Figure:
        """The figure of a candidate.

        Raises:
            KeyError: there is none.
        """
        for figure in self.figures:
            key = (figure.candidate, figure.milliseconds, figure.is_quiet)
            if key == (candidate, milliseconds, is_quiet):
                return figure
        raise KeyError(candidate, milliseconds)


def load(path: Path = RESULTS) -> Results:
    return msgspec.json.decode(path.read_bytes(), type=Results)


def save(results: Results, path: Path = RESULTS) -> None:
    """Write the results with indentation, so that a diff can be read."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
