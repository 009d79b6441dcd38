"""Opens what an option names: a file, a folder, a database, or a table of Delta or Iceberg."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from os.path import exists
from pathlib import Path
from typing import Final

from tap_audit_events.cli.loaded.batches import Loaded, unreadable
from tap_audit_events.cli.loaded.database import TemporaryDatabase
from tap_audit_events.cli.loaded.duckdb_file import duckdb_file
from tap_audit_events.cli.loaded.files import loaded_files
from tap_audit_events.cli.loaded.tables import Database, loaded_table
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.events.stream_names import STREAM
from tap_audit_events.outputs.delta_place import PREFIX, place_of
from tap_audit_events.outputs.postgres_url import AMBIGUOUS, is_ambiguous, is_postgres_url

_MAY_HAVE_PASSWORD: Final = re.compile(r"://|(?:password|pwd)\s*=|:.*@", re.IGNORECASE)
_DATABASES: Final = (".duckdb", ".db", ".ddb")


@contextmanager
def open_loaded(
    text: str,
    table: str | None,
    database: TemporaryDatabase,
    known: Collection[str] = (),
    option: str = "--against",
) -> Iterator[Loaded]:
    """The events that were loaded into a place.

    Args:
        text: a path or a URL.
        table: the table of a database, None for the one that loaders create.
        database: reads them.
        known: the organizations in the settings, in lower case.
        option: the option that names it.

    Raises:
        OutputError: it cannot be read.
        SettingsError: a library that it needs is not installed, or `table` is given for a file.
    """
    _check_place(text, option)
    if is_database(text):
        with open_database(text, option, database) as opened:
            yield loaded_table(opened, table or STREAM)
        return
    if table is not None:
        raise SettingsError(["--table names a table of a database: leave it out for a file"])
    if _is_iceberg(text):
        import tap_audit_events.outputs.iceberg_catalog  # noqa: F401, PLC0415 - says what to install
        from tap_audit_events.cli.loaded.iceberg import loaded_iceberg  # noqa: PLC0415 - an extra

        yield loaded_iceberg(text)
        return
    if _is_delta(text):
        from tap_audit_events.cli.loaded.delta import loaded_delta  # noqa: PLC0415 - an extra

        try:
            place = place_of(text)
        except ValueError as error:
            raise unreadable(option, error) from None
        yield loaded_delta(place, sanitize(text))
        return
    yield loaded_files(Path(text), database, known)


def is_database(text: str) -> bool:
    """Whether a text names a database."""
    is_lake = _is_delta(text) or _is_iceberg(text)
    return is_postgres_url(text) or (text.endswith(_DATABASES) and not is_lake)


def _is_delta(text: str) -> bool:
    return text.lower().startswith(PREFIX)


def _is_iceberg(text: str) -> bool:
    return text.lower().startswith("iceberg:")


def _check_place(text: str, option: str) -> None:
    """Check that a text contains no password that would be shown as part of a path or a host.

    Raises:
        OutputError: it may contain one; or it is empty, and would mean the current folder.
    """
    if not text:
        raise unreadable(option, "the path is empty")
    if is_ambiguous(text):
        raise unreadable(option, AMBIGUOUS)
    if is_postgres_url(text) or _is_delta(text):
        return
    if _MAY_HAVE_PASSWORD.search(text) and not exists(text):  # noqa: PTH110 - no error for a long text
        problem = "it is no path that exists, and does not begin with one of"
        raise unreadable(option, f"{problem} postgresql://, postgres://, delta:, iceberg:")


def open_database(
    text: str, option: str, database: TemporaryDatabase
) -> AbstractContextManager[Database]:
    """A database, to be read until the block ends.

    Args:
        text: a path or a URL, for which `is_database` holds.
        option: the option that names it.
        database: reads a DuckDB file.

    Raises:
        OutputError: it cannot be opened.
        SettingsError: a library that it needs is not installed.
    """
    _check_place(text, option)
    if not is_postgres_url(text):
        return duckdb_file(Path(text), database)
    from tap_audit_events.cli.loaded.postgres import postgres_database  # noqa: PLC0415 - an extra

    return postgres_database(text)
