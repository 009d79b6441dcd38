"""Files and tables that `audit-events verify` cannot read are named in one line."""

import errno
import os
import sqlite3
import sys
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tap_audit_events.cli.loaded.batches import Range
from tap_audit_events.cli.loaded.columns import find_columns
from tap_audit_events.cli.loaded.database import TemporaryDatabase
from tap_audit_events.cli.loaded.files import loaded_files
from tap_audit_events.errors.exceptions import OutputError, SettingsError
from tap_audit_events.events.instants import EARLIEST, LATEST
from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.loaded.test_loaded import ONE
from tests.cli.verifying import EVENTS

PASSWORD = "S3cret"

UNUSUAL = {
    "bytes as ids": (ONE | {"id": [b"\xff"]}, "not valid UTF8"),
    "lists as times": (ONE | {"occurred_at": [["2024"]]}, "occurred_at has VARCHAR[], not text"),
    "numbers as organizations": (ONE | {"organization_id": [7]}, "organization_id has BIGINT"),
    "bytes as organizations": (ONE | {"organization_id": [b"\xff"]}, "not valid UTF8"),
}
"""Columns of a Parquet file that no loader creates, and what the error says."""

NO_PLACES = {
    "a driver in the scheme": "postgresql+psycopg2://reader:S3cretS3cret@db/warehouse",
    "another database": "mysql://reader:S3cret@db/warehouse.db",
    "a connection string": "host=db user=reader PASSWORD = S3cret dbname=warehouse",
    "a missing slash": "postgresql:/reader:S3cret@db/warehouse",
    "no scheme": "reader:S3cret@db/warehouse",
    "an @ in the password": "Postgresql://reader:p@S3cret@db/warehouse",
    "a slash in the password": "postgres://reader:p/S3cret@db/warehouse",
    "a slash and a mark": "postgres://reader:p/?host=S3cret@db/warehouse",
}
"""Texts that are not accepted as a path or a URL, or in which the password looks like the host."""


@pytest.mark.parametrize(
    ("against", "says"),
    [
        ("absent.jsonl", "it does not exist"),
        ("", "--against: the path is empty"),  # as from a variable that is not set
        ("absent.duckdb", "it does not exist"),
        ("empty/", "it has no files that end with"),
        ("no-events.jsonl", "line 2 is not an event"),
        ("events.csv", "CSV is not read here, but JSON Lines and Parquet are"),
        ("no-gzip.jsonl.gz", "Not a gzipped file"),
        ("no-parquet.parquet", "No magic bytes found"),
        ("no-duckdb.duckdb", "not a valid DuckDB database file"),
        ("\udcff.duckdb", "its path is not UTF-8, which DuckDB needs"),
        ("no-table.duckdb", "Table with name audit_events does not exist"),
    ],
)
def test_a_source_that_cannot_be_read_is_reported_in_one_line(
    against: str, says: str, command: Command
) -> None:
    folder = command.folder
    (folder / "empty").mkdir()
    (folder / "no-events.jsonl").write_bytes(b'{"id":"1","occurredAt":"x"}\n{"id":1}\n')
    for name in ("no-gzip.jsonl.gz", "no-parquet.parquet", "no-duckdb.duckdb", "\udcff.duckdb"):
        (folder / name).write_bytes(b"something else" * 1000)
    (folder / "events.csv").write_text("id,occurred_at\n1,2024-05-06T07:08:09Z\n")
    duckdb.connect(str(folder / "no-table.duckdb")).close()

    done = command("verify", "--against", against)

    assert done.exit_code == 1
    assert done.error.startswith("AE-LOADED: The loaded events cannot be read: ")
    assert says in done.error


