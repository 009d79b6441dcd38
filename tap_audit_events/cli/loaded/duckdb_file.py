"""Tables of a DuckDB file, opened to be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb

from tap_audit_events.cli.loaded.batches import NoTableError, Query, Range, unreadable
from tap_audit_events.cli.loaded.columns import TimeColumn, quoted
from tap_audit_events.cli.loaded.database import TemporaryDatabase, query_errors
from tap_audit_events.cli.loaded.times import time_as_text
from tap_audit_events.errors.exceptions import sanitize


class DuckDBFile:
    """A DuckDB file, attached to a database."""

    def __init__(self, name: str, database: TemporaryDatabase) -> None:
        self.name = name
        self._database = database

    def types(self, table: str) -> dict[str, str]:
        try:
            rows = self._database.execute(f"DESCRIBE {quoted(table)}").fetchall()
        except duckdb.CatalogException as error:
            raise NoTableError(self.name, sanitize(error)) from None
        except duckdb.Error as error:
            raise unreadable(self.name, sanitize(error)) from None
        return {name: kind for name, kind, *_ in rows}

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with query_errors(Query(self.name, sql)):
            return self._database.execute(sql).fetchall()

    def batches(self, sql: str) -> Iterator[Query]:
        yield Query(self.name, sql)

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
def duckdb_file(path: Path, database: TemporaryDatabase) -> Iterator[DuckDBFile]:
    """A DuckDB file, which no other program can open for writing until the block ends.

    Raises:
        OutputError: it cannot be opened.
    """
    name = sanitize(path)
    if not os.path.isfile(path):  # noqa: PTH113 - no error for a folder that may not be read
        raise unreadable(name, "it does not exist, is not a file, or may not be read")
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise unreadable(name, "its path is not UTF-8, which DuckDB needs") from None
    with ExitStack() as stack:
        with query_errors(Query(name, "")):
            stack.enter_context(database.attached(path))
        yield DuckDBFile(name, database)
