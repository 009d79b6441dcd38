"""Measures everything, writes `results.json` and updates `docs/performance.md`: ``make bench``."""

import argparse
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace as replaced

from benchmarks.candidates import AIRBYTE, DLT, PROJECT, TOOLS, Candidate
from benchmarks.measuring import FailedError, counted, new_job, timed
from benchmarks.results import Figure, Results, load, save
from benchmarks.sandbox import Sandbox, start_sandbox

NEAR, FAR = 0, 100
LATENCIES: Final = (20, FAR, 300)
"""The milliseconds of a response for which the time of a first load is measured."""

COMPARED_EVENTS: Final = 50_000
FIRST_LOAD_EVENTS: Final = 200_000
QUICK: Final = 0.05
"""The share of the events in a trial run."""

OWN_PACKAGES: Final = (
    "tap-audit-events",
    "singer-sdk",
    "requests",
    "msgspec",
    "duckdb",
    "psycopg",
    "pyarrow",
)
POSTGRES_LOADER: Final = "meltanolabs-target-postgres"
SLOWER: Final = 0.8
"""With ``--check``: the least share of the earlier lead that is not called a slow-down."""


def measure(repetitions: int, scale: float) -> Results:
    """Run everything.

    Raises:
        FailedError: a candidate failed, or did not deliver every event once.
    """
    figures = [
        *compare(repetitions, scale),
        *first_loads(repetitions, scale),
        *loads(repetitions, scale),
    ]
    return Results(f"{datetime.now(UTC):%Y-%m-%d}", machine(), versions(), repetitions, figures)


def compare(repetitions: int, scale: float) -> Iterator[Figure]:
    """Run each tool against a near and a far service, and again if nothing is new."""
    events = int(COMPARED_EVENTS * scale)
    for milliseconds in (NEAR, FAR):
        with start_sandbox(events, milliseconds) as sandbox:
            for name, candidate in TOOLS.items():
                yield _figure(name, candidate, sandbox, repetitions)
            if milliseconds == NEAR:
                quiet = {name: each for name, each in TOOLS.items() if name != "dlt-days"}
                for name, candidate in quiet.items():  # days in parallel keep no state
                    yield _quiet(name, candidate, sandbox, repetitions)


def first_loads(repetitions: int, scale: float) -> Iterator[Figure]:
    events = int(FIRST_LOAD_EVENTS * scale)
    for milliseconds in LATENCIES:
        with start_sandbox(events, milliseconds) as sandbox:
            for name in ("tap-4", "tap-8"):
                figure = _figure(name, TOOLS[name], sandbox, repetitions)
                yield replaced(figure, candidate=f"first load, {name}")


def loads(repetitions: int, scale: float) -> list[Figure]:
    """Run the tap with real loaders: see `loading`."""
    command = [sys.executable, "-m", "benchmarks.loading", str(repetitions), str(scale)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise FailedError("a load failed; see above")
    return msgspec.json.decode(done.stdout, type=list[Figure])


def _figure(
    name: str,
    candidate: Candidate,
    sandbox: Sandbox,
    repetitions: int,
) -> Figure:
    """Check once that every event is delivered, then measure."""
    before = sandbox.requests()
    with new_job(sandbox.settings) as job:
        found = counted(candidate, job)
    if (found.events, found.distinct) != (sandbox.events, sandbox.events):
        raise FailedError(f"{candidate.label}: {found[:2]} of {sandbox.events} events")
    requests = sandbox.requests() - before
    runs = []
    for _ in range(repetitions):
        with new_job(sandbox.settings) as job:
            runs.append(timed(candidate, job))
    return Figure(name, sandbox.milliseconds, sandbox.events, runs, requests).shown()


def _quiet(name: str, candidate: Candidate, sandbox: Sandbox, repetitions: int) -> Figure:
    """Measure runs that resume from a run which has read everything."""
    with new_job(sandbox.settings) as first:
        job = replace(first, state=counted(candidate, first).state)
        before = sandbox.requests()
        found = counted(candidate, job)
        requests = sandbox.requests() - before
        runs = [timed(candidate, job) for _ in range(repetitions)]
    return Figure(name, NEAR, found.events, runs, requests, is_quiet=True).shown()


def machine() -> dict[str, str]:
    information = Path("/proc/cpuinfo")
    text = information.read_text() if information.exists() else ""
    named = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return {
        "processor": named[1] if named else platform.machine(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """The versions of the compared packages, each from its own environment."""
    found = {name: version(name) for name in OWN_PACKAGES}
    loader = PROJECT / ".tools" / f"loader-{POSTGRES_LOADER}" / "bin"
    others = {"dlt": DLT, "airbyte-cdk": AIRBYTE, POSTGRES_LOADER: loader}
    for name, environment in others.items():
        code = f"import importlib.metadata as m; print(m.version({name!r}), end='')"
        command = [str(environment / "python"), "-c", code]
        found[name] = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return found


def slow_downs(before: Results, now: Results) -> list[str]:
    """Say where the tap's lead over the usual SDK tap has become much smaller than it was.

    Leads of two machines can be compared; seconds cannot.
    """
    lost = []
    for milliseconds in (NEAR, FAR):
        for name in ("tap-4", "tap-8", "own-airbyte"):
            was, is_now = (
                each.find("usual", milliseconds).seconds / each.find(name, milliseconds).seconds
                for each in (before, now)
            )
            if is_now < SLOWER * was:
                lost.append(
                    f"{TOOLS[name].label}, {milliseconds} ms: {is_now:.1f} times, was {was:.1f}"
                )
    return lost


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument(
        "--quick", action="store_true", help="few events, one repetition; change no file"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare the tools only, change no file, and fail if the tap has become slower",
    )
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users' Pythons compile each module once
    try:
        if given.check:
            before = load()
            now = replaced(before, figures=list(compare(given.repetitions, 1)))
            if lost := slow_downs(before, now):
                sys.exit("\n".join(["benchmarks: slower than before:", *lost]))
        elif given.quick:
            measure(1, QUICK)
        else:
            save(measure(given.repetitions, 1))
    except FailedError as error:
        sys.exit(f"benchmarks: {error}")


if __name__ == "__main__":
    main()
