"""What is measured: the scenarios, and one run through all of them in turn."""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from benchmarks import measuring
from benchmarks.candidates import CANDIDATES, Candidate, Job
from benchmarks.counting import Counted
from benchmarks.measuring import FailedError
from benchmarks.results import Check, Sample, Scenario
from benchmarks.sandbox import DAYS, Sandbox, starting

FAR_SECONDS: Final = 0.1

FAST: Final = ("bare", "plain", "tap-1", "tap-4", "tap-8")
SLOW: Final = ("sdk-lane", "dlt", "dlt-days", "airbyte", "usual")


_Service: TypeAlias = tuple[int, float]


def _service(scenario: Scenario) -> _Service:
    return scenario.events, scenario.latency_seconds


def scenarios(scale: float = 1.0) -> list[Scenario]:
    """All of them; a scale below 1 makes them smaller, for trying the suite out.

    Those who need a second for ten thousand events get fewer of them than those who read a
    million in a few seconds, so that neither start-up nor patience decides.
    """

    def events(count: int) -> int:
        return max(1000, int(count * scale))

    return [
        Scenario("commands", 0, 0.0, ("sdk-import", "version", "about", "usual-version"), runs=3),
        Scenario("empty", 0, 0.0, (*FAST, *SLOW)),
        Scenario("near", events(100_000), 0.0, SLOW),
        Scenario("near-short", events(50_000), 0.0, ("tap-8",)),
        Scenario("near-long", events(1_000_000), 0.0, FAST),
        Scenario("far", events(50_000), FAR_SECONDS, ("bare", "tap-4", "tap-8", *SLOW)),
        Scenario("far-long", events(200_000), FAR_SECONDS, ("tap-1", "tap-4", "tap-8")),
        Scenario("far-full", events(1_000_000), FAR_SECONDS, ("tap-8",)),
        Scenario("quiet", events(50_000), 0.0, ("tap-4", "dlt", "airbyte", "usual")),
    ]


class Suite:
    """One run of the benchmarks over sandboxes that stand ready for all of it."""

    def __init__(self, wanted: Sequence[Scenario], folder: Path) -> None:
        """Take a folder for what first runs keep for quiet ones."""
        self._scenarios = wanted
        self._folder = folder
        self._sandboxes: dict[_Service, Sandbox] = {}
        self._kept: dict[str, Path] = {}
        self._until = datetime.now(UTC).replace(microsecond=0)
        self._range = {
            "start_date": f"{self._until - timedelta(days=DAYS):%Y-%m-%dT%H:%M:%SZ}",
            "end_date": f"{self._until:%Y-%m-%dT%H:%M:%SZ}",
        }

    def run(self, repetitions: int) -> tuple[list[Check], list[Sample]]:
        """Count everything once, then measure everything in turn, so often."""
        with ExitStack() as stack:
            self._sandboxes = self._started(stack)
            checks = list(self._checks())
            samples = [
                sample
                for repetition in range(1, repetitions + 1)
                for scenario in self._scenarios
                for sample in self._repetition(scenario, repetition)
            ]
            return checks, samples

    def _started(self, stack: ExitStack) -> dict[_Service, Sandbox]:
        """One sandbox for all scenarios that read the same; they make their events side by side."""
        wanted = {_service(each) for each in self._scenarios if each.candidates}
        processes = {
            service: stack.enter_context(starting(*service, self._until)) for service in wanted
        }
        return {service: Sandbox(process) for service, process in processes.items()}

    # Counting

    def _checks(self) -> Iterator[Check]:
        for scenario in self._scenarios:
            for name in scenario.candidates:
                if CANDIDATES[name].output and scenario.events:
                    yield self._checked(scenario, name)

    def _checked(self, scenario: Scenario, name: str) -> Check:
        """Count what a first run delivers; a quiet one after it, where that is the scenario."""
        _tell(f"count  {scenario.name:10} {name}")
        candidate = CANDIDATES[name]
        with measuring.job(self._settings(scenario)) as job:
            found = measuring.counted(candidate, job)
            if found.distinct != scenario.events or found.records != scenario.events:
                raise FailedError(f"{name} delivered {found} of {scenario.events} events")
            if scenario.name == "quiet":
                self._kept[name] = self._keep(name, candidate, job, found)
        if scenario.name == "quiet":
            with measuring.job(self._settings(scenario), self._kept[name]) as job:
                found = measuring.counted(candidate, job)
        return Check(scenario.name, name, found.records, found.distinct, found.output_bytes)

    def _keep(self, name: str, candidate: Candidate, job: Job, found: Counted) -> Path:
        """What the next run of a candidate goes on from."""
        path = self._folder / name
        if candidate.output == "dlt":
            ignored = shutil.ignore_patterns("extracted")
            return Path(shutil.copytree(job.folder / "dlt", path, ignore=ignored))
        if found.state is None:
            raise FailedError(f"{name} wrote no state")
        path.write_text(json.dumps([found.state] if candidate.output == "airbyte" else found.state))
        return path

    # Measuring

    def _repetition(self, scenario: Scenario, repetition: int) -> Iterator[Sample]:
        for _ in range(scenario.runs):
            for name in scenario.candidates:
                sample = self._sample(scenario, name, repetition)
                _tell(
                    f"{repetition:5}  {scenario.name:10} {name:14} {sample.seconds:7.2f} s"
                    f" {sample.peak_mib:5.0f} MiB {sample.requests:4} requests"
                )
                yield sample

    def _sample(self, scenario: Scenario, name: str, repetition: int) -> Sample:
        sandbox = self._sandboxes[_service(scenario)]
        kept = self._kept.get(name) if scenario.name == "quiet" else None
        before = sandbox.traffic()
        with measuring.job(self._settings(scenario), kept) as job:
            taken = measuring.timed(CANDIDATES[name], job)
        after = sandbox.traffic()
        if after.violations > before.violations:
            raise FailedError(f"{name} sent what the interface forbids")
        return Sample(
            scenario.name,
            name,
            repetition,
            taken.seconds,
            taken.cpu_seconds,
            after.cpu_seconds - before.cpu_seconds,
            taken.peak_mib,
            after.requests - before.requests,
        )

    def _settings(self, scenario: Scenario) -> dict[str, str]:
        return self._sandboxes[_service(scenario)].address | self._range


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")


def limited(wanted: Sequence[Scenario], names: Sequence[str]) -> list[Scenario]:
    """The scenarios with these candidates only."""
    return [
        msgspec.structs.replace(
            each, candidates=tuple(name for name in each.candidates if name in names)
        )
        for each in wanted
    ]
