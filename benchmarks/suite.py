"""The scenarios that are measured, and one run through all of them in turn."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks import measuring
from benchmarks.candidates import CANDIDATES, Candidate, Job
from benchmarks.counting import Counted
from benchmarks.measuring import FailedError
from benchmarks.results import (
    ALL_QUIET,
    FAR_EARLIER,
    LARGE_AMONG_QUIET,
    Check,
    Content,
    Sample,
    Scenario,
)
from benchmarks.sandbox import Sandbox, start_sandbox
from benchmarks.shapes import DAYS

MID_SECONDS: Final = 0.02
FAR_SECONDS: Final = 0.1

FAST: Final = ("bare", "tap-1", "tap-4", "tap-8")
OTHERS: Final = ("dlt", "dlt-days", "airbyte")
SLOW: Final = ("sdk-lane", *OTHERS, "usual", "usual-msgspec")

EXPORTS: Final = ("export-parquet", "export-duckdb")
DLT_LOAD: Final = "dlt-duckdb"
ORGANIZATIONS: Final = 200

SMALL_PAGE: Final = 100
"""Events per page in scenarios that compare only the number of requests."""


def scenarios(scale: float = 1.0) -> list[Scenario]:
    """Return all scenarios; a scale below 1 makes them smaller, to try out the suite.

    Candidates that read ten thousand events per second get fewer events than those that read a
    million in a few seconds, so that neither start-up nor the length of the benchmark dominates.
    """

    def content(events: int, latency_seconds: float = 0.0, **more: Any) -> Content:
        return Content(max(1000, int(events * scale)), latency_seconds, **more)

    return [
        Scenario(
            "commands", Content(0), ("sdk-import", "version", "about", "usual-version"), runs=9
        ),
        Scenario("empty", Content(0), (*FAST, "shaped", "own-airbyte", *EXPORTS, *SLOW, DLT_LOAD)),
        *_near(content),
        *_far(content),
        *_small_pages(content),
        Scenario(ALL_QUIET, Content(0, FAR_SECONDS, organizations=ORGANIZATIONS), ("tap-8",)),
        Scenario(
            LARGE_AMONG_QUIET,
            content(100_000, FAR_SECONDS, shape="even", organizations=ORGANIZATIONS),
            ("tap-8",),
        ),
        Scenario("quiet", content(50_000), ("tap-4", "dlt", "airbyte", "usual")),
    ]


def _near(content: Callable[..., Content]) -> list[Scenario]:
    """Return scenarios with a service on the same machine."""
    return [
        Scenario("near", content(50_000), (*SLOW, DLT_LOAD)),
        Scenario("near-gzip", content(50_000, gzip=True), (*OTHERS, "usual", "usual-msgspec")),
        # Together as many events as "near-long", so the buffer can become as full in one of them.
        Scenario("near-short", content(200_000), ("tap-8",), runs=5),
        Scenario("near-long", content(1_000_000), (*FAST, "shaped", "own-airbyte", *EXPORTS)),
        Scenario("near-long-gzip", content(200_000, gzip=True), FAST),
    ]


def _far(content: Callable[..., Content]) -> list[Scenario]:
    """Return scenarios with a service that takes a while to respond."""
    far, far_gzip = content(30_000, FAR_SECONDS), content(30_000, FAR_SECONDS, gzip=True)
    return [
        Scenario("mid", content(30_000, MID_SECONDS), (*FAST, *OTHERS)),
        Scenario("mid-gzip", content(30_000, MID_SECONDS, gzip=True), (*FAST, *OTHERS)),
        Scenario("far", far, ("bare", "tap-4", "tap-8", *SLOW)),
        Scenario("far-gzip", far_gzip, ("bare", "tap-4", "tap-8", *OTHERS)),
        Scenario("far-long", content(200_000, FAR_SECONDS), ("tap-1", "tap-4", "tap-8")),
        *(
            Scenario(name, content(200_000, FAR_SECONDS, hours_earlier=hours), ("tap-4", "tap-8"))
            for name, hours in FAR_EARLIER.items()
        ),
        Scenario("far-even", content(200_000, FAR_SECONDS, shape="even"), ("tap-8",)),
        Scenario("far-full", content(1_000_000, FAR_SECONDS), ("tap-8",)),
    ]


def _small_pages(content: Callable[..., Content]) -> list[Scenario]:
    """Return scenarios with many pages of few events, which compare the number of requests."""
    shapes = ("one burst", "bursts of seconds", "ended a year ago", "ties")
    contents = {shape: content(20_000, MID_SECONDS, shape=shape) for shape in shapes}
    contents["3 pages"] = Content(300, MID_SECONDS)
    return [
        Scenario(name, each, ("tap-8",), page_size=SMALL_PAGE) for name, each in contents.items()
    ]


def limited(wanted: Sequence[Scenario], names: Sequence[str]) -> list[Scenario]:
    """Return the scenarios with these candidates only."""
    return [
        msgspec.structs.replace(
            each, candidates=tuple(name for name in each.candidates if name in names)
        )
        for each in wanted
    ]


class Suite:
    """One run of the benchmarks against sandboxes that serve until its end.

    Args:
        wanted: The scenarios.
        until: The end of the range of the events.
        folder: The folder in which the states of first runs are kept for quiet runs.
    """

    def __init__(self, wanted: Sequence[Scenario], until: datetime, folder: Path) -> None:
        self._scenarios = wanted
        self._folder = folder
        self._sandboxes: dict[Content, Sandbox] = {}
        self._states: dict[str, Path] = {}
        self._until = until

    def run(self, repetitions: int) -> tuple[list[Check], list[Sample]]:
        """Count the events of all runs once, then measure all runs in turn, `repetitions` times."""
        with ExitStack() as stack:
            self._sandboxes = self._start_sandboxes(stack)
            checks = list(self._checks())
            samples = [
                sample
                for repetition in range(1, repetitions + 1)
                for scenario in self._scenarios
                for sample in self._repetition(scenario, repetition)
            ]
            return checks, samples

    def _start_sandboxes(self, stack: ExitStack) -> dict[Content, Sandbox]:
        """Start a sandbox for each content; the sandboxes generate their events in parallel."""
        wanted = {each.content for each in self._scenarios if each.candidates}
        processes = {
            content: stack.enter_context(start_sandbox(content, self._until)) for content in wanted
        }
        return {content: Sandbox(process) for content, process in processes.items()}

    # Counting

    def _checks(self) -> Iterator[Check]:
        """Count runs of this tap in every scenario; of others, only the first and the quiet one."""
        counted = set()
        for scenario in self._scenarios:
            for name in scenario.candidates:
                candidate = CANDIDATES[name]
                is_wanted = candidate.own or scenario.name == "quiet" or name not in counted
                if candidate.output and scenario.events and is_wanted:
                    counted.add(name)
                    yield self._check(scenario, name)

    def _check(self, scenario: Scenario, name: str) -> Check:
        """Count the events of a first run, or in the quiet scenario those of the run after it."""
        _log(f"count  {scenario.name:17} {name}")
        candidate = CANDIDATES[name]
        with measuring.new_job(self._settings(scenario)) as job:
            found = measuring.counted(candidate, job)
            if found.distinct != scenario.events or found.records != scenario.events:
                raise FailedError(f"{name} delivered {found} of {scenario.events} events")
            if scenario.name == "quiet":
                self._states[name] = self._save_state(name, candidate, job, found)
        if scenario.name == "quiet":
            with measuring.new_job(self._settings(scenario), self._states[name]) as job:
                found = measuring.counted(candidate, job)
        return Check(scenario.name, name, found.records, found.distinct, found.output_bytes)

    def _save_state(self, name: str, candidate: Candidate, job: Job, found: Counted) -> Path:
        """Save the state from which the next run of a candidate resumes."""
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
                _log(
                    f"{repetition:5}  {scenario.name:17} {name:14} {sample.seconds:7.2f} s"
                    f" {sample.peak_mib:5.0f} MiB {sample.requests:4} requests"
                )
                yield sample

    def _sample(self, scenario: Scenario, name: str, repetition: int) -> Sample:
        sandbox = self._sandboxes[scenario.content]
        state = self._states.get(name) if scenario.name == "quiet" else None
        before = sandbox.traffic()
        with measuring.new_job(self._settings(scenario), state) as job:
            usage = measuring.timed(CANDIDATES[name], job)
        after = sandbox.traffic()
        if after.violations > before.violations:
            raise FailedError(f"{name} sent a request that the interface forbids")
        return Sample(
            scenario.name,
            name,
            repetition,
            usage.seconds,
            usage.cpu_seconds,
            after.cpu_seconds - before.cpu_seconds,
            usage.peak_mib,
            after.requests - before.requests,
        )

    def _settings(self, scenario: Scenario) -> dict[str, Any]:
        until = scenario.content.until(self._until)
        return self._sandboxes[scenario.content].settings | {
            "start_date": f"{until - timedelta(days=DAYS):%Y-%m-%dT%H:%M:%SZ}",
            "end_date": f"{until:%Y-%m-%dT%H:%M:%SZ}",
            "is_past": scenario.content.is_past,
            "page_size": scenario.page_size,
        }


def _log(line: str) -> None:
    sys.stderr.write(line + "\n")
