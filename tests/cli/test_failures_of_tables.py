"""A DuckDB file that other programs use, move or damage: no event is lost or written twice."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.cli.exported import expected, exported
from tests.cli.failing import EVENTS, SMALL_PAGES, refused
from tests.outputs.opened import begun, new_output, page_of


def test_a_file_that_another_process_has_open_is_an_error(
    service: Service, command: Command
) -> None:
    service.add(EVENTS)
    path = command.folder / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1")

        done = command("export", "--to", "a.duckdb")

    assert "another process has it open: close it there" in refused(done)
    command("export", "--to", "a.duckdb").raise_for_exit_code()


def leave_a_log(path: Path, statement: str) -> None:
    """Execute a statement in a program that ends at once: only the log next to the file has it."""
    code = (
        "import duckdb, os, sys\n"
        "connection = duckdb.connect(sys.argv[1])\n"
        "connection.execute(sys.argv[2])\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path), statement], check=True)


def test_the_log_of_a_removed_file_does_not_damage_the_new_one(
    service: Service, command: Command
) -> None:
    """DuckDB would apply the old log when it opens the new file."""
    path = command.folder / "a.duckdb"
    leave_a_log(path, "CREATE TABLE audit_events_state (state VARCHAR)")
    path.unlink()
    assert [each.name for each in command.folder.iterdir()] == ["a.duckdb.wal"]
    service.add(EVENTS)

    for _ in range(2):
        command("export", "--to", "a.duckdb", "--state", "s.json").raise_for_exit_code()

    assert exported(path) == expected(EVENTS)


def test_a_table_that_another_process_creates_meanwhile_stays(
    service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=503@5")])
    path = command.folder / "a.duckdb"

    with command.started("export", "--to", "a.duckdb", **SMALL_PAGES) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE mine AS SELECT 42")
        assert run.wait(60) == 1
        assert b"another process has created it in the meantime" in run.stderr.read()

    with duckdb.connect(str(path)) as connection:
        assert connection.execute("FROM mine").fetchall() == [(42,)]
    assert command.left_over == []


HOLDING = (
    "import duckdb, sys\n"
    "connection = duckdb.connect(sys.argv[1], read_only=True)\n"
    "print('open', flush=True)\n"
    "sys.stdin.read()"
)
"""A reader that keeps a file open until its input ends."""


@pytest.mark.parametrize("has_state", [True, False])
def test_a_file_can_be_read_and_changed_while_the_service_is_read(
    has_state: bool, tmp_path: Path
) -> None:
    """A dashboard may keep it open all the time, and what another program writes is kept."""
    path = tmp_path / "a.duckdb"

    state = "s.json" if has_state else None
    output = begun(tmp_path, "a.duckdb", state)
    output.write(page_of(EVENTS[:50]))
    output.commit({"until": 50})
    output = begun(tmp_path, "a.duckdb", state)
    output.write(page_of(EVENTS[50:]))
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 42")
    command = [sys.executable, "-c", HOLDING, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"open\n"
        output.commit({"until": 100})
        reader.communicate()

    assert exported(path) == expected(EVENTS if has_state else EVENTS[50:])
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("FROM mine").fetchall() == [(42,)]
    assert [each.name for each in tmp_path.glob(".*")] == []


def test_events_that_something_else_adds_meanwhile_are_not_added_again(tmp_path: Path) -> None:
    """For example a backup that was put back: its state does not fit the events read."""
    path = tmp_path / "a.duckdb"
    for start, end in ((0, 20), (20, 50)):
        output = begun(tmp_path, "a.duckdb")
        output.write(page_of(EVENTS[start:end]))
        output.commit({"until": end})
        if start == 0:
            backup = path.read_bytes()
    output = begun(tmp_path, "a.duckdb")
    output.write(page_of(EVENTS[50:]))
    path.write_bytes(backup)

    with pytest.raises(SettingsError, match="something else has changed its events"):
        output.commit({"until": 100})
    output.discard()

    assert exported(path) == expected(EVENTS[:20])
    assert new_output(tmp_path, "a.duckdb").begin() == {"until": 20}
    assert [each.name for each in tmp_path.glob(".*")] == []


def test_the_events_of_a_file_that_is_moved_meanwhile_are_not_written_again(
    service: Service, command: Command
) -> None:
    """A file may be archived at the end of a month; the new one must not begin with its events."""
    arguments = ("export", "--to", "a.duckdb", "--state", "s.json")
    path, archive = command.folder / "a.duckdb", command.folder / "archive.duckdb"
    service.add(EVENTS[:50])
    command(*arguments).raise_for_exit_code()
    service.add(EVENTS[50:])
    service.add_faults([Fault.parse("status:code=503@5")])

    with command.started(*arguments, **SMALL_PAGES) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        path.rename(archive)
        assert run.wait(60) == 1
        assert b"something else has moved it during the export" in run.stderr.read()
    assert command.left_over == []

    command(*arguments).raise_for_exit_code()
    assert exported(archive) + exported(path) == expected(EVENTS)
