"""Compares the events of the service with those that were loaded, in a temporary database.

DuckDB keeps the ids and times of both sides, and writes them into a folder when they are more than
its memory. One full join finds those that are not the same on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

import duckdb
import pyarrow as pa

from tap_audit_events.cli.loaded.batches import BATCH_ROWS, Query, Range
from tap_audit_events.cli.loaded.times import (
    DAY,
    EPOCH,
    TIMES,
    position_of,
    query_errors,
    register,
    source_of,
)
from tap_audit_events.cli.proof.differences import Difference, Kind
from tap_audit_events.events.instants import Instant

UNKNOWN_DAY: Final = "unknown"
_DAY: Final = len("2026-01-31")
_NO_ORGANIZATION: Final = -1
_MICROSECOND: Final = 1_000
"""In nanoseconds."""

_JOINED_ROWS: Final = 8_000
"""Rows that are joined at once, for each megabyte of memory: many more may need more."""

_MEGABYTES: Final = 32, 4096
"""The memory of the database: at first, and at most. A Parquet file may have pages of any size."""

_CONFIG: Final[dict[str, Any]] = {
    "threads": 1,
    "autoinstall_known_extensions": "false",
}
_TABLE: Final = """
CREATE TABLE {name} (
    key UBIGINT, organization INTEGER, id VARCHAR, microsecond BIGINT, more_digits VARCHAR
)
"""
_KNOWN: Final = """
JOIN organizations ON form = replace(replace(
    translate(lower(trim(coalesce(organization, ''))), '{}-', ''), 'urn:', ''), 'uuid:', '')
"""
"""Leaves out other organizations. A UUID may be in any form."""

_ADD_LOADED: Final = """
INSERT INTO loaded WITH {source}, {times}
SELECT hash(number, coalesce(id, '')), number, coalesce(id, ''), microsecond, more_digits
FROM times {known}
WHERE microsecond IS NULL OR microsecond BETWEEN $first AND $last
"""
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
WITH s AS (SELECT *, rowid AS number FROM service WHERE key % {parts} = {part}),
l AS (SELECT *, NULL AS number FROM loaded WHERE key % {parts} = {part}),
unequal AS (
    SELECT coalesce(s.key, l.key) AS key, s.number AS number,
           coalesce(s.microsecond, l.microsecond) AS microsecond
    FROM s FULL JOIN l
      ON s.key = l.key AND s.organization = l.organization AND s.id = l.id AND {same_time}
    WHERE s.key IS NULL OR l.key IS NULL
    UNION ALL SELECT key, NULL, min(microsecond) FROM l GROUP BY key HAVING count(*) > 1
    UNION ALL SELECT key, min(number), NULL FROM s GROUP BY key HAVING count(*) > 1
),
keys AS (
    SELECT key, min(number) AS first_number, min(microsecond) AS first_time
    FROM unequal GROUP BY key
)
SELECT first_number, first_time, each.*
FROM (FROM s UNION ALL FROM l) AS each JOIN keys USING (key)
"""
"""Adds all rows of the ids of which not each event is once on both sides, with the same time."""

_ROWS: Final = """
SELECT organization, id, number, microsecond, more_digits FROM differing
ORDER BY first_number NULLS LAST, first_time, key, organization, id, number NULLS LAST, microsecond
"""


@dataclass(slots=True)
class Counts:
    """The counts of a day."""

    service: int = 0
    loaded: int = 0
    missing: int = 0
    too_many: int = 0
    other_time: int = 0


