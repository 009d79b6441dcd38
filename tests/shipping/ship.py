"""Runs `audit-events ship` to the receiver of a test."""

import json
from pathlib import Path
from typing import Any

from tests.cli.command import Command, Done
from tests.cli.exported import Event, history
from tests.shipping.receiver import Receiver

EVENTS = history(40)
IDS = [each["id"] for each in EVENTS]
STATE = "s.json"
SECRET = "the-receivers-own-secret"
OWN = {"AUDIT_EVENTS_RECEIVER_SECRET": SECRET}
NO_RETRIES = {"TAP_AUDIT_EVENTS_MAX_RETRIES": "0"}


def arguments(to: Receiver | str, *more: str) -> tuple[str, ...]:
    url = to if isinstance(to, str) else to.url
    return ("ship", "--to", url, "--state", STATE, *more)


def ship(command: Command, to: Receiver | str, *more: str, **environment: str) -> Done:
    """Run the command once; it leaves no hidden files."""
    done = command(*arguments(to, *more), **environment)
    assert command.left_over == []
    return done


def state_of(command: Command) -> dict[str, Any] | None:
    """The content of the state file, None if there is none."""
    path: Path = command.folder / STATE
    return json.loads(path.read_text()) if path.exists() else None


def shipped_later(command: Command, receiver: Receiver, **environment: str) -> list[str]:
    """Run the command again with a receiver that behaves, and return what arrives."""
    before = len(receiver.ids)
    ship(command, receiver, **environment).raise_for_exit_code()
    return receiver.ids[before:]


def ids(events: list[Event]) -> list[str]:
    return [each["id"] for each in events]
