"""When generated events happen: in office hours, in bursts, some at the same instant."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from tap_audit_events.sandbox.data.instants import Instant

TIE_EVERY: Final = 100
"""After every so many events, from the oldest, the next has the instant of the one before it.

So ties lie across the boundaries of pages of 100 and of 1,000 events.
"""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR: Final = 3_600_000_000
_UNITS: Final = (1_000_000, 1_000, 1_000, 1_000, 1)
"""The microseconds of an event's last digit: one in five events has whole seconds, and so on."""

_WORKDAY: Final = (0.4,) * 8 + (10.0,) * 4 + (6.0,) + (10.0,) * 5 + (2.0,) * 4 + (0.4,) * 2
_WEEK: Final = _WORKDAY * 5 + (0.3,) * 48
"""How busy each hour of the week is, from Monday midnight UTC."""
_EPOCH_HOUR_OF_WEEK: Final = 3 * 24  # 1970 began on a Thursday.


def timeline(count: int, days: float, until: datetime, random: Random) -> list[Instant]:
    """The instants of `count` events within the days before `until`, oldest first.

    The newest is the last millisecond before `until`.
    """
    newest = _microseconds(until - timedelta(microseconds=1)) // 1000 * 1000
    oldest = min(_microseconds(until - timedelta(days=days)), newest)
    times = _drawn(count, oldest, newest, random)
    for first in random.sample(range(count), count // 60):
        for index in range(first + 1, min(first + random.randrange(4, 26), count)):
            times[index] = times[index - 1] + random.choice((0, 0, 40_000, 250_000, 900_000))
    units = random.choices(_UNITS, k=count)
    times = [min(time - time % unit, newest) for time, unit in zip(times, units, strict=True)]
    times = sorted(max(time, oldest) for time in times)
    for index in range(TIE_EVERY, count, TIE_EVERY):
        times[index] = times[index - 1]
    times[-1:] = [newest] * min(count, 1)
    return [_instant(time) for time in times]


def _drawn(count: int, oldest: int, newest: int, random: Random) -> list[int]:
    """Times in order, more of them in busier hours."""
    hours = range(oldest, newest + 1, _HOUR)
    lengths = [min(_HOUR, newest + 1 - hour) for hour in hours]
    weights = [
        _WEEK[(hour // _HOUR + _EPOCH_HOUR_OF_WEEK) % len(_WEEK)] * length
        for hour, length in zip(hours, lengths, strict=True)
    ]
    drawn = random.choices(range(len(hours)), weights, k=count)
    return sorted(hours[index] + int(random.random() * lengths[index]) for index in drawn)


def _microseconds(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)


def _instant(microseconds: int) -> Instant:
    text = (_EPOCH + timedelta(microseconds=microseconds)).isoformat()[:-6]
    return text.rstrip("0") if "." in text else text
