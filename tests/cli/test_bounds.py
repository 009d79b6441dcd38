"""The memory of an export does not grow with the number of events, and large events fit too."""

import random
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from benchmarks.memory import PeakMemory
from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import exported, history
from tests.forking import COMMAND
from tests.integrations.pipeline import NOON

MAX_MEBIBYTES = 300


def peak_mebibytes(command: Command, *arguments: str) -> float:
    """Run the command in an interpreter of its own, and return its peak memory."""
    started = [sys.executable, "-m", COMMAND, *arguments]
    run = subprocess.Popen(started, cwd=command.folder, env=command.variables())
    with PeakMemory(run.pid) as memory:
        assert run.wait(600) == 0
    return memory.mib


@pytest.mark.long
@pytest.mark.parametrize("to", ["a.parquet", "a.duckdb", "a/", "a.jsonl"])
def test_many_events_fit_into_300_mebibytes(to: str, service: Service, command: Command) -> None:
    """An export with state copies the old events into a new file, which fits as well.

    `make bench` measures a million events.
    """
    service.add_generated(400_000, 30, 1, NOON)
    arguments = ("export", "--to", to, "--state", "s.json")
    assert peak_mebibytes(command, *arguments) < MAX_MEBIBYTES

    service.add([an_event(id="new", at=f"{datetime.now(UTC):%Y-%m-%d}T00:00:00Z")])
    assert peak_mebibytes(command, *arguments) < MAX_MEBIBYTES


@pytest.mark.long
@pytest.mark.parametrize("to", ["a.parquet", "a.duckdb", "a/", "a.jsonl.gz"])
def test_large_events_are_exported(to: str, service: Service, command: Command) -> None:
    """DuckDB would need more memory for these events than its usual limit allows."""
    choose = random.Random(1)
    events = [
        each | {"action": {"type": "large", "details": {"x": choose.randbytes(30_000).hex()}}}
        for each in history(2500)
    ]
    service.add(events)

    command("export", "--to", to).raise_for_exit_code()

    assert exported(command.folder / to) == events
