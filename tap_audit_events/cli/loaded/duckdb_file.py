"""Tables of a DuckDB file, opened to be read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tap_audit_events.cli.loaded.columns import Columns, find_columns, quoted
from tap_audit_events.cli.loaded.row import BATCH_ROWS, Range, Row, unreadable
from tap_audit_events.errors.exceptions import SettingsError, sanitize

try:
    import duckdb
except ImportError:
    raise SettingsError(
        ["duckdb is not installed: install the package with it, tap-audit-events[duckdb]"],
        "AE-EXTRA",
    ) from None

_SETTINGS: Final[dict[str, str]] = {
    "memory_limit": "256MB",
    "threads": "1",
    "preserve_insertion_order": "false",
}


class DuckDBFile:
    """A DuckDB file.

    Args:
        path: the file.

    Raises:
        OutputError: it cannot be opened.
    """

    engine = "duckdb"

    def __init__(self, path: Path) -> None:
        self.name = sanitize(str(path))
        if not path.is_file():
            raise unreadable(self.name, "it does not exist")
        with self._errors():
            settings = {**_SETTINGS, "temp_directory": tempfile.gettempdir()}
            self._connection = duckdb.connect(str(path), read_only=True, config=settings)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def types(self, table: str) -> dict[str, str]:
        """The type of each column of a table, by its name.

        Raises:
            OutputError: there is no such table.
        """
        with self._errors():
            rows = self._connection.execute(f"DESCRIBE {quoted(table)}").fetchall()
        return {row[0]: row[1] for row in rows}

    def query(
        self, sql: str, parameters: Sequence[object] = ()
    ) -> Iterator[Sequence[tuple[Any, ...]]]:
        """The rows of a query, some at a time."""
        with self._errors():
            result = self._connection.execute(sql, list(parameters))
            while batch := result.fetchmany(BATCH_ROWS):
                yield batch

    def time_as_text(self, column: str, columns: Columns) -> str:
        """An expression for a time as text in UTC."""
        if columns.has_zone:
            return f"CAST(make_timestamp(epoch_us({quoted(column)})) AS VARCHAR)"
        return f"CAST({quoted(column)} AS VARCHAR)"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise unreadable(self.name, sanitize(str(error))) from None


class DuckDBRows:
    """The events in a table of a DuckDB file.

    Args:
        file: the file.
        table: the table, perhaps with its schema before a dot.
    """

    def __init__(self, file: DuckDBFile, table: str) -> None:
        self.name = f"{file.name}, table {sanitize(table)}"
        self._file = file
        self._table = table
        self._columns = find_columns(file.types(table), self.name)

    @property
    def has_organizations(self) -> bool:
        return self._columns.organization is not None

    @property
    def unit_nanoseconds(self) -> int:
        return self._columns.unit_nanoseconds

    def rows(self, within: Range) -> Iterator[Sequence[Row]]:
        columns = self._columns
        organization = "NULL" if columns.organization is None else quoted(columns.organization)
        time = self._file.time_as_text(columns.time, columns)
        sql = (
            f"SELECT CAST({organization} AS VARCHAR), CAST({quoted(columns.id)} AS VARCHAR), {time}"  # noqa: S608 - quoted
            f" FROM {quoted(self._table)}"
        )
        bounds: list[str] = []
        if columns.is_time and not columns.has_zone:
            wide = within.widened(max(columns.unit_nanoseconds, 1))
            bounds = [wide.start, wide.end]
            sql += (
                f" WHERE coalesce(CAST({quoted(columns.time)} AS TIMESTAMP)"
                " BETWEEN CAST(? AS TIMESTAMP) AND CAST(? AS TIMESTAMP), true)"
            )
        for batch in self._file.query(sql, bounds):
            yield [Row(*row) for row in batch]
