"""An export that is killed at any point leaves the complete old output, or the complete new one."""

import os
import stat

import pytest

from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.exported import FORMATS, Event, history
from tests.outputs.killing import NEW, OLD, deaths, found, ids

EACH_FORMAT = [
    pytest.param(to, marks=() if to == "events.jsonl" else pytest.mark.long) for to in FORMATS
]
"""Only long runs test every format step by step, as the journal is the same for all."""


@pytest.mark.parametrize("to", EACH_FORMAT)
@pytest.mark.parametrize("old", [OLD, pytest.param([], marks=pytest.mark.long)])
def test_a_run_with_state_that_is_killed_at_any_step_loses_and_repeats_nothing(
    old: list[Event], to: str, service: Service, command: Command
) -> None:
    """After a kill, a file is either old or new. A folder is complete after the next run."""
    arguments = ("export", "--to", to, "--state", "s.json")
    service.add(old)
    command(*arguments).raise_for_exit_code()
    service.add(NEW)
    seen = set()

    for step in deaths(command, *arguments):
        if not to.endswith("/"):
            now = found(command, to)
            assert now in (ids(old), ids(old + NEW)), step
            seen.add(len(now))
        command(*arguments).raise_for_exit_code()
        assert found(command, to) == ids(old + NEW), step
        assert command.left_over == [], step
    assert seen == set() or len(seen) == 2


@pytest.mark.parametrize("to", EACH_FORMAT)
def test_a_run_without_state_that_is_killed_at_any_step_leaves_the_old_or_the_new_output(
    to: str, service: Service, command: Command
) -> None:
    is_folder = to.endswith("/")
    old: list[Event] = [] if is_folder else OLD
    if not is_folder:
        service.add(OLD)
        command("export", "--to", to).raise_for_exit_code()
    service.add(NEW)
    new = ids(old + NEW)

    for step in deaths(command, "export", "--to", to):
        now = found(command, to)
        assert now in (ids(old), new), step
        if now != new or not is_folder:
            command("export", "--to", to).raise_for_exit_code()
        assert found(command, to) == new, step


@pytest.mark.parametrize(
    "to", ["events.jsonl", pytest.param("events.duckdb", marks=pytest.mark.long)]
)
def test_nobody_else_may_read_a_file_while_it_is_extended(
    to: str, service: Service, command: Command
) -> None:
    """The new file has the mode of the old one from the beginning, and finally its owner."""
    arguments = ("export", "--to", to, "--state", "s.json")
    service.add(OLD)
    command(*arguments).raise_for_exit_code()
    path = command.folder / to
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 1234, 1234)
    owner = path.stat().st_uid
    service.add(NEW)

    modes = {
        stat.S_IMODE(each.stat().st_mode)
        for _ in deaths(command, *arguments)
        for each in command.folder.glob(f".{to}*.new")
    }
    os.chown(path, owner, -1)  # the runs above began with copies, which have another owner
    service.add(history(10, start=120))
    command(*arguments).raise_for_exit_code()

    assert modes == {0o600}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_uid == owner


@pytest.mark.parametrize("to", [to for to in FORMATS if not to.endswith("/")])
@pytest.mark.parametrize("state", [[], ["--state", "s.json"]])
def test_a_file_is_replaced_and_never_changed_in_place(
    to: str, state: list[str], service: Service, command: Command
) -> None:
    """If a library's write is interrupted by a kill or a full disk, the old file is intact."""
    arguments = ("export", "--to", to, *state)
    service.add(OLD)
    command(*arguments).raise_for_exit_code()
    before = (command.folder / to).read_bytes()
    link = command.folder / "link"
    link.hardlink_to(command.folder / to)
    service.add(NEW)

    command(*arguments).raise_for_exit_code()

    assert found(command, to) == ids(OLD + NEW)
    assert link.read_bytes() == before
