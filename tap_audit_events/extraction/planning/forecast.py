"""Estimates how many events a range holds, by the hour of the week."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from tap_audit_events.events.instants import Instant, microseconds

_DAY, _WEEK = 24, 168
_HOUR: Final = 3_600_000_000
_WEEK_MICROSECONDS: Final = _WEEK * _HOUR

_TRUSTED: Final = _HOUR // 4
"""Once this much of an hour of the week was read, its own rate has half the weight."""

_BUSIEST: Final = 8
"""The busiest hour counts as at most this many times the average rate, so that a single burst does
not make all later hours seem as busy."""

_WEEKDAYS: Final = 5
_FEW_WEEKDAYS: Final = 0.2
"""If at most this share of what was read is from Monday to Friday, as in a run that begins on a
weekend, hours that were not read may be far busier than those that were."""

_NEWEST_RANGES: Final = 5

_TO_HOUR: Final = len("2026-01-31T00")
"""Length of an instant's text up to the hour. A colon follows it, so the instants of an hour sort
before this text with a semicolon."""


class _Seen(NamedTuple):
    """A range that was read, in microseconds, and how many events it held."""

    start: int
    end: int
    events: int


class Forecast:
    """Estimates the number of events in a range from all ranges that were read.

    An hour of the week of which little was read is assumed to be like the same hour of other days;
    if little of these was read too, like the average hour. If the newest ranges hold more
    events than usual, more are expected from then on, as most organizations grow.

    `seconds_until_if_busy` assumes that hours of which little was read are like the busiest one: a
    run that begins at night has not read the day yet.
    """

    def __init__(self) -> None:
        self._events = [0.0] * _WEEK
        self._microseconds = [0] * _WEEK
        self._newest: deque[_Seen] = deque(maxlen=_NEWEST_RANGES)
        self._typical_week: _Week | None = None

    def learn(self, start: Instant, end: Instant, instants: Sequence[Instant]) -> None:
        """Learn from a range that was read; the instants of its events are ascending."""
        position = 0
        while position < len(instants):
            first = instants[position]
            of_hour = bisect_left(instants, f"{first[:_TO_HOUR]};", position) - position
            self._events[microseconds(first) // _HOUR % _WEEK] += of_hour
            position += of_hour
        seen = _Seen(microseconds(start), microseconds(max(start, end)), len(instants))
        self._add_time(seen)
        self._newest.append(seen)
        self._typical_week = None

    def _add_time(self, seen: _Seen) -> None:
        start = seen.start
        weeks, left = divmod(seen.end - start, _WEEK_MICROSECONDS)
        self._microseconds = [each + weeks * _HOUR for each in self._microseconds]
        while left > 0:
            step = min(left, _HOUR - start % _HOUR)
            self._microseconds[start // _HOUR % _WEEK] += step
            start, left = start + step, left - step

    def expected(self, start: Instant, end: Instant) -> float:
        """Events to expect between two instants; something must have been learned."""
        usual = self._typical().events_between(microseconds(start), microseconds(end))
        return usual * self._level()

    def seconds_until(self, start: Instant, events: float) -> float:
        """Seconds from an instant until so many events are expected, as by `expected`."""
        usual = events / self._level()
        return self._typical().microseconds_until(microseconds(start), usual) / 1e6

    def seconds_until_if_busy(self, start: Instant, events: float) -> float:
        """As `seconds_until`, if hours of which little was read are like the busiest one."""
        of_all = self._rate_of_all()
        busiest = _BUSIEST * of_all
        weekdays = sum(self._microseconds[: _WEEKDAYS * _DAY])
        if weekdays > _FEW_WEEKDAYS * sum(self._microseconds):
            busiest = min(busiest, max(self._rates([of_all] * _DAY)))
        week = _Week(self._rates([busiest] * _DAY))
        return week.microseconds_until(microseconds(start), events) / 1e6

    def _level(self) -> float:
        """The events of the newest ranges, divided by those usual for them; at least 1."""
        came = sum(seen.events for seen in self._newest)
        usual = sum(self._typical().events_between(seen.start, seen.end) for seen in self._newest)
        return max(1.0, came / usual) if usual else 1.0

    def _typical(self) -> _Week:
        if self._typical_week is None:
            hours, of_all = range(_DAY), self._rate_of_all()
            events = [sum(self._events[hour::_DAY]) for hour in hours]
            seen = [sum(self._microseconds[hour::_DAY]) for hour in hours]
            by_day = [_rate(events[hour], seen[hour], of_all) for hour in hours]
            self._typical_week = _Week(self._rates(by_day))
        return self._typical_week

    def _rates(self, otherwise: Sequence[float]) -> list[float]:
        """Events a microsecond in each hour of the week; `otherwise` if little of it was read."""
        seen = zip(self._events, self._microseconds, strict=True)
        return [
            _rate(events, time, otherwise[hour % _DAY]) for hour, (events, time) in enumerate(seen)
        ]

    def _rate_of_all(self) -> float:
        return max(1.0, sum(self._events)) / max(1.0, sum(self._microseconds))


class _Week:
    """How many events each hour of a week holds, the same every week.

    Args:
        rates: events a microsecond in each hour, above 0.
    """

    def __init__(self, rates: Iterable[float]) -> None:
        self._before_hour = list(accumulate((rate * _HOUR for rate in rates), initial=0.0))

    def events_between(self, start: int, end: int) -> float:
        """Events between two times in microseconds, 0 if they are in the wrong order."""
        weeks = end // _WEEK_MICROSECONDS - start // _WEEK_MICROSECONDS
        events = weeks * self._before_hour[-1] + self._before(end) - self._before(start)
        return max(0.0, events)

    def microseconds_until(self, start: int, events: float) -> float:
        weeks, left = divmod(self._before(start) + events, self._before_hour[-1])
        hour = bisect_right(self._before_hour, left) - 1
        share = (left - self._before_hour[hour]) / self._of_hour(hour)
        until = (weeks * _WEEK + hour + share) * _HOUR
        return max(0.0, until - start % _WEEK_MICROSECONDS)

    def _before(self, time: int) -> float:
        """Events since the week began."""
        hour, rest = divmod(time % _WEEK_MICROSECONDS, _HOUR)
        return self._before_hour[hour] + self._of_hour(hour) * rest / _HOUR

    def _of_hour(self, hour: int) -> float:
        return self._before_hour[hour + 1] - self._before_hour[hour]


def _rate(events: float, seen: int, otherwise: float) -> float:
    """Events a microsecond; `otherwise` as long as little was read. Always above 0."""
    return (events + _TRUSTED * otherwise) / (seen + _TRUSTED)
