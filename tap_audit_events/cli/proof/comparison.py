"""Compares the events of the service with the loaded rows, which are kept in a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

from tap_audit_events.cli.loaded.row import Range, Row, instants_of, nanoseconds
from tap_audit_events.events.instants import Instant, text_of

CACHE_KILOBYTES: Final = 32_000
UNKNOWN_DAY: Final = "unknown"
_DAY: Final = len("2026-01-31")

Kind = Literal["missing", "too many", "other time"]


class Key(NamedTuple):
    """What identifies an event of the service.

    Attributes:
        organization_id: its organization in lower case, empty if there is only one.
        id: its id.
        instant: its time.
    """

    organization_id: str
    id: str
    instant: Instant


class Difference(NamedTuple):
    """An event that is missing, is too many, or has another time.

    Attributes:
        kind: what differs.
        organization_id: its organization, empty if there is only one.
        id: its id.
        occurred_at: its time at the service, empty if the service does not show it.
        loaded_at: the time in the loaded row; empty if no row, or no time, was loaded.
    """

    kind: Kind
    organization_id: str
    id: str
    occurred_at: str
    loaded_at: str


@dataclass(slots=True)
class Counts:
    """The counts of a day."""

    service: int = 0
    loaded: int = 0
    missing: int = 0
    too_many: int = 0
    other_time: int = 0


class Comparison:
    """Compares events with rows. All rows are added before the first event is compared.

    Memory holds only the counts of each day and a bit for each row.

    Args:
        path: a new file for the rows.
        within: the range that is compared.
        unit_nanoseconds: how much two times may differ, because the table rounds them.
    """

    def __init__(self, path: Path, within: Range, unit_nanoseconds: int) -> None:
        self._within = within
        self._wide = within.widened(unit_nanoseconds)
        self._unit = unit_nanoseconds
        self.days: dict[str, Counts] = {}
        self.rows = 0
        self._seen = bytearray()
        self._file = sqlite3.connect(path, isolation_level=None)
        for pragma in (
            "journal_mode = OFF",
            "synchronous = OFF",
            "locking_mode = EXCLUSIVE",
            f"cache_size = -{CACHE_KILOBYTES}",
        ):
            self._file.execute(f"PRAGMA {pragma}")
        self._file.execute(
            "CREATE TABLE loaded"
            " (number INTEGER PRIMARY KEY, hash INTEGER, organization TEXT, id TEXT, time TEXT)"
        )
        self._file.execute("BEGIN")

    def add_rows(self, rows: Sequence[Row]) -> None:
        """Add loaded rows; those that cannot be in the range are ignored."""
        instants = instants_of([row.time for row in rows])
        kept = [
            (self._hash(organization, row.id), organization, row.id, instant)
            for row, instant in zip(rows, instants, strict=True)
            if instant is None or self._wide.holds(instant)
            for organization in [row.organization_id or ""]
        ]
        self._file.executemany(
            "INSERT INTO loaded (hash, organization, id, time) VALUES (?, ?, ?, ?)", kept
        )
        self.rows += len(kept)

    def all_rows_added(self) -> None:
        """Index the rows, before events are compared."""
        self._file.execute("CREATE INDEX by_hash ON loaded (hash)")
        self._file.execute("COMMIT")  # writes the remaining rows, so that nothing is written later
        self._seen = bytearray(self.rows // 8 + 1)

    def compare(self, keys: Iterable[Key]) -> list[tuple[int, Difference]]:
        """Compare events of the service; `keys` has each event once.

        Returns:
            The events that differ, with their positions.
        """
        found = []
        for position, key in enumerate(keys):
            difference = self._compare(key)
            if difference is not None:
                found.append((position, difference))
        return found

    def too_many(self) -> Iterator[Difference]:
        """The rows of the range that match no event of the service, or repeat one."""
        rows = self._file.execute("SELECT number, organization, id, time FROM loaded")
        for number, organization, event_id, time in rows:
            if not self._was_seen(number) and (time is None or self._within.holds(time)):
                counts = self._counts_of(UNKNOWN_DAY if time is None else time[:_DAY])
                counts.loaded += 1
                counts.too_many += 1
                yield Difference("too many", organization, event_id, "", _text(time))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _compare(self, key: Key) -> Difference | None:
        is_within = self._within.holds(key.instant)
        row = self._unseen_row(key)
        if row is None:
            if not is_within:
                return None
            counts = self._counts_of(key.instant[:_DAY])
            counts.service += 1
            counts.missing += 1
            return Difference("missing", key.organization_id, key.id, text_of(key.instant), "")
        number, time = row
        is_close = self._is_close(time, key.instant)
        if not is_within and not is_close:
            return None
        self._seen[number >> 3] |= 1 << (number & 7)
        if not is_within:
            return None
        counts = self._counts_of(key.instant[:_DAY])
        counts.service += 1
        counts.loaded += 1
        if is_close:
            return None
        counts.other_time += 1
        return Difference(
            "other time", key.organization_id, key.id, text_of(key.instant), _text(time)
        )

    def _unseen_row(self, key: Key) -> tuple[int, Instant | None] | None:
        """A row of this event that matched no event yet; one with the same time is preferred."""
        rows = self._file.execute(
            "SELECT number, time FROM loaded WHERE hash = ? AND id = ? AND organization = ?",
            (self._hash(key.organization_id, key.id), key.id, key.organization_id),
        )
        first = None
        for number, time in rows:
            if not self._was_seen(number):
                if self._is_close(time, key.instant):
                    return number, time
                first = first or (number, time)
        return first

    def _was_seen(self, number: int) -> int:
        return self._seen[number >> 3] & 1 << (number & 7)

    def _is_close(self, time: Instant | None, instant: Instant) -> bool:
        if time == instant:
            return True
        if time is None or not self._unit:
            return False
        return abs(nanoseconds(time) - nanoseconds(instant)) <= self._unit

    def _counts_of(self, day: str) -> Counts:
        return self.days.setdefault(day, Counts())

    @staticmethod
    def _hash(organization: str, event_id: str) -> int:
        """Hash of the index; the id and the organization are compared too."""
        return hash((organization, event_id))


def _text(time: Instant | None) -> str:
    return "" if time is None else text_of(time)
