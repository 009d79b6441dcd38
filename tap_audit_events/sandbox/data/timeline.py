"""When generated events happen: in office hours, in bursts, some at the same instant."""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import Final, TypeAlias

Stamp: TypeAlias = int
"""Microseconds since 1970 times ten, plus the number of fraction digits: 0, 3 or 6."""

TIE_EVERY: Final = 100
"""After every so many events, from the oldest, the next has the instant of the one before it.

So ties lie across the boundaries of pages of 100 and of 1,000 events.
"""

_MINUTE: Final = 60_000_000
_HOUR: Final = 60 * _MINUTE
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTES: Final = tuple(f"T{minute // 60:02}:{minute % 60:02}:" for minute in range(1440))
_DIGITS: Final = (0, 3, 3, 3, 6)
_SHORTEST_UNIT: Final = (1_000_000, 0, 0, 1_000, 0, 0, 1)
"""The microseconds of one unit of the last digit, by the number of digits."""
_WORKDAY: Final = (0.4,) * 8 + (10.0,) * 4 + (6.0,) + (10.0,) * 5 + (2.0,) * 4 + (0.4,) * 2
_WEEK: Final = _WORKDAY * 5 + (0.3,) * 48
"""How busy each hour of the week is, from Monday midnight UTC."""
_EPOCH_HOUR_OF_WEEK: Final = 3 * 24  # 1970 began on a Thursday.


def stamp_of(time: datetime, digits: int) -> Stamp:
    """The stamp of a date-time, rounded down to the digits."""
    return _stamp((time - _EPOCH) // timedelta(microseconds=1), digits)


def text_of(stamp: Stamp) -> str:
    """The time as `occurredAt` has it."""
    microseconds, digits = divmod(stamp, 10)
    minutes, rest = divmod(microseconds, _MINUTE)
    days, minute = divmod(minutes, 1440)
    second, fraction = divmod(rest, 1_000_000)
    if digits == 0:
        return f"{_date(days)}{_MINUTES[minute]}{second:02}Z"
    if digits == 3:
        return f"{_date(days)}{_MINUTES[minute]}{second:02}.{fraction // 1000:03}Z"
    return f"{_date(days)}{_MINUTES[minute]}{second:02}.{fraction:06}Z"


def tied(stamps: Sequence[Stamp]) -> Iterator[tuple[int, int]]:
    """The first index of each run of the same instant, and the one after its last."""
    start = 0
    for index in range(1, len(stamps) + 1):
        if index == len(stamps) or stamps[index] // 10 != stamps[start] // 10:
            if index - start > 1:
                yield start, index
            start = index


@lru_cache(maxsize=64)
def _date(days: int) -> str:
    return (_EPOCH + timedelta(days=days)).date().isoformat()


def timeline(count: int, days: float, until: datetime, random: Random) -> Sequence[Stamp]:
    """The stamps of `count` events within the days before `until`, oldest first.

    The newest is the last millisecond before `until`.
    """
    newest = stamp_of(until - timedelta(microseconds=1), 3)
    oldest = min(stamp_of(until - timedelta(days=days), 6), newest)
    drawn = _drawn(count, oldest // 10, newest // 10, random)
    digits = random.choices(_DIGITS, k=count)
    stamps = sorted(map(_stamp, _with_bursts(drawn, random), digits))
    _clamp(stamps, oldest, newest)
    for index in range(TIE_EVERY, count, TIE_EVERY):
        stamps[index] = stamps[index - 1]
    stamps[-1:] = [newest] * min(count, 1)
    return array("q", stamps)


def _stamp(microseconds: int, digits: int) -> Stamp:
    return (microseconds - microseconds % _SHORTEST_UNIT[digits]) * 10 + digits


def _clamp(stamps: list[Stamp], oldest: Stamp, newest: Stamp) -> None:
    """Move what lies outside of the bounds, in a sorted list, to them."""
    below, up_to = bisect_left(stamps, oldest), bisect_right(stamps, newest)
    stamps[up_to:] = [newest] * (len(stamps) - up_to)
    stamps[:below] = [oldest] * below


def _drawn(count: int, start: int, end: int, random: Random) -> Iterator[int]:
    """Independent times in order, more of them in busier hours."""
    hours = range(start, end + 1, _HOUR)
    rates = [_WEEK[(hour // _HOUR + _EPOCH_HOUR_OF_WEEK) % len(_WEEK)] for hour in hours]
    weights = [rate * min(_HOUR, end + 1 - hour) for rate, hour in zip(rates, hours, strict=True)]
    ends = list(accumulate(weights))
    # Partial sums of exponential gaps, scaled, are uniform draws that are sorted already.
    gaps = array("d", (-math.log(1.0 - random.random()) for _ in range(count + 1)))
    scale = ends[-1] / sum(gaps)
    ends[-1] = math.inf  # A sum may be rounded beyond the last one.
    index = 0
    for point in accumulate(gaps[:-1]):
        scaled = point * scale
        while scaled >= ends[index]:
            index += 1
        begin = ends[index - 1] if index else 0.0
        yield hours[index] + int((scaled - begin) / rates[index])


def _with_bursts(times: Iterator[int], random: Random) -> Iterator[int]:
    """Replace some times, so that a run of events follows within moments of the one before."""
    left = 0
    burst = 0
    for time in times:
        if left:
            left -= 1
            burst += random.choice((0, 0, 40_000, 250_000, 900_000))
            yield burst
        else:
            yield time
            if random.random() < 0.02:
                left, burst = random.randrange(3, 25), time
