"""SQL for times as loaders write them, compared to the last digit."""

from __future__ import annotations

from typing import Final

from tap_audit_events.cli.loaded.columns import TimeColumn, quoted
from tap_audit_events.events.instants import Instant, microseconds

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
