"""Measures whole loads by the tap and real loaders into empty files and tables.

It runs in a separate process, as it imports much: the peak memory of a process is never below
that of the process that started it.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.candidates import OWN
from benchmarks.measuring import FailedError
from benchmarks.results import BATCH, COPY, Content, Load, Loads
from benchmarks.sandbox import Sandbox, start_sandbox
from tests.loaders.cases import CASES, Case
from tests.loaders.pipeline import Command, load, written
from tests.loaders.postgres import PostgresLoader
from tests.loaders.postgres_server import postgres_server

LOADS: Final = {case.name: case for case in CASES if case.is_timed}
MANY: Final = 100_000
FEW: Final = 20_000
"""Events for loaders that are not compared; most store a few thousand events a second."""


def run_loads(repetitions: int, scale: float, until: datetime) -> Loads:
    """Load the same events by each loader in turn.

    Raises:
        FailedError: a load failed.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_server(Path(folder)) as PostgresLoader.server,
    ):
        loads = [
            load
            for names, events in (([COPY, BATCH], MANY), (LOADS.keys() - {COPY, BATCH}, FEW))
            for load in _loads(sorted(names), repetitions, max(1000, int(events * scale)), until)
        ]
    versions = [case.versions() for case in LOADS.values()]
    return Loads({name: text for each in versions for name, text in each.items()}, loads)


def _loads(names: list[str], repetitions: int, events: int, until: datetime) -> Iterator[Load]:
    with start_sandbox(Content(events), until) as sandbox:
        settings = Sandbox(sandbox).settings
        for repetition in range(1, repetitions + 1):
            for name in names:
                seconds = _seconds(LOADS[name], events, settings)
                yield Load(name, repetition, events, seconds)


def _seconds(case: Case, events: int, settings: dict[str, Any]) -> float:
    """Return the time from the start of the tap and the loader to the end of both."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        loader = case.loader(folder, case.settings)
        # The range has no start and no end, as usual.
        wanted = {key: settings[key] for key in ("base_url", "organization_id", "access_token")}
        config = written(folder / "tap.json", wanted | case.tap_settings(folder))
        tap: Command = [OWN / "tap-audit-events", "--config", config]
        commands = [tap, *case.between(folder), loader.command()]
        started = time.perf_counter()
        loaded = load(commands, folder, loader.environment())
        seconds = time.perf_counter() - started
        if set(loaded.exit_codes) != {0}:
            raise FailedError(f"{case.name}: {loaded.log[-4000:]}")
        if len(set(loader.ids())) != events:
            raise FailedError(f"{len(set(loader.ids()))} of {events} events: {case.name}")
        return seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.loading", description=__doc__)
    parser.add_argument("repetitions", type=int)
    parser.add_argument("scale", type=float)
    parser.add_argument("until", type=datetime.fromisoformat)
    given = parser.parse_args()
    try:
        loads = run_loads(given.repetitions, given.scale, given.until)
    except FailedError as error:
        sys.exit(f"benchmarks: {error}")
    sys.stdout.buffer.write(msgspec.json.encode(loads))


if __name__ == "__main__":
    main()
