"""What is expected from the ranges that were read: density by the hour of the day."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.instants import EARLIEST, LATEST, seconds_between
from tap_audit_events.extraction.planning.hourly_density import HourlyDensity
from tests.extraction.planning.scheduling import evenly, instant

HOUR, DAY = 3600, 86400


def learned(*days: list[int]) -> HourlyDensity:
    """A density that has learned days with so many events in each of their 24 hours."""
    density = HourlyDensity()
    for day, hours in enumerate(days):
        times = [
            day * DAY + hour * HOUR + number * HOUR / count
            for hour, count in enumerate(hours)
            for number in range(count)
        ]
        density.learn(instant(day * DAY), instant((day + 1) * DAY), list(map(instant, times)))
    return density


OFFICE_HOURS = [0] * 8 + [100] * 10 + [0] * 6


def test_each_hour_has_its_own_density() -> None:
    """Once a day was read, few events are expected in its nights, and many in office hours."""
    density = learned(OFFICE_HOURS, OFFICE_HOURS)
    night = density.events_between(instant(5 * DAY), instant(5 * DAY + 8 * HOUR))
    morning = density.events_between(instant(5 * DAY + 8 * HOUR), instant(5 * DAY + 12 * HOUR))
    assert night < 60
    assert 300 < morning < 440
    whole = density.events_between(instant(5 * DAY), instant(9 * DAY))
    assert whole == pytest.approx(4000, rel=0.05)


def test_an_hour_that_was_not_read_is_like_the_average() -> None:
    """The first page of a run says nothing about the rest of the day."""
    density = HourlyDensity()
    density.learn(instant(0), instant(HOUR), [instant(number) for number in range(0, HOUR, 36)])
    assert density.events_between(instant(12 * HOUR), instant(13 * HOUR)) == pytest.approx(100)


def test_more_is_expected_while_the_newest_ranges_are_busier() -> None:
    """Most organizations grow."""
    quiet, busy = [10] * 24, [40] * 24
    grown = learned(*[quiet] * 20, *[busy] * 5)
    assert grown.events_between(instant(30 * DAY), instant(31 * DAY)) > 700
    shrunk = learned(*[busy] * 20, *[quiet] * 5)
    assert shrunk.events_between(instant(30 * DAY), instant(31 * DAY)) > 400


@given(st.integers(0, 10**6), st.floats(0, 60 * DAY), st.floats(0.1, 10**5))
def test_so_many_events_are_expected_until_the_instant(
    seed: int, start: float, events: float
) -> None:
    """The instant is up to two seconds late, as it is a whole second."""
    rng, density = random.Random(seed), HourlyDensity()
    for _ in range(rng.randint(1, 9)):
        begin = rng.uniform(0, 50 * DAY)
        end = begin + rng.choice([0, 1e-6, 3, HOUR, 2 * DAY, 20 * DAY]) * rng.random()
        times = sorted(rng.uniform(begin, end) for _ in range(rng.randint(1, 300)))
        density.learn(instant(begin), instant(end), list(map(instant, times)))
    at = density.instant_after(instant(start), events)
    late = density.events_between(instant(start), at)
    three_seconds_before = instant(max(start, 0) + seconds_between(instant(start), at) - 3)
    early = density.events_between(instant(start), three_seconds_before)
    assert early <= events * 1.0001 + 1e-6
    assert late >= events * 0.9999 - 1e-6


def test_any_range_can_be_asked_for() -> None:
    """Neither an empty range, one in the wrong order nor the ends of time are errors."""
    density = HourlyDensity()
    density.learn(EARLIEST, LATEST, evenly(10))
    assert density.events_between(instant(9), instant(9)) == 0
    assert density.events_between(instant(9), instant(3)) == 0
    assert density.events_between(EARLIEST, LATEST) == pytest.approx(10, rel=0.01)
    assert density.instant_after(instant(0), 10**30) == LATEST
