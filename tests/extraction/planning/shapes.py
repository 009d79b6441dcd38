"""How events may lie in a month: evenly, by day, in bursts, long ago, in one second."""

import random
from collections.abc import Callable

from tap_audit_events.events.instants import Instant
from tests.extraction.planning.scheduling import RANGE_SECONDS, instant

DAY = 86400
Shape = Callable[[int, random.Random], list[float]]


def even(count: int, rng: random.Random) -> list[float]:
    return [rng.random() * RANGE_SECONDS for _ in range(count)]


def office_hours(count: int, rng: random.Random) -> list[float]:
    return [rng.randrange(30) * DAY + 8 * 3600 + rng.random() * 36000 for _ in range(count)]


def bursts(count: int, rng: random.Random) -> list[float]:
    """Nearly all within ten minutes after one of twenty times, the rest anywhere."""
    times = even(20, rng)
    return [
        rng.choice(times) + rng.random() * 600 if rng.random() < 0.95 else each
        for each in even(count, rng)
    ]


def sharp_bursts(count: int, rng: random.Random) -> list[float]:
    """Bursts of a thousand and more events in two seconds each."""
    times = even(max(1, count // 1500), rng)
    return [rng.choice(times) + rng.random() * 2 for _ in range(count)]


def old_tail(count: int, rng: random.Random) -> list[float]:
    """All events are in the first day."""
    return [rng.random() * DAY for _ in range(count)]


def growing(count: int, rng: random.Random) -> list[float]:
    return [RANGE_SECONDS * rng.random() ** 0.25 for _ in range(count)]


def growing_steadily(count: int, rng: random.Random) -> list[float]:
    """Nothing at first, and every day as many more than the day before."""
    return [RANGE_SECONDS * rng.random() ** 0.5 for _ in range(count)]


def shrinking(count: int, rng: random.Random) -> list[float]:
    return [RANGE_SECONDS * (1 - rng.random() ** 0.25) for _ in range(count)]


def heavy_tailed(count: int, rng: random.Random) -> list[float]:
    """Gaps of every size, a few as long as all the others together."""
    times, time = [], 0.0
    for _ in range(count):
        time += rng.paretovariate(0.7)
        times.append(time)
    return [each * (RANGE_SECONDS - 3) / time for each in times]


def one_second(count: int, rng: random.Random) -> list[float]:
    return [RANGE_SECONDS / 2 + rng.random() for _ in range(count)]


def one_instant(count: int, rng: random.Random) -> list[float]:
    return [RANGE_SECONDS / 2] * count


SHAPES: list[Shape] = [
    even,
    office_hours,
    bursts,
    sharp_bursts,
    old_tail,
    growing,
    shrinking,
    heavy_tailed,
    one_second,
    one_instant,
]


def drawn(shape: Shape, count: int, seed: int) -> list[Instant]:
    """The instants of so many events, in order, none after the range."""
    times = shape(count, random.Random(seed))
    return sorted(instant(min(each, RANGE_SECONDS)) for each in times)
