"""An export that is killed anywhere leaves the old output whole, or the new one."""

import os
import random
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.cli.exported import EVERY_FORMAT, FORMATS, Event, expected, exported, history

DYING = "tests.cli.dying"

EACH_FORMAT = [
    pytest.param(to, marks=() if to == "events.jsonl" else pytest.mark.long) for to in FORMATS
]
"""The journal is the same for all; each of them, step by step, takes its time."""
OLD, NEW = history(50), history(70, start=50)


def ids(events: list[Event]) -> list[str]:
    return sorted(each["id"] for each in events)


def found(command: Command, to: str) -> list[str]:
    """What a reader would find; a file in the making is not complete, and not seen."""
    return ids(exported(command.folder / to))


def old_is_exported(service: Service, command: Command, *arguments: str) -> None:
    """Export the old events; then there are new ones."""
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


@pytest.mark.parametrize("to", EACH_FORMAT)
def test_a_run_with_state_that_is_killed_at_any_step_loses_and_repeats_nothing(
    to: str, service: Service, command: Command
) -> None:
    """After a kill, a file is old or new; a folder is once the next run has ended."""
    arguments = ("export", "--to", to, "--state", "s.json")
    old_is_exported(service, command, *arguments)
    seen = set()

    for step in deaths(command, *arguments):
        if not to.endswith("/"):
            now = found(command, to)
            assert now in (ids(OLD), ids(OLD + NEW)), step
            seen.add(len(now))
        command(*arguments).raise_for_exit_code()
        assert found(command, to) == ids(OLD + NEW), step
        assert command.left_over == [], step
    assert seen == set() or len(seen) == 2


@pytest.mark.long
@pytest.mark.parametrize("to", FORMATS)
def test_a_first_run_that_is_killed_at_any_step_can_be_repeated(
    to: str, service: Service, command: Command
) -> None:
    arguments = ("export", "--to", to, "--state", "s.json")
    service.add(OLD)

    for step in deaths(command, *arguments):
        if not to.endswith("/") and (command.folder / to).exists():
            assert found(command, to) == ids(OLD), step
        command(*arguments).raise_for_exit_code()
        assert exported(command.folder / to) == expected(OLD), step
        assert (command.folder / "s.json").exists(), step
        assert command.left_over == [], step


