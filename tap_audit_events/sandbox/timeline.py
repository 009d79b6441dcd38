"""When the sandbox's events happen: in office hours, in bursts, some at the same instant."""

from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random
from typing import Final, NamedTuple

HOUR: Final = 3_600_000_000
"""The microseconds of an hour."""

TIE_EVERY: Final = 100
"""Each event of this number, from the oldest, has the instant of the one before it.

So ties lie across the boundaries of pages of 100 and of 1,000 events.
"""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS: Final = (0, 3, 3, 3, 6)
_SHORTEST_UNIT: Final = {0: 1_000_000, 3: 1_000, 6: 1}


class Moment(NamedTuple):
    """Microseconds since 1970, and with how many digits of a fraction they are written."""

    microseconds: int
    digits: int

    def text(self) -> str:
        """The moment as `occurredAt` has it."""
        text = (_EPOCH + timedelta(microseconds=self.microseconds)).isoformat("T", "microseconds")
        return text[: 20 + self.digits if self.digits else 19] + "Z"


def moment_of(time: datetime, digits: int) -> Moment:
    """The moment of a date-time, rounded down to the digits."""
    return _rounded_down((time - _EPOCH) // timedelta(microseconds=1), digits)


def timeline(count: int, days: float, until: datetime, random: Random) -> list[Moment]:
    """So many moments, oldest first, within the days before `until`.

    The newest is the last millisecond before `until`.
    """
    newest = moment_of(until - timedelta(microseconds=1), 3)
    oldest = min(moment_of(until - timedelta(days=days), 6), newest)
    drawn = _drawn(count, oldest.microseconds, newest.microseconds, random)
    moments = sorted(
        min(max(_rounded_down(time, random.choice(_DIGITS)), oldest), newest)
        for time in _with_bursts(drawn, random)
    )
    for index in range(TIE_EVERY, count, TIE_EVERY):
        moments[index] = moments[index - 1]
    return [*moments[:-1], newest][:count]


def _rounded_down(microseconds: int, digits: int) -> Moment:
    return Moment(microseconds - microseconds % _SHORTEST_UNIT[digits], digits)


def _drawn(count: int, start: int, end: int, random: Random) -> list[int]:
    """Times as they come by themselves, in order: many where the hour is a busy one."""
    hours = range(start, end + 1, HOUR)
    weights = [_weight(hour) * min(HOUR, end + 1 - hour) for hour in hours]
    totals = list(accumulate(weights))
    drawn = sorted(random.random() * totals[-1] for _ in range(count))
    times, index = [], 0
    for point in drawn:
        while point >= totals[index]:
            index += 1
        into = point - (totals[index] - weights[index])
        times.append(hours[index] + int(into / _weight(hours[index])))
    return times


def _weight(hour: int) -> float:
    time = _EPOCH + timedelta(microseconds=hour)
    if time.weekday() >= 5:
        return 0.3
    if 8 <= time.hour < 18:
        return 6.0 if time.hour == 12 else 10.0
    return 2.0 if 18 <= time.hour < 22 else 0.4


def _with_bursts(times: list[int], random: Random) -> list[int]:
    """Here and there, a run of events that follows the first within moments."""
    left = 0
    for index in range(1, len(times)):
        if left:
            left -= 1
            times[index] = times[index - 1] + random.choice((0, 0, 40_000, 250_000, 900_000))
        elif random.random() < 0.02:
            left = random.randrange(3, 25)
    return times
