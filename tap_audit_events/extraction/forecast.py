"""How many events a while will bring: by the hour of the week, and by what came last."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Final, NamedTuple

from tap_audit_events.events.instants import Instant, microseconds

_DAY, _WEEK = 24, 168
_HOUR: Final = 3_600_000_000
_SHORTEST: Final = 1.0
"""Microseconds that the events of a single instant are taken to last."""

_TRUSTED: Final = 2 * _HOUR
"""For so long an hour of the week has to have been seen to be judged half by itself."""

_REACH: Final = 1.5
"""What came last tells about this many times as much of what comes next."""

_SAMPLE: Final = 100
"""Of the events of a page so many are looked at, or twice that: enough to tell its hours."""

_hour_of = itemgetter(slice(len("2026-01-31T00")))


class Stretch(NamedTuple):
    """A part of the range that was read: from where to where, and how many events it held."""

    start: Instant
    end: Instant
    events: int


class Rhythm:
    """How many events an hour of the week brings, judged by all that was read.

    An hour that was hardly seen is taken to be like the same hour of other days, and that to be
    like any other.
    """

    def __init__(self) -> None:
        self._events = [0.0] * _WEEK
        self._microseconds = [0] * _WEEK
        self._rates: list[float] | None = None
        self._cumulated: list[float] = []

    def learn(self, stretch: Stretch, instants: Sequence[Instant]) -> None:
        """Take in what was read of a stretch: the instants of its events, at least one."""
        sample = instants[:: max(1, len(instants) // _SAMPLE)]
        for text, found in Counter(map(_hour_of, sample)).items():
            hour = microseconds(Instant(f"{text}:00:00")) // _HOUR
            self._events[hour % _WEEK] += found * len(instants) / len(sample)
        start = microseconds(stretch.start)
        weeks, left = divmod(microseconds(stretch.end) - start, _WEEK * _HOUR)
        if weeks:
            self._microseconds = [seen + weeks * _HOUR for seen in self._microseconds]
        while left > 0:
            step = min(left, _HOUR - start % _HOUR)
            self._microseconds[start // _HOUR % _WEEK] += step
            start, left = start + step, left - step
        self._rates = None

    def expected(self, start: Instant, end: Instant) -> float:
        """How many events should lie between two instants; none if nothing was learned."""
        (week, into), (last_week, last_into) = map(self._place, (start, end))
        return max(0.0, (last_week - week) * self._cumulated[-1] + last_into - into)

    def seconds_for(self, start: Instant, events: float) -> float:
        """How long it should take from an instant on until so many events have come.

        Something must have been learned.
        """
        _, into = self._place(start)
        weeks, left = divmod(into + events, self._cumulated[-1])
        hour = min(bisect_right(self._cumulated, left), _WEEK) - 1
        end = hour * _HOUR + (left - self._cumulated[hour]) / self._rates_now()[hour]
        return (weeks * _WEEK * _HOUR + end - microseconds(start) % (_WEEK * _HOUR)) / 1e6

    def _place(self, instant: Instant) -> tuple[int, float]:
        """The number of its week, and how many events should lie in that week before it."""
        rates = self._rates_now()
        week, into = divmod(microseconds(instant), _WEEK * _HOUR)
        hour, rest = divmod(into, _HOUR)
        return week, self._cumulated[hour] + rest * rates[hour]

    def _rates_now(self) -> list[float]:
        """Events a microsecond in each hour of the week."""
        if self._rates is None:
            overall = sum(self._events) / max(_SHORTEST, sum(self._microseconds))
            by_day = [
                _rate(sum(self._events[hour::_DAY]), sum(self._microseconds[hour::_DAY]), overall)
                for hour in range(_DAY)
            ]
            self._rates = [
                _rate(events, seen, by_day[hour % _DAY])
                for hour, (events, seen) in enumerate(
                    zip(self._events, self._microseconds, strict=True)
                )
            ]
            self._cumulated = list(accumulate((rate * _HOUR for rate in self._rates), initial=0.0))
        return self._rates


def _rate(events: float, seen: int, otherwise: float) -> float:
    return (events + _TRUSTED * otherwise) / (seen + _TRUSTED)


class Level(NamedTuple):
    """How much came lately, against what the rhythm lets expect for the same time.

    For a while things go on like that, and then as usual.

    Attributes:
        came: events that came.
        usual: events that were to be expected.
    """

    came: float
    usual: float

    @classmethod
    def of(cls, stretches: Sequence[Stretch], rhythm: Rhythm) -> Level:
        """What some stretches held."""
        return cls(
            sum(stretch.events for stretch in stretches),
            sum(rhythm.expected(stretch.start, stretch.end) for stretch in stretches),
        )

    def to_come(self, usual: float) -> float:
        """How many events to expect where usually there would be so many."""
        if not self.usual:
            return usual
        near = min(usual, _REACH * self.usual)
        return near * self.came / self.usual + usual - near

    def usual_for(self, events: float) -> float:
        """How many there would be usually where so many are to be expected."""
        near = min(events, _REACH * self.came)
        return near * self.usual / self.came + events - near if self.usual and self.came else events
