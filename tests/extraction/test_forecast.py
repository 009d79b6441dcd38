"""How many events a while will bring."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tap_audit_events.events.instants import Instant, seconds_between
from tap_audit_events.extraction.forecast import Level, Rhythm, Stretch
from tests.extraction.scheduling import instant

HOUR, DAY = 3600, 86400
MONDAY = 4 * DAY
"""`scheduling.START` is a Thursday."""

seconds = st.floats(0, 60 * DAY)
amounts = st.floats(0, 1e6)


def read(rhythm: Rhythm, start: float, end: float, times: list[float]) -> Stretch:
    """Let it learn what lies between two times."""
    stretch = Stretch(instant(start), instant(end), len(times))
    rhythm.learn(stretch, sorted(map(instant, times)))
    return stretch


def between(rhythm: Rhythm, start: float, end: float) -> float:
    return rhythm.expected(instant(start), instant(end))


def drawn_rhythm(seed: int) -> Rhythm:
    """A rhythm that has learned a few stretches of any length and density."""
    rng, rhythm = random.Random(seed), Rhythm()
    for _ in range(rng.randint(1, 9)):
        start = rng.uniform(0, 50 * DAY)
        end = start + rng.choice([0, 1e-6, 3, HOUR, 2 * DAY, 20 * DAY]) * rng.random()
        read(rhythm, start, end, [rng.uniform(start, end) for _ in range(rng.randint(1, 300))])
    return rhythm


rhythms = st.integers(0, 10**6).map(drawn_rhythm)


def office_hours(day: int) -> list[float]:
    """A hundred events an hour from nine to five, on a day of the week that begins on `MONDAY`."""
    start = MONDAY + day * DAY + 9 * HOUR
    return [start + number * 36 for number in range(800)]


def test_nothing_is_expected_before_anything_was_read() -> None:
    """As before the first page has come."""
    assert between(Rhythm(), 0, 30 * DAY) == 0


def test_what_comes_evenly_is_expected_everywhere() -> None:
    """A few hours tell it for the year, whatever the hour."""
    rhythm = Rhythm()
    read(rhythm, 0, 5 * HOUR, [number * 18 for number in range(1000)])
    for start in (0, 7 * HOUR, 3.3 * DAY, 200 * DAY):
        assert between(rhythm, start, start + 90) == pytest.approx(5)
        assert between(rhythm, start, start + 365 * DAY) == pytest.approx(365 * DAY / 18)


def test_a_day_tells_the_hours_of_the_next() -> None:
    """After one working day, nights are expected to bring little, and office hours much."""
    rhythm = Rhythm()
    read(rhythm, MONDAY, MONDAY + DAY, office_hours(0))
    morning = MONDAY + DAY + 9 * HOUR
    by_night = between(rhythm, morning - 8 * HOUR, morning)
    by_day = between(rhythm, morning, morning + 8 * HOUR)
    evenly = 800 * 8 / 24
    assert by_night < 0.7 * evenly < 1.5 * evenly < by_day <= 800


def test_weeks_tell_the_days_of_the_next() -> None:
    """After four of them, little is expected of a weekend, at no hour."""
    rhythm = Rhythm()
    for day in range(28):
        start = MONDAY + day * DAY
        read(rhythm, start, start + DAY, office_hours(day) if day % 7 < 5 else [start])
    next_monday = MONDAY + 28 * DAY
    assert between(rhythm, next_monday, next_monday + 5 * DAY) == pytest.approx(4000, rel=0.1)
    assert between(rhythm, next_monday + 5 * DAY, next_monday + 7 * DAY) < 400


def test_a_stretch_of_many_weeks_is_learned_at_once() -> None:
    """A page may hold the events of years."""
    rhythm = Rhythm()
    read(rhythm, 0, 700 * DAY, [number * 7 * DAY for number in range(100)])
    assert between(rhythm, 1000 * DAY, 1700 * DAY) == pytest.approx(100, rel=0.01)


@given(rhythms, st.tuples(seconds, seconds, seconds))
def test_what_is_expected_adds_up(rhythm: Rhythm, times: tuple[float, float, float]) -> None:
    """Of two neighbours as much as of both together, and never less than nothing."""
    first, second, third = sorted(times)
    whole = between(rhythm, first, third)
    parts = between(rhythm, first, second), between(rhythm, second, third)
    assert sum(parts) == pytest.approx(whole, rel=1e-6, abs=1e-3)
    assert min(parts) >= 0


@given(rhythms, seconds, st.floats(0.1, 1e5))
def test_the_time_for_so_many_events_brings_so_many(
    rhythm: Rhythm, start: float, events: float
) -> None:
    """To the microsecond."""
    after = rhythm.seconds_for(instant(start), events)
    assume(after < 1e9)
    end = instant(start + after)
    rate = events / max(1e-6, seconds_between(instant(start), end))
    assert after >= 0
    assert rhythm.expected(instant(start), end) == pytest.approx(events, rel=0.01, abs=rate * 3e-6)


def test_events_of_one_instant_are_very_many() -> None:
    """Nothing is divided by the time they took."""
    rhythm = Rhythm()
    stretch = read(rhythm, DAY, DAY, [DAY] * 1000)
    assert between(rhythm, DAY, DAY + 1) > 10**6
    assert Level.of([stretch], rhythm).to_come(5.0) == 5.0


# What came last


def test_more_than_usual_goes_on_for_a_while() -> None:
    """Of three times as many as usual, three times as many are expected, and then as usual."""
    level = Level(came=3000, usual=1000)
    assert level.to_come(100) == pytest.approx(300)
    assert level.to_come(10_000) == pytest.approx(4500 + 8500)


def test_without_anything_lately_it_is_as_usual() -> None:
    """A window that has read nothing."""
    assert Level.of([], drawn_rhythm(1)) == Level(0, 0)
    assert Level(0, 0).to_come(7.0) == Level(0, 0).usual_for(7.0) == 7.0


@given(st.floats(1, 1e6), st.floats(1e-3, 1e6), amounts)
def test_what_is_usual_is_found_from_what_is_to_come(
    came: float, usual: float, events: float
) -> None:
    """One way and back."""
    level = Level(came, usual)
    assert level.to_come(level.usual_for(events)) == pytest.approx(events, rel=1e-6, abs=1e-3)


def test_a_stretch_is_measured_by_the_rhythm() -> None:
    """What came in a night is much, if it is more than in other nights."""
    rhythm = Rhythm()
    for day in range(5):
        read(rhythm, MONDAY + day * DAY, MONDAY + (day + 1) * DAY, office_hours(day))
    night = Stretch(instant(MONDAY + 8 * DAY), instant(MONDAY + 8 * DAY + 6 * HOUR), 900)
    came, usual = Level.of([night, night], rhythm)
    assert came == 1800
    assert usual < 600


def test_instants_are_read_to_the_microsecond_and_beyond() -> None:
    """More digits than six change nothing."""
    rhythm = drawn_rhythm(3)
    end = Instant("2026-01-05T00:00:00.123456")
    assert rhythm.expected(instant(0), Instant(f"{end}789")) == rhythm.expected(instant(0), end)
