"""The data of a calendar: the events of each day, and the time that is not covered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

Span = tuple[datetime, datetime]
"""Start (inclusive) and end (exclusive), in UTC without a zone."""

DAY = timedelta(days=1)

MICROSECOND = timedelta(microseconds=1)
"""Not a gap: loaders cut the end of a range, such as ``23:59:59.999999999Z``, to microseconds."""


@dataclass(frozen=True)
class Calendar:
    """The events and the gaps of a year.

    Attributes:
        year: the year.
        events: how many events each day has, by its date.
        gaps: the time that is not covered, in order.
        until: end of the time that is known, exclusive.
        organizations: how many organizations have coverage records, of any year.
        limited_records: how many records of this year cover only some action types.
    """

    year: int
    events: Mapping[date, int]
    gaps: tuple[Span, ...]
    until: datetime
    organizations: int
    limited_records: int = 0

    @property
    def note(self) -> str:
        """A note for the reader, usually empty."""
        count = self.limited_records
        return f"coverage records only for some action types: {count:,}" if count else ""

    def gaps_of(self, day: date) -> list[tuple[float, float]]:
        """The parts of a day that are not covered, as fractions of the day."""
        start = datetime.combine(day, datetime.min.time())
        found = _overlaps(self.gaps, (start, start + DAY))
        return [((low - start) / DAY, (high - start) / DAY) for low, high in found]


def find_gaps(covered: Mapping[str, Iterable[Span]], within: Span) -> tuple[Span, ...]:
    """The time in a span that is not covered for at least one organization.

    Args:
        covered: what is covered of each organization; without any, all time is missing.
        within: the span.
    """
    if not covered:
        return (within,) if within[0] < within[1] else ()
    gaps = [gap for spans in covered.values() for gap in _gaps_of_one(spans, within)]
    return tuple(_merged(gaps))


def year_span(year: int, now: datetime) -> Span:
    """The span of a year, cut at `now`, which is in UTC without a zone."""
    start, end = datetime(year, 1, 1), datetime(year + 1, 1, 1)  # noqa: DTZ001 - in UTC
    return start, max(start, min(end, now))


def _gaps_of_one(spans: Iterable[Span], within: Span) -> list[Span]:
    gaps, reached = [], within[0]
    for start, end in sorted(_overlaps(spans, within)):
        gaps.append((reached, start))
        reached = max(reached, end)
    gaps.append((reached, within[1]))
    return [(start, end) for start, end in gaps if end - start > MICROSECOND]


def _overlaps(spans: Iterable[Span], within: Span) -> list[Span]:
    cut = ((max(start, within[0]), min(end, within[1])) for start, end in spans)
    return [(start, end) for start, end in cut if start < end]


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged
