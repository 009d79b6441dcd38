"""Measures the tap and real loaders, from the start of both to the end of both."""

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.candidates import OWN
from benchmarks.measuring import FailedError
from benchmarks.results import Figure, Run
from benchmarks.sandbox import Sandbox, start_sandbox
from tests.loaders.cases import CASES, Case
from tests.loaders.pipeline import Command, load, written
from tests.loaders.postgres import PostgresLoader
from tests.loaders.postgres_server import postgres_server

LOADS: Final = {
    "target-jsonl": 20_000,
    "target-duckdb": 20_000,
    "meltanolabs-target-postgres": 20_000,
    "meltanolabs-target-postgres, BATCH": 100_000,
}
"""The cases that are measured, and how many events each loads."""


def run_loads(repetitions: int, scale: float) -> list[Figure]:
    """Load events from a sandbox that responds at once into empty files and tables.

    Raises:
        FailedError: a load failed.
    """
    cases = {case.name: case for case in CASES}
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_server(Path(folder)) as PostgresLoader.server,
    ):
        return [
            _measure(cases[name], max(1000, int(events * scale)), repetitions)
            for name, events in LOADS.items()
        ]


def _measure(case: Case, events: int, repetitions: int) -> Figure:
    with start_sandbox(events, 0) as sandbox:
        runs = [Run(_seconds(case, events, sandbox), 0) for _ in range(repetitions)]
    return Figure(case.name, 0, events, runs)


def _seconds(case: Case, events: int, sandbox: Sandbox) -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        loader = case.loader(folder, case.settings)
        names = ("base_url", "organization_id", "access_token")
        settings = {name: sandbox.settings[name] for name in names} | case.tap_settings(folder)
        config = written(folder / "tap.json", settings)
        tap: Command = [OWN / "tap-audit-events", "--config", config]
        started = time.perf_counter()
        loaded = load([tap, *case.between(folder), loader.command()], folder, loader.environment())
        seconds = time.perf_counter() - started
        if set(loaded.exit_codes) != {0}:
            raise FailedError(f"{case.name}: {loaded.log[-4000:]}")
        if (found := len(set(loader.ids()))) != events:
            raise FailedError(f"{case.name}: {found} of {events} events were loaded")
        return seconds


if __name__ == "__main__":  # a process of its own: the peak of a child is never below its parent's
    figures = run_loads(int(sys.argv[1]), float(sys.argv[2]))
    sys.stdout.buffer.write(msgspec.json.encode(figures))
