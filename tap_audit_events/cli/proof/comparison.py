"""Compares the events of the service with those that were loaded, in a temporary database.

One query over the ids and times of both sides finds the ids that are not once on each side with the
same time. Only the rows of these are looked at one by one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

import duckdb
import pyarrow as pa

from tap_audit_events.cli.loaded.batches import BATCH_ROWS, Range
from tap_audit_events.cli.loaded.database import OWN, Rows, TemporaryDatabase, query_errors
from tap_audit_events.cli.loaded.times import DAY, EPOCH, TIMES, position_of
from tap_audit_events.cli.proof.differences import Difference, Kind
from tap_audit_events.events.instants import Instant
from tap_audit_events.outputs.durable import output_errors

UNKNOWN_DAY: Final = "unknown"
_DAY: Final = len("2026-01-31")
_NO_ORGANIZATION: Final = -1
_MICROSECOND: Final = 1_000
"""In nanoseconds."""

_ROWS_AT_ONCE: Final = 8_000
"""Rows that are compared at once, for each megabyte of memory: many more may need more."""

_EVENTS_AT_ONCE: Final = 10_000
"""Events of the service that are added at once."""

_TABLES: Final = f"""
CREATE TABLE {OWN}.service (
    key UBIGINT, organization INTEGER, id VARCHAR, microsecond BIGINT, more_digits VARCHAR
);
CREATE TABLE {OWN}.loaded AS FROM {OWN}.service;
CREATE TABLE {OWN}.differing AS
    SELECT 0::BIGINT AS first_number, 0::BIGINT AS first_time, *, rowid AS number
    FROM {OWN}.service;
CREATE TABLE {OWN}.organizations (form VARCHAR, number INTEGER)
"""  # noqa: S608 - no text from outside
_KNOWN: Final = f"""
JOIN {OWN}.organizations ON form = replace(replace(
    translate(lower(trim(coalesce(organization, ''))), '{{}}-', ''), 'urn:', ''), 'uuid:', '')
"""
"""Leaves out other organizations. A UUID may be in any form."""

_ADD_LOADED: Final = f"""
INSERT INTO {OWN}.loaded WITH {{source}}, {TIMES}
SELECT hash(number, coalesce(id, '')), number, coalesce(id, ''), microsecond, more_digits
FROM times {_KNOWN}
WHERE microsecond IS NULL OR microsecond BETWEEN $first AND $last
"""  # noqa: S608 - no text from outside
_ADD_SERVICE: Final = """
INSERT INTO service
SELECT hash(organization, id), organization, id, epoch_us(CAST(left(time, 26) AS TIMESTAMP)),
       substr(time, 27)
FROM arrow_batch
"""
_COUNT: Final = f"""
SELECT {DAY}, count(*)
FROM service
WHERE (microsecond > $1 OR microsecond = $1 AND more_digits >= $2)
  AND (microsecond < $3 OR microsecond = $3 AND more_digits <= $4)
GROUP BY 1
"""  # noqa: S608 - no text from outside
_DIFFERING: Final = """
INSERT INTO differing
WITH both_sides AS (
    SELECT *, rowid AS number FROM service WHERE key % {parts} = {part}
    UNION ALL SELECT *, NULL FROM loaded WHERE key % {parts} = {part}
),
keys AS (
    SELECT key, min(number) AS first_number, min(microsecond) AS first_time
    FROM both_sides GROUP BY key
    HAVING count(*) <> 2 OR count(number) <> 1 OR count(microsecond) <> 2 OR {other_time}
)
SELECT first_number, first_time, both_sides.* FROM both_sides JOIN keys USING (key)
"""
"""Adds all rows of the ids that are not once on each side, with the same time.

