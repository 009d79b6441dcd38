"""The memory of an export does not grow with the number of events, and large events fit too."""

import random
import sys
from datetime import UTC, datetime

import pytest

from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import exported, history
from tests.integrations.pipeline import NOON

MEBIBYTE = 1 << 20
MOST_BYTES = 300 * MEBIBYTE


MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""A small process in between: a child begins with the peak of the process that started it."""


def peak_bytes(command: Command, *arguments: str) -> int:
    """Run the command, and return the most memory that it had."""
    done = command.under([sys.executable, "-c", MEASURE], *arguments)
    assert done.exit_code == 0, done.log
    return int(done.stdout) * (1 if sys.platform == "darwin" else 1024)


@pytest.mark.long
@pytest.mark.parametrize("to", ["a.parquet", "a.duckdb", "a/", "a.jsonl"])
def test_a_million_events_fit_into_300_mebibytes(
    to: str, service: Service, command: Command
) -> None:
    """Also if they are copied into a new file, because some are new."""
    service.add_generated(1_000_000, 30, 1, NOON)
    arguments = ("export", "--to", to, "--state", "s.json")
    assert peak_bytes(command, *arguments) < MOST_BYTES

    service.add([an_event(id="new", at=f"{datetime.now(UTC):%Y-%m-%d}T00:00:00Z")])
    assert peak_bytes(command, *arguments) < MOST_BYTES


@pytest.mark.long
@pytest.mark.parametrize("to", ["a.parquet", "a.duckdb", "a/", "a.jsonl.gz"])
def test_large_events_are_exported(to: str, service: Service, command: Command) -> None:
    """More of them than DuckDB could hold within its usual limit."""
    choose = random.Random(1)
    events = [
        each | {"action": {"type": "large", "details": {"x": choose.randbytes(30_000).hex()}}}
        for each in history(2500)
    ]
    service.add(events)

    command("export", "--to", to).raise_for_exit_code()

    assert exported(command.folder / to) == events
