"""Medians and ratios of what was measured."""

from collections import defaultdict
from statistics import median
from typing import Final, TypeAlias

from benchmarks.candidates import CANDIDATES
from benchmarks.results import Results, Sample, Scenario

Runs: TypeAlias = tuple[str, str]
"""The runs of one scenario by one candidate."""

START_UP: Final = "empty"
"""The scenario whose runs are nothing but start-up."""

LEAST_SECONDS: Final = 1e-3
"""What a run takes at least after its start-up; only tiny runs come near it."""


class Figures:
    """Answers about one run of the benchmarks; names are those of scenarios and candidates."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self._scenarios = {each.name: each for each in results.scenarios}
        self._samples: dict[Runs, list[Sample]] = defaultdict(list)
        for sample in results.samples:
            self._samples[sample.scenario, sample.candidate].append(sample)

    def scenario(self, name: str) -> Scenario:
        return self._scenarios[name]

    def measured(self, scenario: str, *candidates: str) -> bool:
        """Whether all of them were."""
        return all((scenario, candidate) in self._samples for candidate in candidates)

    def seconds(self, scenario: str, candidate: str) -> float:
        return median(each.seconds for each in self._samples[scenario, candidate])

    def spread(self, scenario: str, candidate: str) -> tuple[float, float]:
        """The shortest and the longest of the runs, in seconds."""
        seconds = [each.seconds for each in self._samples[scenario, candidate]]
        return min(seconds), max(seconds)

    def cpu_seconds(self, scenario: str, candidate: str) -> float:
        return median(each.cpu_seconds for each in self._samples[scenario, candidate])

    def service_cpu_seconds(self, scenario: str, candidate: str) -> float:
        return median(each.service_cpu_seconds for each in self._samples[scenario, candidate])

    def peak_mib(self, scenario: str, candidate: str) -> float:
        """The largest of all runs: a bound is kept by every run."""
        return max(each.peak_mib for each in self._samples[scenario, candidate])

    def requests(self, scenario: str, candidate: str) -> int:
        """The most that any run sent."""
        return max(each.requests for each in self._samples[scenario, candidate])

    def after_start_up(self, scenario: str, candidate: str) -> float:
        """Seconds, without those of a run that finds nothing."""
        return median(self._after_start_up(scenario, candidate))

    def events_a_second(self, scenario: str, candidate: str) -> float:
        """After start-up; three digits of it mean something."""
        exact = self.scenario(scenario).events / self.after_start_up(scenario, candidate)
        return float(f"{exact:.3g}")

    def times_as_fast(self, one: Runs, other: Runs) -> float:
        """How many events one reads in the time of one of the other's, both after start-up.

        It is the median of the ratios within each repetition, so that a machine that is slower
        for a while is so for both.
        """
        pairs = zip(self._seconds_an_event(*one), self._seconds_an_event(*other), strict=True)
        return median(theirs / ours for ours, theirs in pairs)

    def times_as_long(self, one: Runs, other: Runs) -> float:
        """The ratio of whole runs of one scenario, start-up and all."""
        pairs = zip(self._samples[one], self._samples[other], strict=True)
        return median(ours.seconds / theirs.seconds for ours, theirs in pairs)

    def _after_start_up(self, scenario: str, candidate: str) -> list[float]:
        start_up = self.seconds(START_UP, candidate)
        samples = self._samples[scenario, candidate]
        return [max(LEAST_SECONDS, each.seconds - start_up) for each in samples]

    def _seconds_an_event(self, scenario: str, candidate: str) -> list[float]:
        events = self.scenario(scenario).events
        return [seconds / events for seconds in self._after_start_up(scenario, candidate)]


def runs_of(figures: Figures, scenario: str) -> list[Runs]:
    """Those of one scenario, in the order in which candidates are shown."""
    return [(scenario, name) for name in CANDIDATES if figures.measured(scenario, name)]


def near_runs(figures: Figures) -> list[Runs]:
    """One for each candidate: of those who read more events than others, the runs with more."""
    names = [name for scenario, name in runs_of(figures, START_UP)]
    longer = {name for _, name in runs_of(figures, "near-long")}
    rows = [("near-long" if name in longer else "near", name) for name in names]
    return [row for row in rows if figures.measured(*row)]


def memory_runs(figures: Figures) -> list[Runs]:
    """Everybody's, and those that show how memory grows with the events, near and far."""
    far = [(scenario, "tap-8") for scenario in ("far", "far-long", "far-full")]
    rows = runs_of(figures, "near-short") + near_runs(figures)
    return rows + [row for row in far if figures.measured(*row)]
