"""Measures everything and writes `results.json`: ``make bench``."""

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.candidates import AIRBYTE, CANDIDATES, DLT
from benchmarks.displaced import CANDIDATE, run_displaced
from benchmarks.lines import count_lines
from benchmarks.measuring import FailedError
from benchmarks.results import DEFAULT_REPETITIONS, RESULTS, Loads, Results, save
from benchmarks.suite import Suite, limited, scenarios
from benchmarks.tables import all_parts

OWN_PACKAGES: Final = ("tap-audit-events", "singer-sdk", "requests", "urllib3", "msgspec")
OTHERS: Final = {"dlt": DLT, "airbyte-cdk": AIRBYTE}

QUICK: Final = 0.05
"""The share of the events in a trial run."""

DISPLACED_RUNS: Final = 50


def machine() -> dict[str, str]:
    return {
        "processor": _processor(),
        "cores": str(_cores()),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    text = information.read_text() if information.exists() else ""
    named = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return named[1] if named else platform.machine()


def versions() -> dict[str, str]:
    """Return the versions of the compared packages, each from its own environment."""
    found = {name: version(name) for name in OWN_PACKAGES}
    for name, environment in OTHERS.items():
        code = f"import importlib.metadata as m; print(m.version({name!r}), end='')"
        command = [str(environment / "python"), "-c", code]
        found[name] = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return found


def measure(repetitions: int, scale: float, only: Sequence[str]) -> Results:
    wanted = limited(scenarios(scale), only)
    until = datetime.now(UTC).replace(microsecond=0)
    runs = max(1, int(DISPLACED_RUNS * scale)) if CANDIDATE in only else 0
    with tempfile.TemporaryDirectory() as folder:
        checks, samples = Suite(wanted, until, Path(folder)).run(repetitions)
    loads = run_loads(repetitions, scale, until) if CANDIDATE in only else Loads({}, [])
    return Results(
        f"{until:%Y-%m-%d}",
        machine(),
        versions() | loads.versions,
        repetitions,
        scale,
        count_lines(),
        wanted,
        checks,
        samples,
        run_displaced(runs, until),
        loads.loads,
        run_steps(until),
    )


def run_loads(repetitions: int, scale: float, until: datetime) -> Loads:
    """Load by each loader, in a separate process.

    Raises:
        FailedError: a load failed.
    """
    arguments = [str(repetitions), str(scale), until.isoformat()]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.loading", *arguments],
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise FailedError("a load failed; see above")
    return msgspec.json.decode(done.stdout, type=Loads)


def run_steps(until: datetime) -> dict[str, float]:
    """Return the microseconds for each event, by step, measured in a separate process."""
    command = [sys.executable, "-m", "benchmarks.steps", until.isoformat()]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=dict[str, float])


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=DEFAULT_REPETITIONS)
    parser.add_argument("--only", nargs="+", choices=CANDIDATES, default=list(CANDIDATES))
    parser.add_argument("--scale", type=float, default=1.0, help="the share of the events")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="few events, one repetition; print the tables and write no file",
    )
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users' Pythons compile each module once
    try:
        if given.quick:
            sys.stdout.write(all_parts(measure(1, QUICK, given.only)))
        else:
            save(measure(given.repetitions, given.scale, given.only), given.output)
    except FailedError as error:
        sys.exit(f"benchmarks: {error}")


if __name__ == "__main__":
    main()
