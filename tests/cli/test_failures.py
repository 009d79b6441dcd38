"""What goes wrong during an export is one line, and says what the output has."""

import errno
import json
import logging
import os
import random
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.export import Export
from tap_audit_events.cli.outputs import formats, parquet_file
from tap_audit_events.cli.outputs.formats import format_of, open_output
from tap_audit_events.cli.outputs.output import Output
from tap_audit_events.cli.outputs.state_file import StateFile
from tap_audit_events.cli.terminal.reporter import Reporter
from tap_audit_events.errors.exceptions import ContractError, OutputError
from tap_audit_events.events.instants import EARLIEST
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.sandbox import Fault, Service
from tests.builders import TOO_DEEP
from tests.cli.command import Command, Done
from tests.cli.exported import EVERY_FORMAT, FORMATS, Event, expected, exported, history
from tests.cli.outputs.test_day_folder import page_of

EVENTS = history(100)
GONE = ("sh", "-c", 'mkdir gone && cd gone && rmdir "$PWD" && exec "$@"', "sh")
SMALL_PAGES = {"TAP_AUDIT_EVENTS_PAGE_SIZE": "10", "TAP_AUDIT_EVENTS_CONCURRENCY": "1"}


def refused(done: Done, code: str = "AE-EXPORT") -> str:
    assert done.exit_code == 1
    assert done.error.startswith(f"{code}: ")
    return done.error


