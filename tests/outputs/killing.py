"""Kills an export at each of its steps, one after the other."""

import shutil
import signal
from collections.abc import Iterator

import pytest

from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.exported import Event, exported, history

DYING = "tests.cli.dying"
OLD, NEW = history(50), history(70, start=50)


def ids(events: list[Event]) -> list[str]:
    return sorted(each["id"] for each in events)


def found(command: Command, to: str) -> list[str]:
    """The ids that a reader would find; readers do not see incomplete files."""
    return ids(exported(command.folder / to))


def old_is_exported(service: Service, command: Command, *arguments: str) -> None:
    """Export the old events, then add the new ones to the service."""
    service.add(OLD)
    command(*arguments).raise_for_exit_code()
    service.add(NEW)


def deaths(command: Command, *arguments: str) -> Iterator[int]:
    """Run the command again and again, each time killed one step later, until it ends by itself.

    Each run begins with the folder as it was.
    """
    before = command.folder.with_name("before")
    shutil.copytree(command.folder, before)
    for step in range(1, 100):
        shutil.rmtree(command.folder)
        shutil.copytree(before, command.folder)
        done = command(*arguments, module=DYING, DIE_AT=str(step))
        yield step
        if done.exit_code == 0:
            assert step > 4, "nothing was killed"
            return
        assert done.exit_code == -signal.SIGKILL, done.log
    pytest.fail("it never ends")
