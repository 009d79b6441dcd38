"""The events in a table of a database of any kind."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tap_audit_events.cli.loaded.batches import Range, batch_of
from tap_audit_events.cli.loaded.columns import (
    TimeColumn,
    check_organizations,
    find_columns,
    quoted,
)
from tap_audit_events.errors.exceptions import sanitize

if TYPE_CHECKING:
    import pyarrow as pa


class Database(Protocol):
    """A database, opened to be read. Its methods raise `OutputError` if they cannot read it.

    Attributes:
        name: what it is called in messages; contains no password.
    """

    name: str

    def close(self) -> None:
        """End the connection, or close the file."""

    def types(self, table: str) -> dict[str, str]:
        """The type of each column of a table, by its name.

        Raises:
            NoTableError: there is no such table.
        """

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query, which are few."""

    def texts(self, sql: str) -> Iterator[Sequence[tuple[str | None, ...]]]:
        """The rows of a query for texts, at most `BATCH_ROWS` at a time."""

    def time_as_text(self, column: TimeColumn) -> str:
        """An expression for a time as text, in UTC if it is stored with a time zone."""

    def timestamp(self, column: TimeColumn) -> str:
        """An expression for a time as TIMESTAMP in UTC; a text without an offset is in UTC."""

    def condition(self, column: TimeColumn, within: Range) -> str:
        """A condition that is true for all rows of a range, and perhaps for others."""


class TableRows:
    """The events in a table.

    Args:
        database: the database.
        table: the table, perhaps with its schema before a dot.

    Raises:
        OutputError: there is no such table, or it lacks a column or has one of another type.
    """

    guesses_organizations = False
    columns_are_all = True

    def __init__(self, database: Database, table: str) -> None:
        self.name = f"{database.name}, table {sanitize(table)}"
        self._database = database
        self._table = table
        self._types = types = database.types(table)
        self._columns = find_columns(types, self.name)
        check_organizations(self._columns, types, self.name)

    def columns(self) -> Collection[str]:
        return self._types.keys()

    @property
    def has_organizations(self) -> bool:
        return self._columns.organization is not None

    @property
    def unit_nanoseconds(self) -> int:
        return self._columns.time.unit_nanoseconds

    def batches(self, within: Range) -> Iterator[pa.Table]:
        columns, database = self._columns, self._database
        organization = "NULL" if columns.organization is None else quoted(columns.organization)
        sql = (
            f"SELECT CAST({organization} AS VARCHAR), CAST({quoted(columns.id)} AS VARCHAR),"  # noqa: S608 - quoted
            f" {database.time_as_text(columns.time)}"
            f" FROM {quoted(self._table)} WHERE {database.condition(columns.time, within)}"
        )
        for rows in database.texts(sql):
            yield batch_of(rows)
