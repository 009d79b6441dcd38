"""The events in a table of a database of any kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from tap_audit_events.cli.loaded.batches import Loaded, Query, Range
from tap_audit_events.cli.loaded.columns import TimeColumn, find_columns, quoted, text_of
from tap_audit_events.errors.exceptions import sanitize

if TYPE_CHECKING:
    import pyarrow as pa


class Database(Protocol):
    """A database, opened to be read. Its methods raise `OutputError` if they cannot read it.

    Attributes:
        name: what it is called in messages; contains no password.
    """

    name: str

    def types(self, table: str) -> dict[str, str]:
        """The type of each column of a table, by its name.

        Raises:
            NoTableError: there is no such table.
        """

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query, which are few."""

    def batches(self, sql: str) -> Iterator[pa.Table | Query]:
        """The rows of a query for the texts of a batch."""

    def time_as_text(self, column: TimeColumn) -> str:
        """An expression for a time as text, in UTC if it is stored with a time zone."""

    def timestamp(self, column: TimeColumn) -> str:
        """An expression for a time as TIMESTAMP in UTC; a text without an offset is in UTC."""

    def condition(self, column: TimeColumn, within: Range) -> str:
        """A condition that is true for all rows of a range, and perhaps for others."""


def loaded_table(database: Database, table: str) -> Loaded:
    """The events in a table, whose schema may be before a dot.

    Raises:
        OutputError: there is no such table, or it lacks a column or has one of another type.
    """
    name = f"{database.name}, table {sanitize(table)}"
    types = database.types(table)
    columns = find_columns(types, name)

    def batches(within: Range) -> Iterator[pa.Table | Query]:
        return database.batches(
            f"SELECT {text_of(columns.organization)} AS organization,"  # noqa: S608 - quoted
            f" {text_of(columns.id)} AS id, {database.time_as_text(columns.time)} AS time"
            f" FROM {quoted(table)} WHERE {database.condition(columns.time, within)}"
        )

    return Loaded(
        name,
        columns.time.unit_nanoseconds,
        batches,
        columns=types.keys,
        has_organizations=columns.organization is not None,
    )
