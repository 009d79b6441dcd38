"""What was loaded: batches of ids and times, whatever they are read from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tap_audit_events.errors.exceptions import OutputError, missing_extra
from tap_audit_events.events.instants import Instant, later, next_whole_second, whole_second

try:
    import duckdb  # noqa: F401 - for those that import this module
    import pyarrow as pa
except ImportError as error:
    raise missing_extra(error.name or "duckdb", "duckdb") from None

BATCH_ROWS: Final = 10_000
NANOSECONDS: Final = 1_000_000_000
_NAMES: Final = ["organization", "id", "time"]


def batch_of(rows: Sequence[Sequence[str | None]]) -> pa.Table:
    """A batch of rows: the organization, the id and the time of each event, as they were stored."""
    return pa.table([pa.array(each, pa.string()) for each in zip(*rows, strict=True)], _NAMES)


def texts_of(rows: pa.RecordBatch, names: Sequence[str | None]) -> pa.Table:
    """A batch of the columns with these names, as texts; nulls where there is no name."""
    columns = (
        pa.nulls(len(rows), pa.string()) if name is None else rows[name].cast(pa.string())
        for name in names
    )
    return pa.table(list(columns), _NAMES)


class Query(NamedTuple):
    """A query of DuckDB for what a batch has.

    Attributes:
        name: what is read, for messages.
        sql: the query.
    """

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Range:
    """The range that is compared.

    Attributes:
        start: first instant.
        end: last instant.
    """

    start: Instant
    end: Instant

    def widened(self, unit_nanoseconds: int) -> Range:
        """The range and the times around it that a table might round into it."""
        if not unit_nanoseconds:
            return self
        seconds = -(-unit_nanoseconds // NANOSECONDS)
        return Range(
            later(whole_second(self.start), seconds=-seconds),
            later(next_whole_second(self.end), seconds=seconds),
        )


class Loaded(NamedTuple):
    """Events that were loaded into a place.

    Attributes:
        name: what the place is called in messages; contains no password.
        unit_nanoseconds: the smallest difference between two times that it can store, 0 if it
            stores every digit.
        batches: reads all events of a range, perhaps with others. It raises `OutputError` (code
            ``AE-LOADED``) if they cannot be read.
        columns: reads which columns each table or file has; None if they are not known.
        has_organizations: whether each event has its organization.
        guesses_organizations: whether the organization may only be in ``scope.organizationId``,
            whose form the service chooses (interface.md 2.6).
        columns_are_all: whether `columns` has also those in which no event has a value.
    """

    name: str
    unit_nanoseconds: int
    batches: Callable[[Range], Iterator[pa.Table | Query]]
    columns: Callable[[], Collection[str] | None]
    has_organizations: bool
    guesses_organizations: bool = False
    columns_are_all: bool = True


class NoTableError(OutputError):
    """A database has no such table."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}", "AE-LOADED")


def unreadable(name: str, reason: Any) -> OutputError:
    """The error for loaded events that cannot be read."""
    return OutputError(f"{name}: {reason}", "AE-LOADED")