@pytest.mark.parametrize("to", EACH_FORMAT)
def test_a_run_without_state_that_is_killed_at_any_step_leaves_old_or_new(
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


@pytest.mark.long
@pytest.mark.parametrize("to", ["out/events.jsonl", "out/events.duckdb", "out/events/"])
def test_an_output_that_is_moved_away_after_a_kill_loses_and_repeats_nothing(
    to: str, service: Service, command: Command
) -> None:
    """The next run begins a new output with what is new, or refuses until the old one is back."""
    arguments = ("export", "--to", to, "--state", "s.json")
    out, archive = command.folder / "out", command.folder / "archive"
    out.mkdir()
    old_is_exported(service, command, *arguments)
    refused = 0

    for step in deaths(command, *arguments):
        out.rename(archive)
        out.mkdir()
        done = command(*arguments)
        if done.exit_code != 0:
            refused += 1
            assert done.error.startswith("AE-EXPORT: An export with "), step
            assert list(out.iterdir()) == [], step
            out.rmdir()
            archive.rename(out)
            command(*arguments).raise_for_exit_code()
        assert sorted(found(command, to) + found(command, f"archive/{to[4:]}")) == ids(OLD + NEW)
    assert refused > 0


@pytest.mark.long
def test_a_table_that_somebody_adds_after_a_kill_stays(service: Service, command: Command) -> None:
    """The copy that waits, hidden, does not have it: so it does not take the place of the file."""
    arguments = ("export", "--to", "events.duckdb", "--state", "s.json")
    old_is_exported(service, command, *arguments)

    for step in deaths(command, *arguments):
        with duckdb.connect(command.folder / "events.duckdb") as connection:
            connection.execute("CREATE TABLE added AS SELECT 42 AS number")
        command(*arguments).raise_for_exit_code()
        assert found(command, "events.duckdb") == ids(OLD + NEW), step
        with duckdb.connect(command.folder / "events.duckdb") as connection:
            assert connection.table("added").fetchall() == [(42,)], step


@pytest.mark.parametrize("is_moved", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_file_that_is_moved_or_changed_after_a_kill_loses_and_repeats_nothing(
    is_moved: bool, service: Service, command: Command
) -> None:
    """The file alone: the complete new one waits next to it, hidden."""
    arguments = ("export", "--to", "events.jsonl", "--state", "s.json")
    old_is_exported(service, command, *arguments)
    added = b'{"id":"added","occurredAt":"2024-05-06T07:00:00Z"}\n'
    refused = 0

    for step in deaths(command, *arguments):
        events, archived = command.folder / "events.jsonl", command.folder / "archived.jsonl"
        before = events.read_bytes()
        if is_moved:
            events.rename(archived)
        else:
            events.write_bytes(before + added)
        done = command(*arguments)
        if done.exit_code != 0:
            refused += 1
            assert done.error.startswith("AE-EXPORT: "), step
        if not is_moved:
            assert done.exit_code != 0
            assert events.read_bytes() == before + added, step
            events.write_bytes(before)
        elif done.exit_code != 0:
            archived.rename(events)
        command(*arguments).raise_for_exit_code()
        archive = found(command, "archived.jsonl") if archived.exists() else []
        assert sorted(found(command, "events.jsonl") + archive) == ids(OLD + NEW), step
    assert refused > 0


@pytest.mark.long
def test_a_kill_after_the_old_file_was_moved_away_loses_and_repeats_nothing(
    service: Service, command: Command
) -> None:
    """The new file begins with what is new: it does not take the place of an old one."""
    arguments = ("export", "--to", "events.jsonl", "--state", "s.json")
    old_is_exported(service, command, *arguments)
    (command.folder / "events.jsonl").rename(command.folder / "archived.jsonl")

    for step in deaths(command, *arguments):
        command(*arguments).raise_for_exit_code()
        assert found(command, "events.jsonl") == ids(NEW), step


@pytest.mark.parametrize("to", ["events.jsonl", pytest.param("events/", marks=pytest.mark.long)])
def test_a_completed_file_that_somebody_removed_after_a_kill_is_not_lost_silently(
    to: str, service: Service, command: Command
) -> None:
    """Hidden files look as if nobody needed them."""
    arguments = ("export", "--to", to, "--state", "s.json")
    old_is_exported(service, command, *arguments)
    refused = 0

    for step in deaths(command, *arguments):
        for hidden in list(command.folder.glob("**/.*new*")):
            shutil.rmtree(hidden) if hidden.is_dir() else hidden.unlink()
        before = found(command, to)
        done = command(*arguments)
        if done.exit_code != 0:
            refused += 1
            assert done.error.startswith("AE-EXPORT: An export with "), step
            assert found(command, to) == before, step
            shutil.rmtree(command.folder)
            command.folder.mkdir()
            command(*arguments).raise_for_exit_code()
        assert found(command, to) == ids(OLD + NEW), step
    assert refused > 0


@pytest.mark.parametrize(
    "to",
    [
        *(pytest.param(to, marks=pytest.mark.long) for to in ("events.duckdb", "events.parquet")),
        "events.jsonl",
    ],
)
def test_nobody_else_may_read_a_file_while_it_is_extended(
    to: str, service: Service, command: Command
) -> None:
    """The file that takes its place has its mode from the beginning, and its owner."""
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
    os.chown(path, owner, -1)  # the runs above began with copies
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
    """A kill inside a library's own writing, or a full disk there, cannot damage the old file."""
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


@pytest.mark.long
@pytest.mark.parametrize("to", EVERY_FORMAT)
@pytest.mark.parametrize("seed", range(8))
def test_runs_that_are_killed_at_any_time_lose_and_repeat_nothing(
    to: str, seed: int, service: Service, command: Command
) -> None:
    """Every fifth run ends by itself; the others are killed before they usually would.

    Events are added between them.
    """
    choose = random.Random(seed)
    arguments = ("export", "--to", to, "--state", "s.json")
    added: list[Event] = []
    usual_seconds, killed = 0.0, 0
    for number in range(16):
        more = history(choose.choice([0, 1, 30, 300]), start=len(added))
        service.add(more)
        added += more
        if number % 5 == 0:
            started_at = time.monotonic()
            command(*arguments).raise_for_exit_code()
            usual_seconds = time.monotonic() - started_at
            continue
        with command.started(*arguments) as run:
            try:
                run.wait(choose.uniform(0.0, usual_seconds))
            except subprocess.TimeoutExpired:
                run.kill()
                killed += 1

    assert killed > 0
    command(*arguments).raise_for_exit_code()
    assert found(command, to) == ids(added)
    assert command.left_over == []


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_a_second_run_at_the_same_time_is_refused(
    to: str, service: Service, command: Command
) -> None:
    """The first waits for its second page; the second changes nothing."""
    arguments = ("export", "--to", to, "--state", "s.json", "--config", "c.json")
    (command.folder / "c.json").write_text('{"page_size": 20}')
    service.add(OLD)
    service.add_faults([Fault.parse("status:code=429,retry-after=60@2")])
    with command.started(*arguments) as first:
        assert b"Retry 1 of 8" in first.stderr.readline()

        done = command(*arguments)

        assert done.exit_code == 1
        assert done.error.startswith("AE-BUSY: Another run is writing to ")
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 128 + signal.SIGTERM
    command(*arguments).raise_for_exit_code()
    assert found(command, to) == ids(OLD)


@pytest.mark.parametrize("state", [[], ["--state", "other.json"]])
def test_a_file_has_one_export_at_a_time_with_any_state(
    state: list[str], service: Service, command: Command
) -> None:
    """The state files differ, so that only the lock of the output keeps the runs apart."""
    service.add(OLD)
    service.add_faults([Fault.parse("status:code=429,retry-after=60@1")])
    with command.started("export", "--to", "a.jsonl", "--state", "s.json") as first:
        assert b"Retry 1 of 8" in first.stderr.readline()

        done = command("export", "--to", "a.jsonl", *state)

    assert done.error.startswith("AE-BUSY: Another run is writing to ")


def test_another_export_may_add_to_the_same_folder_meanwhile(
    service: Service, command: Command
) -> None:
    """It has a state file of its own."""
    service.add(OLD)
    service.add_faults([Fault.parse("status:code=429,retry-after=60@1")])
    with command.started("export", "--to", "a/", "--state", "s.json") as first:
        assert b"Retry 1 of 8" in first.stderr.readline()

        command("export", "--to", "a/", "--state", "other.json").raise_for_exit_code()

    assert found(command, "a/") == ids(OLD)


def test_nobody_reads_a_file_in_the_making(service: Service, command: Command) -> None:
    """The names that readers look for exist only when they are complete."""
    service.add(OLD)
    command("export", "--to", "a.jsonl", module=DYING, DIE_AT="2")

    assert not list(Path(command.folder).glob("*.jsonl"))
