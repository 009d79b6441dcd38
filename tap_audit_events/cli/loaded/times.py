"""SQL for times as loaders write them, compared to the last digit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import duckdb

from tap_audit_events.cli.loaded.batches import Query, Range, unreadable
from tap_audit_events.cli.loaded.columns import TimeColumn, quoted
from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.events.instants import Instant, microseconds

if TYPE_CHECKING:
    import pyarrow as pa

EPOCH: Final = Instant("1970-01-01T00:00:00")

_QUICK_FORM: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?Z?"
_FORM: Final = (
    r"^\s*([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?)?"
    r"(?:[Zz]|([+-][0-9]{2})(?::?([0-9]{2}))?)?\s*$"
)
"""A day alone, or with a time after a T or a space; in UTC, if there is no offset."""

TIMES: Final = f"""
parts AS (
    SELECT *, CASE WHEN NOT regexp_full_match(time, '{_QUICK_FORM}') THEN regexp_extract(
        time, '{_FORM}', ['day', 'clock', 'digits', 'hours', 'minutes']) END AS part
    FROM batch
),
local_times AS (
    SELECT *,
           TRY_CAST(CASE WHEN part IS NULL THEN left(time, 26)
               ELSE part.day || ' ' || coalesce(nullif(part.clock, ''), '00:00:00')
                    || '.' || left(part.digits || '000000', 6) END AS TIMESTAMP) AS local,
           CASE WHEN part IS NULL THEN substr(rtrim(time, 'Z'), 27)
               ELSE substr(part.digits, 7) END AS more,
           CASE WHEN part IS NULL THEN 0
               ELSE coalesce(TRY_CAST(part.hours AS BIGINT), 0) * 60 + coalesce(
                    TRY_CAST(left(part.hours, 1) || part.minutes AS BIGINT), 0) END AS minutes
    FROM parts
),
times AS (
    SELECT organization, id, epoch_us(local) - minutes * 60_000_000 AS microsecond,
           rtrim(more, '0') AS more_digits
    FROM local_times
)
"""  # noqa: S608 - no text from outside
"""The table `times`: of the table `batch`, with the time as `position_of` a time.

The time is NULL if a text is not a time.
"""

DAY: Final = "CAST(CAST(make_timestamp(microsecond) AS DATE) AS VARCHAR)"
"""The UTC day of a row of `times`."""


def position_of(instant: Instant) -> tuple[int, str]:
    """The microseconds since 1970, and the digits after them, without zeros at the end."""
    return microseconds(instant) - microseconds(EPOCH), instant[len(f"{EPOCH}.000000") :]


def time_as_text(column: TimeColumn) -> str:
    """An expression of DuckDB for a time as text, in UTC if it is stored with a time zone."""
    if column.has_zone:
        return f"CAST(make_timestamp(epoch_us({quoted(column.name)})) AS VARCHAR)"
    return f"CAST({quoted(column.name)} AS VARCHAR)"


def days_of(batch: pa.Table | Query, within: Range) -> dict[str, int]:
    """How many events of a range each day has. The range has whole microseconds.

    Raises:
        OutputError: a query cannot be read.
    """
    sql = (
        f"WITH {source_of(batch)}, {TIMES} SELECT {DAY}, count(*) FROM times"  # noqa: S608 - ours
        " WHERE microsecond BETWEEN ? AND ? GROUP BY 1"
    )
    bounds = [position_of(each)[0] for each in (within.start, within.end)]
    with duckdb.connect() as database, query_errors(batch):
        if not isinstance(batch, Query):
            register(batch, database)
        return dict(database.execute(sql, bounds).fetchall())


def source_of(batch: pa.Table | Query) -> str:
    """The table `batch` for a WITH clause."""
    return f"batch AS ({batch.sql if isinstance(batch, Query) else 'FROM arrow_batch'})"


def register(batch: pa.Table, database: duckdb.DuckDBPyConnection) -> None:
    """Let the next statement read a batch as the table `arrow_batch`.

    It is passed on as a stream: of a table, DuckDB makes a data set, whose library needs 20 MB.
    """
    database.register("arrow_batch", batch.__arrow_c_stream__())


@contextmanager
def query_errors(batch: pa.Table | Query) -> Iterator[None]:
    """Turn an error of a query into an `OutputError` that names what is read."""
    try:
        yield
    except (duckdb.Error, UnicodeError) as error:
        if isinstance(batch, Query) and not isinstance(error, duckdb.OutOfMemoryException):
            raise unreadable(batch.name, sanitize(error)) from None
        raise
