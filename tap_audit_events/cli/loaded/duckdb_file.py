"""Tables of a DuckDB file, opened to be read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb

from tap_audit_events.cli.loaded.batches import BATCH_ROWS, NoTableError, Range, unreadable
from tap_audit_events.cli.loaded.columns import TimeColumn, quoted
from tap_audit_events.cli.loaded.times import time_as_text
from tap_audit_events.cli.terminal.temporary_folder import temporary_folder
from tap_audit_events.errors.exceptions import sanitize

_SETTINGS: Final[dict[str, str]] = {
    "memory_limit": "256MB",
    "threads": "1",
    "preserve_insertion_order": "false",
    "autoinstall_known_extensions": "false",  # else DuckDB downloads one for a SQLite file
}


class DuckDBFile:
    """A DuckDB file.

    Raises:
        OutputError: it cannot be opened, or there is no folder for temporary files.
    """

    def __init__(self, path: Path) -> None:
        self.name = sanitize(path)
        if not os.path.isfile(path):  # noqa: PTH113 - no error for a folder that may not be read
            raise unreadable(self.name, "it does not exist, is not a file, or may not be read")
        with self._errors():
            try:
                str(path).encode()
            except UnicodeEncodeError:
                raise unreadable(self.name, "its path is not UTF-8, which DuckDB needs") from None
            settings = {**_SETTINGS, "temp_directory": str(temporary_folder())}
            self._connection = duckdb.connect(str(path), read_only=True, config=settings)

    def close(self) -> None:
        self._connection.close()

    def types(self, table: str) -> dict[str, str]:
        with self._errors():
            try:
                rows = self._connection.execute(f"DESCRIBE {quoted(table)}").fetchall()
            except duckdb.CatalogException as error:
                raise NoTableError(self.name, sanitize(error)) from None
        return {row[0]: row[1] for row in rows}

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._connection.execute(sql).fetchall()

    def texts(self, sql: str) -> Iterator[Sequence[tuple[str | None, ...]]]:
        with self._errors():
            result = self._connection.execute(sql)
            while batch := result.fetchmany(BATCH_ROWS):
                yield batch

    def time_as_text(self, column: TimeColumn) -> str:
        return time_as_text(column)

    def timestamp(self, column: TimeColumn) -> str:
        if column.has_zone:
            return f"make_timestamp(epoch_us({quoted(column.name)}))"
        return f"TRY_CAST({quoted(column.name)} AS TIMESTAMP)"

    def condition(self, column: TimeColumn, within: Range) -> str:
        if not column.is_time or column.has_zone:
            return "true"
        wide = within.widened(column.unit_nanoseconds)
        time = f"CAST({quoted(column.name)} AS TIMESTAMP)"
        between = f"{time} BETWEEN TIMESTAMP '{wide.start}' AND TIMESTAMP '{wide.end}'"
        return f"coalesce({between}, true)"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise unreadable(self.name, sanitize(error)) from None
