"""Runs `audit-events verify`, and reads its counts."""

import json
from collections.abc import Iterable
from typing import Any

from tests.cli.command import Command, Done
from tests.cli.exported import history

EVENTS = history(200)


def lines(events: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def counts(done: Done) -> dict[str, dict[str, int]]:
    """The counts of each day."""
    return {row.pop("day"): row for row in json.loads(done.stdout)}


def verify(command: Command, against: str, *arguments: str, exit_code: int = 0) -> Done:
    done = command("verify", "--against", against, "--format", "json", *arguments)
    assert done.exit_code == exit_code, done.log
    return done
