"""The data of a calendar: the events of each day, and the time that is not covered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

Span = tuple[datetime, datetime]
"""Start (inclusive) and end (exclusive), in UTC without a zone."""

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Calendar:
    """The events and the gaps of a year.

    Attributes:
        year: the year.
        events: how many events each day has, by its date.
        gaps: the time that is not covered, in order; None if there are no coverage records, so that
            it is not known.
        until: end of the time that is known, exclusive.
        organizations: how many organizations have coverage records, of any year.
        limited_records: how many records of this year cover only some action types.
    """

    year: int
    events: Mapping[date, int]
    gaps: tuple[Span, ...] | None
    until: datetime
    organizations: int = 0
    limited_records: int = 0

    @property
    def note(self) -> str:
        """A note for the reader, usually empty."""
        if self.gaps is None:
            return "there are no coverage records, so missing time is not known"
        count = self.limited_records
        return f"coverage records only for some action types: {count:,}" if count else ""

    def gaps_of(self, day: date) -> list[tuple[float, float]]:
        """The parts of a day that are not covered, as fractions of the day."""
        start = datetime.combine(day, datetime.min.time())
        cut = ((max(low, start), min(high, start + _DAY)) for low, high in self.gaps or ())
        return [((low - start) / _DAY, (high - start) / _DAY) for low, high in cut if low < high]


def year_span(year: int, now: datetime) -> Span:
    """The span of a year, cut at `now`, which is in UTC without a zone."""
    start, end = datetime(year, 1, 1), datetime(year + 1, 1, 1)  # noqa: DTZ001 - in UTC
    return start, max(start, min(end, now))


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Spans that begin one after the other, without overlaps."""
    found: list[Span] = []
    for start, end in spans:
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return tuple(found)
