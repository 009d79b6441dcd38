"""Estimates how many events a range holds, by the hour of the day."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from tap_audit_events.events.instants import Instant, later, microseconds, whole_second

_HOUR: Final = 3_600_000_000  # in microseconds, like all times here
_DAY: Final = 24 * _HOUR

_TRUSTED: Final = _HOUR // 4
"""Once this much of an hour was read, its own density has half the weight, and that of the average
hour the other half."""

_NEWEST_RANGES: Final = 5
_MAX_GROWTH: Final = 8.0

_TO_HOUR: Final = len("2026-01-31T00")
"""Length of an instant's text up to the hour. A colon follows it, so the instants of an hour sort
before this text with a semicolon."""


class _Range(NamedTuple):
    """A range that was read, and how many events it held."""

    start: int
    end: int
    events: int


class HourlyDensity:
    """Events per microsecond in each hour of the day, learned from the ranges that were read.

    If the newest ranges held more events than these hours usually do, more are expected from then
    on, as most organizations grow.
    """

    def __init__(self) -> None:
        self._events = [0] * 24
        self._time = [0] * 24
        self._newest: deque[_Range] = deque(maxlen=_NEWEST_RANGES)
        self._before_hour = [0.0]
        self._growth = 1.0

    def learn(self, start: Instant, end: Instant, instants: Sequence[Instant]) -> None:
        """Learn from a range that was read; the instants of its events are ascending."""
        position = 0
        while position < len(instants):
            first = instants[position]
            next_hour = bisect_left(instants, f"{first[:_TO_HOUR]};", position)
            self._events[microseconds(first) % _DAY // _HOUR] += next_hour - position
            position = next_hour
        seen = _Range(microseconds(start), microseconds(max(start, end)), len(instants))
        for hour in range(24):
            self._time[hour] += _time_before(seen.end, hour) - _time_before(seen.start, hour)
        self._newest.append(seen)
        self._estimate()

    def events_between(self, start: Instant, end: Instant) -> float:
        """Events to expect between two instants; something must have been learned."""
        return self._growth * self._usual(microseconds(start), microseconds(end))

    def instant_after(self, start: Instant, events: float) -> Instant:
        """The whole second after an instant by which so many events are expected."""
        begin = microseconds(start)
        days, left = divmod(self._before(begin) + events / self._growth, self._before_hour[-1])
        hour = min(23, bisect_right(self._before_hour, left) - 1)
        share = (left - self._before_hour[hour]) / self._of_hour(hour)
        end = int((days * 24 + hour + share) * _HOUR)
        seconds = max(0, end - begin % _DAY) // 1_000_000
        return later(whole_second(start), seconds=2 + seconds)  # both are rounded down

    def _estimate(self) -> None:
        average = max(1, sum(self._events)) / max(1, sum(self._time))
        densities = [
            (events + _TRUSTED * average) / (time + _TRUSTED)
            for events, time in zip(self._events, self._time, strict=True)
        ]
        self._before_hour = list(accumulate((each * _HOUR for each in densities), initial=0.0))
        came = sum(seen.events for seen in self._newest)
        usual = sum(self._usual(seen.start, seen.end) for seen in self._newest)
        self._growth = min(max(1.0, came / usual), _MAX_GROWTH) if usual else 1.0

    def _usual(self, start: int, end: int) -> float:
        """Events between two times without growth, 0 if they are in the wrong order."""
        days = end // _DAY - start // _DAY
        return max(0.0, days * self._before_hour[-1] + self._before(end) - self._before(start))

    def _before(self, time: int) -> float:
        """Events since the day began."""
        hour, rest = divmod(time % _DAY, _HOUR)
        return self._before_hour[hour] + self._of_hour(hour) * rest / _HOUR

    def _of_hour(self, hour: int) -> float:
        return self._before_hour[hour + 1] - self._before_hour[hour]


def _time_before(time: int, hour: int) -> int:
    """How much of all time before `time` lies in this hour of the day."""
    days, rest = divmod(time, _DAY)
    return days * _HOUR + min(max(0, rest - hour * _HOUR), _HOUR)
