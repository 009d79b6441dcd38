"""Which place a text names: a file, a folder, a DuckDB file or a PostgreSQL database."""

# ruff: noqa: PLC0415 - a format's libraries are imported if it is used

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from tap_audit_events.cli.loaded.database import Database, TableRows
from tap_audit_events.cli.loaded.row import Loaded
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.events.stream_names import STREAM

_URL: Final = ("postgresql://", "postgres://")
_DATABASES: Final = (".duckdb", ".db", ".ddb")


@contextmanager
def open_loaded(text: str, table: str | None) -> Iterator[Loaded]:
    """The events that were loaded into a place.

    Args:
        text: what `--against` says.
        table: the table of a database, None for the one that loaders create.

    Raises:
        OutputError: it cannot be read.
        SettingsError: a library that it needs is not installed, or a file has no tables.
    """
    if is_database(text):
        with open_database(text, "--against") as database:
            yield TableRows(database, table or STREAM)
        return
    if table is not None:
        raise SettingsError(["--table names a table of a database: leave it out for a file"])
    from tap_audit_events.cli.loaded.files import LoadedFiles

    yield LoadedFiles(Path(text))


def is_database(text: str) -> bool:
    """Whether a text names a database."""
    return text.startswith(_URL) or text.endswith(_DATABASES)


@contextmanager
def open_database(text: str, option: str) -> Iterator[Database]:
    """A database, to be read.

    Args:
        text: a path or a URL.
        option: the option that names it.

    Raises:
        OutputError: it cannot be opened.
        SettingsError: it is not a database, or a library that it needs is not installed.
    """
    database: Database
    if text.startswith(_URL):
        from tap_audit_events.cli.loaded.postgres import PostgresDatabase

        database = PostgresDatabase(text)
    elif text.endswith(_DATABASES):
        from tap_audit_events.cli.loaded.duckdb_file import DuckDBFile

        database = DuckDBFile(Path(text))
    else:
        raise SettingsError(
            [f"{option} {sanitize(text)} is neither a DuckDB file nor a postgresql:// URL"]
        )
    with closing(database):
        yield database
