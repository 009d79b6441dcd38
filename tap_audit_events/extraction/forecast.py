"""Estimates how many events a range holds: by the hour of the week and by the newest pages."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Final, NamedTuple

from tap_audit_events.events.instants import Instant, microseconds

_DAY, _WEEK = 24, 168
_HOUR: Final = 3_600_000_000

_TRUSTED: Final = _HOUR // 4
"""An hour of the week that was seen for so long is estimated half by itself."""

_REACH: Final = 0.5
"""Fewer events than usual continue for this many times as many as the newest ranges held."""

_NEWEST_RANGES: Final = 5
_SAMPLE: Final = 100
"""Events of a page whose hours are looked at, or up to twice as many."""

_hour_of = itemgetter(slice(len("2026-01-31T00")))


class _Seen(NamedTuple):
    """A range that was read, in microseconds, and how many events it held."""

    start: int
    end: int
    events: int


class Forecast:
    """Estimates events from all that was read.

    An hour of the week that was hardly seen is taken to be like the same hour of other days, and
    that to be like any other hour. If the newest pages hold more events than usual, more are
    expected from then on, as most organizations grow; if they hold fewer, only for a while.
    """

    def __init__(self) -> None:
        self._events = [0.0] * _WEEK
        self._microseconds = [0] * _WEEK
        self._newest: deque[_Seen] = deque(maxlen=_NEWEST_RANGES)
        self._cumulated: list[float] | None = None

    def learn(self, start: Instant, end: Instant, instants: Sequence[Instant]) -> None:
        """Take in a range that was read, and the instants of its events."""
        seen = _Seen(microseconds(start), max(map(microseconds, (start, end))), len(instants))
        sample = instants[:: max(1, len(instants) // _SAMPLE)]
        for text, found in Counter(map(_hour_of, sample)).items():
            hour = microseconds(Instant(f"{text}:00:00")) // _HOUR
            self._events[hour % _WEEK] += found * len(instants) / len(sample)
        self._add_time(seen)
        self._newest.append(seen)
        self._cumulated = None

    def _add_time(self, seen: _Seen) -> None:
        start = seen.start
        weeks, left = divmod(seen.end - start, _WEEK * _HOUR)
        if weeks:
            self._microseconds = [each + weeks * _HOUR for each in self._microseconds]
        while left > 0:
            step = min(left, _HOUR - start % _HOUR)
            self._microseconds[start // _HOUR % _WEEK] += step
            start, left = start + step, left - step

    def expected(self, start: Instant, end: Instant) -> float:
        """Events to expect between two instants; something must have been learned."""
        usual = self._usual(microseconds(start), microseconds(end))
        ratio, missing = self._level()
        return max(usual * ratio, usual - missing)

    def seconds_until(self, start: Instant, events: float) -> float:
        """Seconds from an instant until so many events should have come; as `expected`."""
        ratio, missing = self._level()
        usual = min(events / ratio, events + missing) if ratio else events + missing
        cumulated = self._cumulated_events()
        at = microseconds(start)
        weeks, left = divmod(self._before(at % (_WEEK * _HOUR)) + usual, cumulated[-1])
        hour = bisect_right(cumulated, left) - 1
        share = (left - cumulated[hour]) / (cumulated[hour + 1] - cumulated[hour])
        until = weeks * _WEEK * _HOUR + (hour + share) * _HOUR
        return max(0.0, until - at % (_WEEK * _HOUR)) / 1e6

    def _level(self) -> tuple[float, float]:
        """How many times the usual events the newest ranges held, and how many will be missing."""
        came = sum(seen.events for seen in self._newest)
        usual = sum(self._usual(seen.start, seen.end) for seen in self._newest)
        return came / usual if usual else 1.0, _REACH * max(0.0, usual - came)

    def _usual(self, start: int, end: int) -> float:
        week = _WEEK * _HOUR
        whole_weeks = end // week - start // week
        events = whole_weeks * self._cumulated_events()[-1]
        return max(0.0, events + self._before(end % week) - self._before(start % week))

    def _before(self, into_week: int) -> float:
        """Usual events of a week before so many microseconds of it."""
        cumulated = self._cumulated_events()
        hour, rest = divmod(into_week, _HOUR)
        return cumulated[hour] + (cumulated[hour + 1] - cumulated[hour]) * rest / _HOUR

    def _cumulated_events(self) -> list[float]:
        """Usual events before each hour of the week, and before its end."""
        if self._cumulated is None:
            overall = max(1.0, sum(self._events)) / max(1.0, sum(self._microseconds))
            by_day = [
                _rate(sum(self._events[hour::_DAY]), sum(self._microseconds[hour::_DAY]), overall)
                for hour in range(_DAY)
            ]
            rates = [
                _rate(events, seen, by_day[hour % _DAY])
                for hour, (events, seen) in enumerate(
                    zip(self._events, self._microseconds, strict=True)
                )
            ]
            self._cumulated = list(accumulate((rate * _HOUR for rate in rates), initial=0.0))
        return self._cumulated


def _rate(events: float, seen: int, otherwise: float) -> float:
    """Events a microsecond; `otherwise` as long as little was seen. Always above 0."""
    return (events + _TRUSTED * otherwise) / (seen + _TRUSTED)