# The service


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_an_error_in_the_middle_keeps_what_was_read_if_there_is_a_state(
    to: str, service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=403@5")])
    arguments = ("export", "--to", to, "--state", "s.json")

    done = command(*arguments, **SMALL_PAGES)

    kept = exported(command.folder / to)
    assert kept == expected(EVENTS[:40])
    assert refused(done, "AE-403").endswith(
        f"The 40 events before that are in {to} and in the state file: the next export continues"
        " after them."
    )
    command(*arguments, **SMALL_PAGES).raise_for_exit_code()
    assert exported(command.folder / to) == expected(EVENTS)
    assert command.left_over == []


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_an_error_in_the_middle_changes_nothing_without_a_state(
    to: str, service: Service, command: Command
) -> None:
    if not to.endswith("/"):
        service.add(EVENTS[:50])
        command("export", "--to", to).raise_for_exit_code()
        service.add(EVENTS[50:])
    else:
        service.add(EVENTS)
    before = exported(command.folder / to)
    requests = len(service.requests)
    service.add_faults([Fault.parse(f"status:code=403@{requests + 5}")])

    done = command("export", "--to", to, **SMALL_PAGES)

    assert refused(done, "AE-403").endswith(f" {to} is as it was before.")
    assert exported(command.folder / to) == before
    assert command.left_over == []


def test_an_error_at_once_adds_nothing(service: Service, command: Command) -> None:
    service.add_faults([Fault.parse("status:code=401@*")])

    done = command("export", "--to", "a.jsonl", "--state", "s.json")

    assert refused(done, "AE-401").endswith("Nothing was added to a.jsonl.")
    assert list(command.folder.iterdir()) == []


@pytest.mark.parametrize("to", FORMATS[:2])
def test_an_event_that_cannot_be_written_adds_nothing(to: str, tmp_path: Path) -> None:
    """The state is that of all that is read, so it must not be stored with a part of it."""
    event = b'{"id":"1","occurredAt":"2024-05-06T07:08:09Z","x":%b}' % TOO_DEEP
    last = EventPage([event], [EARLIEST], organization_id="o", shape=RecordShape(), state=dict)

    def read(state: Mapping[str, Any]) -> Generator[EventPage, None, None]:
        yield page_of(EVENTS)
        yield last

    output = open_incremental(tmp_path, to)
    reporter = Reporter(EARLIEST, quiet=True)

    with pytest.raises(ContractError, match="AE-NESTING") as raised:
        Export(read, output, to, reporter, extends=True).run()

    assert raised.value.__notes__ == [f"{to} is as it was before."]
    assert list(tmp_path.iterdir()) == []


# Signals


@pytest.mark.parametrize("to", EVERY_FORMAT)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_keeps_what_was_read_if_there_is_a_state(
    number: signal.Signals, to: str, service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=429,retry-after=60@5")])
    arguments = ("export", "--to", to, "--state", "s.json")

    with command.started(*arguments, **SMALL_PAGES) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        run.send_signal(number)
        assert run.wait(60) == 128 + number
        log = run.stderr.read().decode()

    (count,) = map(int, re.findall(r"The (\d+) events", log))  # as many as were taken by then
    assert log == (
        f"AE-STOPPED: Stopped by a signal, {number.name}. The {count} events before that are in"
        f" {to} and in the state file: the next export continues after them.\n"
    )
    assert 0 < count <= 40
    assert exported(command.folder / to) == expected(EVENTS[:count])
    command(*arguments).raise_for_exit_code()
    assert exported(command.folder / to) == expected(EVENTS)


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_a_signal_changes_nothing_without_a_state(
    to: str, service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=429,retry-after=60@5")])

    with command.started("export", "--to", to, **SMALL_PAGES) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 128 + signal.SIGTERM
        assert run.stderr.read().decode() == (
            f"AE-STOPPED: Stopped by a signal, SIGTERM. {to} is as it was before.\n"
        )

    assert list(command.folder.iterdir()) == []


# The disk


@pytest.mark.parametrize(
    "to",
    [
        pytest.param(to, marks=() if to in {"events.duckdb", "events.jsonl"} else pytest.mark.long)
        for to in FORMATS
    ],
)
@pytest.mark.parametrize("state", [pytest.param([], marks=pytest.mark.long), ["--state", "s.json"]])
def test_a_full_disk_leaves_the_output_as_it_was(
    to: str, state: list[str], service: Service, command: Command
) -> None:
    """No file may become larger than some blocks."""
    is_kept = bool(state) or not to.endswith("/")
    if is_kept:
        service.add(EVENTS[:10])
        command("export", "--to", to, *state).raise_for_exit_code()
    blocks = (command.folder / to).stat().st_size // 1024 + 1 if to.endswith(".duckdb") else 8
    service.add(varied(3000))
    before = exported(command.folder / to)
    limited = ["bash", "-c", f'ulimit -f {blocks} && exec "$@"', "bash"]

    done = command.under(limited, "export", "--to", to, *state)

    assert "The output cannot be written: " in refused(done)
    assert exported(command.folder / to) == before
    assert command.left_over == []
    if is_kept:
        command("export", "--to", to, *state).raise_for_exit_code()
        assert len(exported(command.folder / to)) == 3010


@contextmanager
def full_disk(free_bytes: int = 0) -> Iterator[None]:
    """While it lasts, no file may become larger than some bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (free_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("to", EVERY_FORMAT)
@pytest.mark.parametrize("has_state", [True, False])
def test_a_disk_without_room_for_a_byte_is_named_and_keeps_no_file(
    has_state: bool, to: str, tmp_path: Path
) -> None:
    """Also if it refuses what is still in a buffer when the export gives up."""
    path = tmp_path / to
    state_file = StateFile(tmp_path / "s.json", path) if has_state else None
    output = open_output(format_of(to), path, state_file, logging.getLogger(__name__))
    output.begin()

    with full_disk():
        with pytest.raises(OutputError, match=f"AE-EXPORT: .*{tmp_path}"):
            write_and_commit(output, EVENTS)
        output.discard()

    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


@pytest.mark.parametrize("to", ["events.parquet", "events.jsonl", "events.jsonl.gz"])
def test_a_disk_without_room_for_the_old_events_leaves_no_new_file(
    to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that grows begins with a copy of the old one."""
    monkeypatch.setattr(parquet_file, "MAX_ROWS", 50)  # so that it is written while it is copied
    path, state_path = tmp_path / to, tmp_path / "s.json"
    output = open_incremental(tmp_path, to)
    output.begin()
    write_and_commit(output, varied(300))
    before = path.read_bytes(), state_path.read_bytes()

    output = open_incremental(tmp_path, to)
    output.begin()
    with full_disk(len(before[0]) // 2):
        with pytest.raises(OutputError, match=f"AE-EXPORT: .*{tmp_path}"):
            write_and_commit(output, EVENTS)
        output.discard()

    assert (path.read_bytes(), state_path.read_bytes()) == before
    assert sorted(tmp_path.iterdir()) == sorted([path, state_path])


@pytest.mark.parametrize("to", [to for to in FORMATS if to != "events.duckdb"])
def test_a_disk_without_room_for_the_state_leaves_no_new_file(to: str, tmp_path: Path) -> None:
    """A state file replaces the old one as a whole, before the output does."""
    state_path = tmp_path / "s.json"
    output = open_incremental(tmp_path, to)
    output.begin()
    write_and_commit(output, EVENTS[:50])
    before = exported(tmp_path / to), state_path.read_bytes()

    output = open_incremental(tmp_path, to)
    output.begin()
    output.write(page_of(EVENTS[50:]))
    with full_disk(200_000):
        with pytest.raises(OutputError, match=f"AE-EXPORT: .*{tmp_path}"):
            output.commit({"until": "later" * 50_000})
        output.discard()

    assert (exported(tmp_path / to), state_path.read_bytes()) == before
    assert [each for each in tmp_path.rglob("*") if each.name.startswith(".")] == []


@pytest.mark.parametrize("to", FORMATS)
def test_an_output_that_cannot_take_its_place_is_completed_by_the_next_export(
    to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state file says where the new files belong, so they stay. DuckDB's is written again."""
    replace = os.replace

    def refuse(source: Path, final: Path) -> None:
        if final.name != "s.json":
            raise OSError(errno.EIO, "Input/output error")
        replace(source, final)

    output = open_incremental(tmp_path, to)
    output.begin()
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        with pytest.raises(OutputError, match="Input/output error"):
            write_and_commit(output, EVENTS)
    output.discard()
    assert exported(tmp_path / to) == []

    output = open_incremental(tmp_path, to)
    if not output.begin():
        write_and_commit(output, EVENTS)

    assert exported(tmp_path / to) == expected(EVENTS)
    assert [each for each in tmp_path.rglob("*") if each.name.startswith(".")] == []


def open_incremental(folder: Path, to: str) -> Output:
    path = folder / to
    state_file = StateFile(folder / "s.json", path)
    return open_output(format_of(to), path, state_file, logging.getLogger(__name__))


def write_and_commit(output: Output, events: list[Event]) -> None:
    output.write(page_of(events))
    output.commit({"until": "now"})


def varied(count: int) -> list[dict[str, object]]:
    """Events that cannot be compressed to almost nothing."""
    choose = random.Random(1)
    return [
        each | {"actor": {"type": "user", "id": choose.randbytes(200).hex()}}
        for each in history(count, start=100)
    ]


@pytest.mark.parametrize("to", EVERY_FORMAT)
@pytest.mark.parametrize("folder", ["missing", "/proc"])
def test_a_folder_that_cannot_be_written_to_is_named(
    folder: str, to: str, command: Command
) -> None:
    done = command("export", "--to", f"{folder}/{to}")

    assert f"{folder}/{to.rstrip('/')}" in refused(done)


def test_a_table_that_another_process_uses_is_named(service: Service, command: Command) -> None:
    service.add(EVENTS)
    path = command.folder / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1")

        done = command("export", "--to", "a.duckdb")

    assert "another process has it open: close it there" in refused(done)
    command("export", "--to", "a.duckdb").raise_for_exit_code()


def leave_a_log(path: Path, statement: str) -> None:
    """Execute a statement in a program that is killed: only the log next to the file has it."""
    code = (
        "import duckdb, os, sys\n"
        "connection = duckdb.connect(sys.argv[1])\n"
        "connection.execute(sys.argv[2])\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path), statement], check=True)


def test_a_log_of_a_table_that_is_gone_does_not_damage_the_new_one(
    service: Service, command: Command
) -> None:
    """DuckDB would read it the next time."""
    path = command.folder / "a.duckdb"
    leave_a_log(path, "CREATE TABLE audit_events_state (state VARCHAR)")
    path.unlink()
    assert [each.name for each in command.folder.iterdir()] == ["a.duckdb.wal"]
    service.add(EVENTS)

    for _ in range(2):
        command("export", "--to", "a.duckdb", "--state", "s.json").raise_for_exit_code()

    assert exported(path) == expected(EVENTS)


def test_a_table_that_only_a_log_holds_stays(service: Service, command: Command) -> None:
    """A program that was killed leaves a log next to the file; the file alone would not have it."""
    service.add(EVENTS)
    path = command.folder / "a.duckdb"
    leave_a_log(path, "CREATE TABLE mine AS SELECT 42")
    assert (command.folder / "a.duckdb.wal").exists()

    command("export", "--to", "a.duckdb", "--state", "s.json").raise_for_exit_code()

    with duckdb.connect(str(path)) as connection:
        assert connection.execute("FROM mine").fetchall() == [(42,)]


def test_a_table_that_another_process_makes_meanwhile_stays(
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


def test_a_table_that_is_moved_away_meanwhile_is_not_repeated(
    service: Service, command: Command
) -> None:
    """As at the end of a month: the new file would begin with the old events."""
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


def test_a_damaged_table_is_not_taken_for_one_in_use(command: Command) -> None:
    """DuckDB's message about it contains the word "block"."""
    path = command.folder / "a.duckdb"
    duckdb.connect(str(path)).close()
    path.write_bytes(path.read_bytes()[:4096].ljust(12_288, b"\0"))

    error = refused(command("export", "--to", "a.duckdb"))

    assert "Corrupt database file" in error
    assert "another process" not in error


@pytest.mark.parametrize("to", ["a.duckdb", "a.parquet"])
def test_a_file_of_another_kind_is_not_extended(
    to: str, service: Service, command: Command
) -> None:
    service.add(EVENTS)
    path = command.folder / to
    path.write_text("not what its name says" * 100)
    if to == "a.parquet":
        state = {"version": 1, "output": to, "bytes": path.stat().st_size, "state": {}}
        (command.folder / "s.json").write_text(json.dumps(state))

    refused(command("export", "--to", to, "--state", "s.json"))

    assert path.read_text() == "not what its name says" * 100
    assert command.left_over == []


# The path


@pytest.mark.parametrize("to", ["events", "events.csv", "events.json", ".parquet", "a.gz"])
def test_an_unknown_suffix_lists_the_formats(to: str, command: Command) -> None:
    error = refused(command("export", "--to", to))

    for suffix, meaning in formats.FORMATS.items():
        assert f"{suffix} ({meaning})" in error


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("export", "--to", "a.jsonl"), "AE-EXPORT"),
        (("verify", "--against", "a.jsonl"), "AE-LOADED"),
        (("verify", "--against", "/nowhere.jsonl", "--list", "a"), "AE-EXPORT"),
    ],
)
def test_a_path_without_a_place_is_one_line(
    arguments: tuple[str, ...], code: str, command: Command
) -> None:
    """A relative one in a folder that is gone, or a link to itself, which some Pythons refuse."""
    refused(command.under(GONE, *arguments), code)
    (command.folder / arguments[-1]).symlink_to(arguments[-1])
    if sys.version_info < (3, 13):
        refused(command(*arguments), code)


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_a_password_in_a_url_is_not_shown_as_a_path(scheme: str, command: Command) -> None:
    """Also if no path can be resolved, since the working directory is gone."""
    url = f"{scheme}://reader:secret-word@127.0.0.1:1/warehouse"
    done = command.under(GONE, "verify", "--against", url)
    assert done.exit_code == 1
    assert "secret-word" not in done.log


@pytest.mark.parametrize(
    ("to", "state", "needed_by"),
    [
        *((to, ["--state", "s.json"], "a state file") for to in FORMATS if ".duckdb" not in to),
        ("events.duckdb", ["--state", "s.json"], "DuckDB"),
        ("events.duckdb", [], "DuckDB"),
    ],
)
def test_a_path_that_is_not_utf_8_is_refused_before_anything_is_read(
    to: str, state: list[str], needed_by: str, service: Service, command: Command
) -> None:
    done = command("export", "--to", f"\udcff{to}", *state)

    assert f"is not UTF-8, which {needed_by} needs: choose another one" in refused(done)
    assert not service.requests
    assert list(command.folder.iterdir()) == []


def test_a_folder_that_is_not_utf_8_may_hold_the_output_and_its_state(
    service: Service, command: Command
) -> None:
    """A state file contains paths that are relative to it."""
    service.add(EVENTS)
    folder = command.folder / "\udcff"
    folder.mkdir()

    command(
        *("export", "--to", f"{folder}/a.jsonl", "--state", f"{folder}/s.json")
    ).raise_for_exit_code()

    assert exported(folder / "a.jsonl") == expected(EVENTS)


def test_a_folder_with_something_in_it_is_not_replaced(service: Service, command: Command) -> None:
    service.add(EVENTS)
    (command.folder / "days").mkdir()
    (command.folder / "days" / "mine.txt").write_text("mine")

    assert "is not empty, it has 'mine.txt': give --state with its state file" in refused(
        command("export", "--to", "days/")
    )
    assert [path.name for path in command.folder.rglob("*.*")] == ["mine.txt"]


def test_a_folder_that_has_only_hidden_files_is_refused_before_anything_is_read(
    service: Service, command: Command
) -> None:
    """As a first export with --state leaves them if it is killed. They look like nothing."""
    service.add(EVENTS)
    (command.folder / "days" / ".new-1a2b").mkdir(parents=True)

    assert "it has '.new-1a2b'" in refused(command("export", "--to", "days/"))
    assert not service.requests


@pytest.mark.parametrize(
    "arguments",
    [
        ("--to", "pipe.jsonl"),
        ("--to", "pipe.duckdb"),
        ("--to", "a.jsonl", "--state", "pipe.jsonl"),
        ("--to", "a.duckdb", "--state", "pipe.jsonl"),
    ],
)
def test_a_pipe_or_a_device_is_not_an_output(
    arguments: tuple[str, ...], service: Service, command: Command
) -> None:
    """To open it would wait without end, and to replace it would break other programs."""
    for name in ("pipe.jsonl", "pipe.duckdb"):
        os.mkfifo(command.folder / name)

    done = command("export", *arguments)

    assert f"{arguments[-1]}' exists, but is not a file" in refused(done)
    assert not service.requests


@pytest.mark.parametrize("to", ["a.parquet", "a.duckdb"])
def test_a_missing_library_is_named(
    to: str, service: Service, command: Command, tmp_path: Path
) -> None:
    """As in an installation without the extras."""
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    for name in ("pyarrow", "duckdb"):
        (blocked / f"{name}.py").write_text("raise ImportError")
    environment = ["env", f"PYTHONPATH={blocked}:{Path(__file__).parents[2]}"]

    error = refused(command.under(environment, "export", "--to", to), "AE-EXTRA")

    assert f"tap-audit-events[{'arrow' if to == 'a.parquet' else 'duckdb'}]" in error
    done = command.under(environment, "export", "--to", "a.jsonl")
    assert done.exit_code == 0, done.log