@pytest.mark.parametrize(("columns", "says"), UNUSUAL.values(), ids=UNUSUAL)
def test_an_unusual_parquet_file_is_reported_in_one_line(
    columns: dict[str, Any], says: str, service: Service, command: Command
) -> None:
    service.add(EVENTS)
    pq.write_table(pa.table(columns), command.folder / "a.parquet")

    done = command("verify", "--against", ".")

    assert done.exit_code == 1
    assert done.error.startswith("AE-LOADED: The loaded events cannot be read: 'a.parquet': ")
    assert says in done.error


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.parquet"])
@pytest.mark.parametrize(
    "at",
    [pytest.param(n, marks=() if n % 60 == 0 else pytest.mark.long) for n in range(0, 100, 10)],
)
def test_a_damaged_file_is_reported_in_one_line(
    name: str, at: int, service: Service, command: Command
) -> None:
    """The damage may be anywhere in the file."""
    service.add(EVENTS)
    command("export", "--to", name).raise_for_exit_code()
    path = command.folder / name
    data = bytearray(path.read_bytes())
    damaged = slice(len(data) * at // 100, len(data) * (at + 10) // 100)
    data[damaged] = bytes(0xFF - byte for byte in data[damaged])
    path.write_bytes(data)

    done = command("verify", "--against", ".")

    if done.exit_code:
        assert done.error.startswith(
            (f"AE-LOADED: The loaded events cannot be read: '{name}': ", "AE-DIFFERENT: ")
        )


@pytest.mark.parametrize("against", NO_PLACES.values(), ids=NO_PLACES)
def test_a_password_is_not_shown_as_part_of_a_path_or_a_host(
    against: str, command: Command
) -> None:
    """The error says which forms are accepted."""
    done = command("verify", "--against", against)

    assert done.exit_code == 1
    assert PASSWORD not in done.log
    assert done.error.startswith("AE-LOADED: The loaded events cannot be read: --against: ")
    assert "%40" in done.error or "postgresql://, postgres://, delta:" in done.error
    report = command("report", "--from", against, "--year", "2026", "--to", "a.svg")
    assert report.error.startswith("AE-LOADED: The loaded events cannot be read: --from: ")
    assert PASSWORD not in report.log


@pytest.mark.parametrize("library", ["duckdb", "pyarrow"])
def test_without_the_extra_the_error_names_it(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.startswith("tap_audit_events.cli."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(SettingsError, match=rf"^AE-EXTRA: .*{library}, of the extra \[duckdb\]"):
        import_module("tap_audit_events.cli.verify")


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_a_pipe_in_a_folder_is_an_error(
    name: str, tmp_path: Path, database: TemporaryDatabase
) -> None:
    """Opening it would wait forever, even after a signal."""
    os.mkfifo(tmp_path / name)
    with pytest.raises(OutputError, match=rf"AE-LOADED: .*{name}': it is not a file"):
        list(loaded_files(tmp_path, database).batches(Range(EARLIEST, LATEST)))


def test_a_folder_that_cannot_be_read_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database: TemporaryDatabase
) -> None:
    """Otherwise, all of its events would count as missing, and a repair would load them again."""
    (tmp_path / "a.jsonl").touch()
    inside = tmp_path / "inside"
    inside.mkdir()
    scandir = os.scandir

    def refuses(path: Any) -> Any:
        if path == str(inside):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuses)
    with pytest.raises(OutputError, match=r"AE-LOADED: .*Permission denied"):
        loaded_files(tmp_path, database)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("verify", "--against", "a.db"), "AE-LOADED"), (("export", "--to", "a.duckdb"), "AE-EXPORT")],
)
def test_nothing_is_downloaded_to_open_an_sqlite_file(
    arguments: tuple[str, ...], code: str, command: Command
) -> None:
    """DuckDB has an extension for SQLite, which it would download from its own server."""
    with closing(sqlite3.connect(command.folder / arguments[-1])) as database:
        database.execute("CREATE TABLE audit_events (id TEXT, occurred_at TEXT)")

    done = command(*arguments)

    assert done.error.startswith(f"{code}: ")
    assert "Failed to download" not in done.error


@pytest.mark.parametrize("column", ["id", "occurredAt", "organization_id"])
def test_a_column_of_json_is_an_error(column: str) -> None:
    """Its values are quoted, so no event would match."""
    types = {"id": "VARCHAR", "occurredAt": "VARCHAR", "organization_id": "VARCHAR"}
    with pytest.raises(OutputError, match=rf"its column {column} has JSON, not text"):
        find_columns(types | {column: "JSON"}, "x")