An id is recognized by the hash of 64 bits that is its key. Two ids with the same key would escape
only if one is missing, the other too many, and their times are the same.
"""

_ROWS: Final = """
SELECT organization, id, number, microsecond, more_digits FROM differing
ORDER BY first_number NULLS LAST, first_time, key, organization, id, number NULLS LAST, microsecond
"""

COUNTS: Final = ("service", "loaded", "missing", "too_many", "other_time")
_CHANGES: Final[dict[Kind, dict[str, int]]] = {
    "missing": {"loaded": -1, "missing": 1},
    "other time": {"other_time": 1},
    "too many": {"loaded": 1, "too_many": 1},
}
"""How the counts of a day change with a difference: at first, all events count as loaded."""


class _Row(NamedTuple):
    """A row of one of the tables. `number` is the position of an event of the service."""

    organization: int
    id: str
    number: int | None
    microsecond: int | None
    more_digits: str

    @property
    def nanosecond(self) -> int:
        """Whole nanoseconds since 1970, of a row with a time."""
        return (self.microsecond or 0) * _MICROSECOND + int(self.more_digits[:3].ljust(3, "0"))

    @property
    def text(self) -> str:
        if self.microsecond is None:
            return ""
        time = datetime.fromisoformat(EPOCH) + timedelta(microseconds=self.microsecond)
        digits = f"{time.isoformat(timespec='microseconds')}{self.more_digits}"
        return f"{digits.rstrip('0').rstrip('.')}Z"


class Comparison:
    """Compares the events of a range. All loaded events are added before those of the service.

    Its methods raise `OutputError` if a temporary file cannot be written.

    Args:
        database: a new database.
        within: the range that is compared.
        unit_nanoseconds: how much two times may differ, because the table rounds them.
        organizations: the ids of several organizations, in lower case; or of the only one.
        are_several: whether an event without an organization cannot be compared.

    Attributes:
        wide: the range to read: also the times around it that the table might round into it.
        days: the counts of each day, by the name in `COUNTS`.
    """

    def __init__(
        self,
        database: TemporaryDatabase,
        within: Range,
        unit_nanoseconds: int,
        organizations: Sequence[str],
        *,
        are_several: bool,
    ) -> None:
        self._database = database
        self._unit = unit_nanoseconds
        self._within = position_of(within.start), position_of(within.end)
        self.wide = within.widened(unit_nanoseconds)
        self._organizations = list(organizations) if are_several else [""]
        self._numbers = {each: number for number, each in enumerate(self._organizations)}
        self._added: list[tuple[int, str, Instant]] = []
        self.days: defaultdict[str, Counter[str]] = defaultdict(Counter)
        forms = {UUID(each).hex: number for number, each in enumerate(organizations)}
        forms[""] = _NO_ORGANIZATION if are_several else 0
        self._execute(_TABLES)
        for form in forms.items():
            self._execute(f"INSERT INTO {OWN}.organizations VALUES (?, ?)", form)  # noqa: S608

    def add_loaded(self, rows: Rows) -> int:
        """Add loaded events, without other organizations or times; return how many there are.

        Raises:
            OutputError: they cannot be read.
        """
        bounds = {"first": position_of(self.wide.start)[0], "last": position_of(self.wide.end)[0]}
        self._execute(_ADD_LOADED, bounds, rows)
        return self._count("loaded")

    def has_any_in_settings(self, rows: Rows) -> bool:
        """Whether any event, of any time, is of an organization in the settings, or of none.

        Raises:
            OutputError: they cannot be read.
        """
        sql = f"WITH {{source}} SELECT 1 FROM batch {_KNOWN} LIMIT 1"  # noqa: S608 - ours
        return bool(self._execute(sql, rows=rows).fetchall())

    def id_without_organization(self) -> str | None:
        """The id of a loaded event that does not say its organization, if that is needed."""
        sql = f"SELECT min(id) FROM {OWN}.loaded WHERE organization = ?"  # noqa: S608 - ours
        ((event_id,),) = self._execute(sql, [_NO_ORGANIZATION]).fetchall()
        return None if event_id is None else str(event_id)

    def add_service(
        self, organization_id: str, ids: Iterable[str], instants: Iterable[Instant]
    ) -> None:
        """Add events of the service."""
        number = self._numbers.get(organization_id.lower(), 0)
        self._added += zip(repeat(number), ids, instants)
        if len(self._added) >= _EVENTS_AT_ONCE:
            self._flush()

    def differences(self) -> Iterator[tuple[int, Difference]]:
        """The events that differ, in the order of the service, then those that it does not show.

        An event of the service has its number: how many were added before it. Afterwards, `days`
        has all counts.
        """
        self._flush()
        for day, count in self._execute(_COUNT, [*self._within[0], *self._within[1]]).fetchall():
            self.days[day].update(service=count, loaded=count)
        rows = self._count("service") + self._count("loaded")
        parts = 1 + rows // (_ROWS_AT_ONCE * self._database.megabytes)
        for part in range(parts):
            self._execute(
                _DIFFERING.format(parts=parts, part=part, other_time=self._other_time_sql())
            )
        for _, of_one_id in groupby(self._differing_rows(), key=itemgetter(0, 1)):
            yield from self._differences_of(of_one_id)

    def _execute(
        self, sql: str, values: Any = None, rows: Rows | None = None
    ) -> duckdb.DuckDBPyConnection:
        with output_errors(self._database.folder), query_errors(rows):
            return self._database.execute(sql, values, rows)

    def _count(self, table: str) -> int:
        (row,) = self._execute(f"SELECT count(*) FROM {OWN}.{table}").fetchall()  # noqa: S608
        return int(row[0])

    def _flush(self) -> None:
        if self._added:
            pool = pa.system_memory_pool()  # Arrow's own keeps memory that it no longer needs
            columns = zip(*self._added, strict=True)
            arrays = [pa.array(each, memory_pool=pool) for each in columns]
            events = pa.table(arrays, ["organization", "id", "time"])
            self._execute(_ADD_SERVICE, rows=events)
            self._added.clear()

    def _other_time_sql(self) -> str:
        """A condition that is false only if times are equal, or too close to be told apart."""
        if self._unit < _MICROSECOND:
            return "min(microsecond) <> max(microsecond) OR min(more_digits) <> max(more_digits)"
        return f"max(microsecond) - min(microsecond) >= {self._unit // _MICROSECOND}"

    def _differing_rows(self) -> Iterator[_Row]:
        result = self._execute(_ROWS)
        while rows := result.fetchmany(BATCH_ROWS):
            yield from map(_Row._make, rows)

    def _differences_of(self, rows: Iterable[_Row]) -> Iterator[tuple[int, Difference]]:
        """The differences of one id: its events at the service come first, then its loaded rows.

        Each event matches one row; one with the same time is preferred.
        """
        events: list[_Row] = []
        unmatched: list[_Row] = []
        for row in rows:
            if row.number is not None:
                events.append(row)
            elif events:
                unmatched.append(row)
            else:
                yield from self._too_many(row)
        without = []
        for event in events:
            close = next((row for row in unmatched if self._is_close(row, event)), None)
            if close is None:
                without.append(event)
            else:
                unmatched.remove(close)
        for event in filter(self._is_within, without):
            if unmatched:
                yield self._found("other time", event, event.text, unmatched.pop(0).text)
            else:
                yield self._found("missing", event, event.text, "")
        for row in unmatched:
            yield from self._too_many(row)

    def _too_many(self, row: _Row) -> Iterator[tuple[int, Difference]]:
        if row.microsecond is None or self._is_within(row):
            yield self._found("too many", row, "", row.text)

    def _found(self, kind: Kind, row: _Row, at: str, loaded_at: str) -> tuple[int, Difference]:
        self.days[row.text[:_DAY] or UNKNOWN_DAY].update(_CHANGES[kind])
        organization = self._organizations[row.organization]
        return row.number or 0, Difference(kind, organization, row.id, at, loaded_at)

    def _is_within(self, row: _Row) -> bool:
        start, end = self._within
        return start <= (row.microsecond, row.more_digits) <= end

    def _is_close(self, row: _Row, event: _Row) -> bool:
        if row.microsecond is None:
            return False
        is_close = self._unit and abs(row.nanosecond - event.nanosecond) <= self._unit
        return bool(is_close) or row[3:] == event[3:]
