"""What was loaded: batches of ids and times, whatever they are read from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

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


class Loaded(Protocol):
    """A place into which events were loaded.

    Attributes:
        name: what it is called in messages; contains no password.
        has_organizations: whether each event has its organization.
        guesses_organizations: whether the organization may only be in ``scope.organizationId``,
            whose form the service chooses (interface.md 2.6).
        unit_nanoseconds: the smallest difference between two times that it can store, 0 if it
            stores every digit.
    """

    name: str

    @property
    def has_organizations(self) -> bool: ...
    @property
    def guesses_organizations(self) -> bool: ...
    @property
    def unit_nanoseconds(self) -> int: ...

    def columns(self) -> Collection[str] | None:
        """The columns that each table or file has; None if they are not known."""

    @property
    def columns_are_all(self) -> bool:
        """Whether `columns` has also those in which no event has a value."""

    def batches(self, within: Range) -> Iterator[pa.Table | Query]:
        """All events of a range, perhaps with others.

        Raises:
            OutputError: they cannot be read (code ``AE-LOADED``).
        """


class NoTableError(OutputError):
    """A database has no such table."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}", "AE-LOADED")


def unreadable(name: str, reason: Any) -> OutputError:
    """The error for loaded events that cannot be read."""
    return OutputError(f"{name}: {reason}", "AE-LOADED")
