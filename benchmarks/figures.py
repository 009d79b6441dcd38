"""Medians and ratios of the measured samples."""

from collections import defaultdict
from statistics import median
from typing import Final, TypeAlias

from benchmarks.candidates import CANDIDATES
from benchmarks.results import Results, Sample, Scenario

Runs: TypeAlias = tuple[str, str]
"""A scenario and a candidate."""

START_UP: Final = "empty"
"""The scenario without events, whose runs consist only of start-up."""

LEAST_SECONDS: Final = 1e-3
"""The least time after start-up that is assumed; only tiny runs are near it."""


class Figures:
    """Medians and ratios of one run of the benchmarks, by scenario and candidate."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self._scenarios = {each.name: each for each in results.scenarios}
        self._samples: dict[Runs, list[Sample]] = defaultdict(list)
        for sample in results.samples:
            self._samples[sample.scenario, sample.candidate].append(sample)

    def scenario(self, name: str) -> Scenario:
        return self._scenarios[name]

    def measured(self, scenario: str, *candidates: str) -> bool:
        """Whether all the candidates were measured in the scenario."""
        return all((scenario, candidate) in self._samples for candidate in candidates)

    def seconds(self, scenario: str, candidate: str) -> float:
        return median(each.seconds for each in self._samples[scenario, candidate])

    def spread(self, scenario: str, candidate: str) -> tuple[float, float]:
        """The shortest and the longest run, in seconds."""
        seconds = [each.seconds for each in self._samples[scenario, candidate]]
        return min(seconds), max(seconds)

    def cpu_seconds(self, scenario: str, candidate: str) -> float:
        return median(each.cpu_seconds for each in self._samples[scenario, candidate])

    def service_cpu_seconds(self, scenario: str, candidate: str) -> float:
        return median(each.service_cpu_seconds for each in self._samples[scenario, candidate])

    def peak_mib(self, scenario: str, candidate: str) -> float:
        """The largest peak of all runs, as each run must stay below the bound."""
        return max(each.peak_mib for each in self._samples[scenario, candidate])

    def requests(self, scenario: str, candidate: str) -> int:
        """The largest number of requests of all runs."""
        return max(each.requests for each in self._samples[scenario, candidate])

    def after_start_up(self, scenario: str, candidate: str) -> float:
        """The seconds of a run, minus those of a run that finds no events."""
        return median(self._after_start_up(scenario, candidate))

    def events_per_second(self, scenario: str, candidate: str) -> float:
        """Events per second after start-up, rounded to three digits."""
        exact = self.scenario(scenario).events / self.after_start_up(scenario, candidate)
        return float(f"{exact:.3g}")

    def times_as_fast(self, one: Runs, other: Runs) -> float:
        """The ratio of events per second after start-up.

        It is the median of the ratios within each repetition, because a machine that is slow for a
        while is slow for both runs of a repetition.
        """
        pairs = zip(self._seconds_per_event(*one), self._seconds_per_event(*other), strict=True)
        return median(theirs / ours for ours, theirs in pairs)

    def times_as_long(self, one: Runs, other: Runs) -> float:
        """The ratio of the times of whole runs, including start-up."""
        pairs = zip(self._samples[one], self._samples[other], strict=True)
        return median(ours.seconds / theirs.seconds for ours, theirs in pairs)

    def load_seconds(self, case: str) -> float:
        """The seconds of a load by the tap and a loader, including start-up."""
        return median(each.seconds for each in self.results.loads if each.case == case)

    def _after_start_up(self, scenario: str, candidate: str) -> list[float]:
        start_up = self.seconds(START_UP, candidate)
        samples = self._samples[scenario, candidate]
        return [max(LEAST_SECONDS, each.seconds - start_up) for each in samples]

    def _seconds_per_event(self, scenario: str, candidate: str) -> list[float]:
        events = self.scenario(scenario).events
        return [seconds / events for seconds in self._after_start_up(scenario, candidate)]


def runs_of(figures: Figures, *scenarios: str) -> list[Runs]:
    """Return the scenario of each candidate that was measured, in the order of `CANDIDATES`.

    If a candidate was measured in several of the scenarios, the last one counts.
    """
    measured = {
        name: (scenario, name)
        for scenario in scenarios
        for name in CANDIDATES
        if figures.measured(scenario, name)
    }
    return [measured[name] for name in CANDIDATES if name in measured]


def memory_runs(figures: Figures) -> list[Runs]:
    """Return the runs of every candidate, and those that show how memory grows with the events."""
    growth = ["near-short", "near-long", "far", "far-long", "far-full"]
    rows = [row for row in runs_of(figures, "near", "near-long") if row[1] != "tap-8"]
    return rows + [(each, "tap-8") for each in growth if figures.measured(each, "tap-8")]