class _Row(NamedTuple):
    """A row of one of the tables. `number` is the position of an event of the service."""

    organization: int
    id: str
    number: int | None
    microsecond: int | None
    more_digits: str

    def key(self) -> tuple[int, str]:
        return self.organization, self.id

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

    Args:
        folder: a folder for temporary files.
        within: the range that is compared.
        unit_nanoseconds: how much two times may differ, because the table rounds them.
        organizations: the ids of several organizations, in lower case; or of the only one.
        are_several: whether an event without an organization cannot be compared.
    """

    def __init__(
        self,
        folder: Path,
        within: Range,
        unit_nanoseconds: int,
        organizations: Sequence[str],
        *,
        are_several: bool,
    ) -> None:
        self._unit = unit_nanoseconds
        self._within = position_of(within.start), position_of(within.end)
        wide = within.widened(unit_nanoseconds)
        self._bounds = {"first": position_of(wide.start)[0], "last": position_of(wide.end)[0]}
        self._organizations = list(organizations) if are_several else [""]
        self._numbers = {each: number for number, each in enumerate(self._organizations)}
        self.days: dict[str, Counts] = {}
        self._megabytes, self._most_megabytes = _MEGABYTES
        self._database = duckdb.connect(config={**_CONFIG, "temp_directory": str(folder)})
        self._execute(f"SET memory_limit = '{self._megabytes}MB'")
        for name in ("service", "loaded"):
            self._execute(_TABLE.format(name=name))
        self._execute("CREATE TABLE organizations (form VARCHAR, number INTEGER)")
        forms = {UUID(each).hex: number for number, each in enumerate(organizations)}
        forms[""] = _NO_ORGANIZATION if are_several else 0
        self._database.executemany("INSERT INTO organizations VALUES (?, ?)", list(forms.items()))

    def add_loaded(self, batch: pa.Table | Query) -> int:
        """Add loaded events, without other organizations or times; return how many there are.

        Raises:
            OutputError: a query cannot be read.
        """
        sql = _ADD_LOADED.format(source=source_of(batch), times=TIMES, known=_KNOWN)
        with query_errors(batch):
            self._execute(sql, self._bounds, batch)
        return self._count("loaded")

    def has_any_in_settings(self, batch: pa.Table | Query) -> bool:
        """Whether any event, of any time, is of an organization in the settings, or of none.

        Raises:
            OutputError: a query cannot be read.
        """
        sql = f"WITH {source_of(batch)} SELECT 1 FROM batch {_KNOWN} LIMIT 1"  # noqa: S608
        with query_errors(batch):
            return bool(self._execute(sql, batch=batch).fetchall())

    def id_without_organization(self) -> str | None:
        """The id of a loaded event that does not say its organization, if that is needed."""
        sql = "SELECT min(id) FROM loaded WHERE organization = ?"
        ((event_id,),) = self._execute(sql, [_NO_ORGANIZATION]).fetchall()
        return None if event_id is None else str(event_id)

    def add_service(
        self, organizations: Sequence[str], ids: Sequence[str], instants: Sequence[Instant]
    ) -> None:
        """Add events of the service."""
        numbers = [self._numbers.get(each, 0) for each in organizations]
        pool = pa.system_memory_pool()  # Arrow's own keeps memory that it no longer needs
        columns = [
            pa.array(numbers, pa.int32(), memory_pool=pool),
            pa.array(ids, pa.string(), memory_pool=pool),
            pa.array(instants, pa.string(), memory_pool=pool),
        ]
        events = pa.table(columns, ["organization", "id", "time"])
        self._execute(_ADD_SERVICE, batch=events)

    def differences(self) -> Iterator[tuple[int, Difference]]:
        """The events that differ, in the order of the service, then those that it does not show.

        An event of the service has its number: how many were added before it. Afterwards, `days`
        has all counts.
        """
        bounds = [*self._within[0], *self._within[1]]
        for day, count in self._execute(_COUNT, bounds).fetchall():
            self.days[day] = Counts(service=count, loaded=count)
        self._execute(
            "CREATE TABLE differing AS"
            " SELECT 0::BIGINT AS first_number, 0::BIGINT AS first_time, *, rowid AS number"
            " FROM service LIMIT 0"
        )
        rows = self._count("service") + self._count("loaded")
        parts = 1 + rows // (_JOINED_ROWS * self._megabytes)
        for part in range(parts):
            same_time = self._same_time()
            self._execute(_DIFFERING.format(parts=parts, part=part, same_time=same_time))
        for _, of_one_id in groupby(self._differing_rows(), key=_Row.key):
            for row, difference in self._differences_of(of_one_id):
                yield row.number or 0, difference

    def close(self) -> None:
        """Free the memory, and remove the temporary files."""
        self._database.close()

    def _execute(
        self, sql: str, values: Any = None, batch: pa.Table | Query | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Execute a statement, with more memory if it needs that."""
        while True:
            if isinstance(batch, pa.Table):
                register(batch, self._database)
            try:
                return self._database.execute(sql, values)
            except duckdb.OutOfMemoryException:
                if self._megabytes >= self._most_megabytes:
                    raise
            self._megabytes *= 2
            self._database.execute(f"SET memory_limit = '{self._megabytes}MB'")

    def _count(self, table: str) -> int:
        (row,) = self._execute(f"SELECT count(*) FROM {table}").fetchall()  # noqa: S608 - ours
        return int(row[0])

    def _same_time(self) -> str:
        """A condition that holds only for times that are equal, or too close to be told apart."""
        if self._unit < _MICROSECOND:
            return "s.microsecond = l.microsecond AND s.more_digits = l.more_digits"
        unit = self._unit // _MICROSECOND
        rounded = "{0} - ({0} % {1} + {1}) % {1}"
        return " = ".join(rounded.format(f"{each}.microsecond", unit) for each in "sl")

    def _differing_rows(self) -> Iterator[_Row]:
        result = self._execute(_ROWS)
        while rows := result.fetchmany(BATCH_ROWS):
            yield from map(_Row._make, rows)

    def _differences_of(self, rows: Iterable[_Row]) -> Iterator[tuple[_Row, Difference]]:
        """The differences of one id: its events at the service come first, then its loaded rows.

        Each event matches one row; one with the same time is preferred.
        """
        events: list[_Row] = []
        unmatched: list[_Row] = []
        for each in rows:
            if each.number is not None:
                events.append(each)
            elif events:
                unmatched.append(each)
            else:
                yield from self._too_many(each)
        without = []
        for event in events:
            close = next((each for each in unmatched if self._is_close(each, event)), None)
            if close is None:
                without.append(event)
            else:
                unmatched.remove(close)
        for event in filter(self._is_within, without):
            if unmatched:
                yield event, self._other_time(event, unmatched.pop(0))
            else:
                yield event, self._missing(event)
        for each in unmatched:
            yield from self._too_many(each)

    def _missing(self, event: _Row) -> Difference:
        counts = self._counts_of(event)
        counts.missing += 1
        counts.loaded -= 1
        return self._difference("missing", event, event.text, "")

    def _other_time(self, event: _Row, row: _Row) -> Difference:
        self._counts_of(event).other_time += 1
        return self._difference("other time", event, event.text, row.text)

    def _too_many(self, row: _Row) -> Iterator[tuple[_Row, Difference]]:
        if row.microsecond is None or self._is_within(row):
            counts = self._counts_of(row)
            counts.loaded += 1
            counts.too_many += 1
            yield row, self._difference("too many", row, "", row.text)

    def _difference(self, kind: Kind, row: _Row, at: str, loaded_at: str) -> Difference:
        return Difference(kind, self._organizations[row.organization], row.id, at, loaded_at)

    def _is_within(self, row: _Row) -> bool:
        start, end = self._within
        return start <= (row.microsecond, row.more_digits) <= end

    def _is_close(self, row: _Row, event: _Row) -> bool:
        if row.microsecond is None:
            return False
        is_close = self._unit and abs(row.nanosecond - event.nanosecond) <= self._unit
        return bool(is_close) or row[3:] == event[3:]

    def _counts_of(self, row: _Row) -> Counts:
        return self.days.setdefault(row.text[:_DAY] or UNKNOWN_DAY, Counts())
