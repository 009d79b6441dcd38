"""How many events a range will bring."""

from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.instants import (
    EARLIEST,
    LATEST,
    Instant,
    later,
)
from tap_audit_events.extraction.planning.forecast import Forecast
from tests.extraction.planning.forecasts import (
    DAY,
    HOUR,
    MONDAY,
    drawn_forecast,
    expected,
    learn,
    worked_days,
)
from tests.extraction.planning.scheduling import instant

seconds = st.floats(0, 60 * DAY)


forecasts = st.integers(0, 10**6).map(drawn_forecast)


# What is usual


def test_a_range_out_of_order_has_no_duration() -> None:
    """A page of older events than the ones before it counts as if it had taken no time."""
    disordered, at_once = Forecast(), Forecast()
    for forecast, end in ((disordered, HOUR), (at_once, DAY)):
        learn(forecast, 0, DAY, [number * 864 for number in range(100)])
        learn(forecast, DAY, end, [HOUR])
    assert expected(disordered, 0, DAY) == expected(at_once, 0, DAY)


def test_each_range_that_is_read_changes_the_forecast() -> None:
    """An empty range lowers an earlier forecast."""
    forecast = Forecast()
    learn(forecast, 0, HOUR, [number * 36 for number in range(100)])
    before = expected(forecast, 0, HOUR)
    learn(forecast, DAY, DAY + HOUR, [])
    assert expected(forecast, 0, HOUR) < before


def test_even_events_are_expected_to_continue() -> None:
    """The density of a few hours is expected for a year, at any hour."""
    forecast = Forecast()
    learn(forecast, 0, 5 * HOUR, [number * 18 for number in range(1000)])
    for start in (0, 7 * HOUR, 3.3 * DAY, 200 * DAY):
        assert expected(forecast, start, start + 90) == pytest.approx(5)
        assert expected(forecast, start, start + 365 * DAY) == pytest.approx(365 * DAY / 18)
        assert forecast.seconds_until(instant(start), 100) == pytest.approx(1800)


def test_a_day_predicts_the_hours_of_the_next() -> None:
    """After one working day, few events are expected at night, and many in office hours."""
    forecast = worked_days(1)
    morning = MONDAY + DAY + 9 * HOUR
    by_night = expected(forecast, morning - 8 * HOUR, morning)
    by_day = expected(forecast, morning, morning + 8 * HOUR)
    evenly = 800 * 8 / 24
    assert by_night < 0.7 * evenly < 1.5 * evenly < by_day <= 800


def test_weeks_predict_the_days_of_the_next() -> None:
    """After four weeks, few events are expected on a weekend, and many in office hours."""
    forecast = worked_days(28)
    monday = MONDAY + 28 * DAY
    saturday = monday + 5 * DAY
    week = expected(forecast, monday, monday + 7 * DAY)
    assert expected(forecast, saturday, saturday + 2 * DAY) < 0.15 * week
    for day in range(5):
        morning = monday + day * DAY + 9 * HOUR
        assert expected(forecast, morning, morning + 8 * HOUR) > 0.15 * week


def test_a_range_of_many_weeks_is_learned_at_once() -> None:
    """A page may hold the events of years."""
    forecast = Forecast()
    learn(forecast, 0, 700 * DAY, [number * 7 * DAY for number in range(100)])
    assert expected(forecast, 1000 * DAY, 1700 * DAY) == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize(
    ("start", "hours"),
    [(0.5, 1.75), (5.75, 0.125), (23.5, 1), (46, 3.25), (166.5, 2.25), (0, 168), (100, 170)],
)
def test_parts_of_hours_count_as_parts(start: float, hours: float) -> None:
    """Even events stay even, wherever in the week a range starts and ends."""
    forecast, step = Forecast(), HOUR / 8 if hours < 9 else HOUR
    begin = MONDAY + start * HOUR
    times = [begin + number * step for number in range(round(hours * HOUR / step))]
    learn(forecast, begin, begin + hours * HOUR, times)
    for after in (0.0, 0.5, 20.25, 200.5, 1000.125):
        since = MONDAY + (1000 + after) * HOUR
        assert expected(forecast, since, since + 37.5 * HOUR) == pytest.approx(37.5 * HOUR / step)
        assert forecast.seconds_until(instant(since), 100) == pytest.approx(100 * step)


@pytest.mark.parametrize("hour", [0, 10, 23, 24, 100, 167])
def test_events_of_one_hour_of_the_week_are_expected_in_that_hour(hour: int) -> None:
    """After a hundred weeks, hardly anything but the hour itself counts."""
    forecast = Forecast()
    times = [MONDAY + (week * 168 + hour) * HOUR + week for week in range(100)]
    learn(forecast, MONDAY, MONDAY + 100 * 7 * DAY, times)
    week = MONDAY + 104 * 7 * DAY
    then = week + hour * HOUR
    assert expected(forecast, then, then + HOUR) == pytest.approx(1, rel=0.02)
    assert expected(forecast, week, then) < 0.02
    assert expected(forecast, then + HOUR, week + 7 * DAY) < 0.02
    until = forecast.seconds_until(instant(week), 0.5)
    assert until == pytest.approx((hour + 0.5) * HOUR, rel=0.02, abs=60)


@pytest.mark.parametrize(
    ("day", "hour", "events"), [(7, 10, 105), (7, 11, 15), (1, 10, 90), (1, 11, 30), (1, 12, 60)]
)
def test_an_hour_that_was_hardly_seen_is_half_like_other_days(
    day: int, hour: int, events: float
) -> None:
    """A quarter of an hour counts as much as the average of that hour on all days."""
    forecast = Forecast()
    ten, eleven = MONDAY + 10 * HOUR, MONDAY + 11 * HOUR
    learn(forecast, ten, ten + HOUR / 4, [ten + number for number in range(30)])
    learn(forecast, eleven, eleven + HOUR / 4, [])
    then = MONDAY + day * DAY + hour * HOUR
    assert expected(forecast, then, then + HOUR) == pytest.approx(events)


@pytest.mark.parametrize("count", [2, 150, 199, 200, 950])
def test_all_events_of_a_range_count(count: int) -> None:
    """Few events and many events are both counted to the last one."""
    forecast = Forecast()
    learn(forecast, 0, 700 * DAY, [number * 700 * DAY / count for number in range(count)])
    assert expected(forecast, 0, 700 * DAY) == pytest.approx(count, rel=0.01)


def test_digits_beyond_the_microsecond_change_nothing() -> None:
    """Instants may have any number of digits."""
    forecast = drawn_forecast(3)
    end = Instant("2026-01-05T00:00:00.123456")
    assert forecast.expected(instant(0), Instant(f"{end}789")) == forecast.expected(instant(0), end)


# What is possible


def test_hours_not_seen_may_be_as_busy_as_the_busiest() -> None:
    """A run may begin at night: the hours that follow are assumed to be like the busiest so far."""
    forecast = Forecast()
    times = [MONDAY + number * 360 for number in range(50)]
    times += [MONDAY + 5 * HOUR + number * 24 for number in range(150)]
    learn(forecast, MONDAY, MONDAY + 6 * HOUR, times)
    six = instant(MONDAY + 6 * HOUR)
    rate_of_all = 200 / 6
    busiest = (150 + rate_of_all / 4) / 1.25
    until = forecast.seconds_until_if_busy(six, 1000)
    assert until == pytest.approx(1000 / busiest * HOUR, rel=1e-8)
    assert until < 0.4 * forecast.seconds_until(six, 1000)


def test_hours_that_were_seen_are_as_busy_as_they_were() -> None:
    """The busiest hour is assumed only for hours that were not seen."""
    forecast = worked_days(70)
    monday = MONDAY + 70 * DAY
    evening, morning = monday + 17 * HOUR, monday + DAY + 9 * HOUR
    until = forecast.seconds_until_if_busy(instant(evening), 100)
    assert until == pytest.approx(morning + HOUR - evening, rel=0.05)


@pytest.mark.parametrize(("hours_of_monday", "busiest"), [(0, 80), (9, 80), (16, 10)])
def test_after_a_weekend_other_days_may_be_far_busier(hours_of_monday: int, busiest: int) -> None:
    """This holds until a fifth of what was read is from Monday to Friday."""
    forecast = Forecast()
    begin, end = MONDAY + 5 * DAY, MONDAY + 7 * DAY + hours_of_monday * HOUR
    learn(forecast, begin, end, range(begin, end, 360))
    until = forecast.seconds_until_if_busy(instant(MONDAY + 8 * DAY), 100)
    assert until == pytest.approx(100 / busiest * HOUR, rel=0.05)


def test_a_burst_does_not_make_all_hours_busy() -> None:
    """The busiest hour counts as eight times as busy as all hours at most."""
    forecast = Forecast()
    burst = [MONDAY + 30 * HOUR + number / 10 for number in range(10_000)]
    learn(forecast, MONDAY, MONDAY + 2 * DAY, sorted([*burst, *range(MONDAY, MONDAY + DAY, HOUR)]))
    wednesday = instant(MONDAY + 2 * DAY)
    usual = 10_024 / 48
    assert forecast.seconds_until_if_busy(wednesday, 5000) == pytest.approx(
        5000 / (8 * usual) * HOUR, rel=0.01
    )


# What holds for any data


@given(forecasts, seconds, seconds, seconds)
def test_a_longer_range_holds_no_fewer_events(
    forecast: Forecast, first: float, second: float, third: float
) -> None:
    """The number of expected events is never negative."""
    start, middle, end = sorted([first, second, third])
    assert expected(forecast, start, middle) >= 0
    assert expected(forecast, start, middle) <= expected(forecast, start, end) * (1 + 1e-6) + 1e-3


@given(forecasts, seconds, st.floats(0.1, 1e5))
def test_the_time_until_so_many_events_agrees_with_the_events_expected_by_then(
    forecast: Forecast, start: float, events: float
) -> None:
    """`seconds_until` is the inverse of `expected`, to the microsecond."""
    after = forecast.seconds_until(instant(start), events)
    assert after >= 0
    if after < 1e9:
        before, behind = max(0.0, after - 3e-6), after + 3e-6
        assert expected(forecast, start, start + before) <= events * 1.01
        assert expected(forecast, start, start + behind) >= events * 0.99


instants = st.one_of(
    st.sampled_from([EARLIEST, LATEST, Instant(f"{LATEST}.999999999"), instant(0)]),
    st.builds(later, st.just(EARLIEST), seconds=st.integers(0, 315_537_897_599)),
    st.builds(later, st.just(instant(0)), seconds=st.integers(-5, 5)),
    seconds.map(instant),
)
learned = st.lists(
    st.tuples(instants, instants, st.lists(instants, max_size=250)), min_size=1, max_size=8
)


@given(learned, instants, instants, st.floats(0, 1e9))
def test_no_times_break_the_arithmetic(
    ranges: list[tuple[Instant, Instant, list[Instant]]],
    start: Instant,
    end: Instant,
    events: float,
) -> None:
    """Events may lie outside of their range, and ranges may end before they start, in any year."""
    forecast = Forecast()
    for range_start, range_end, moments in ranges:
        forecast.learn(range_start, range_end, moments)
        for found in (
            forecast.expected(start, end),
            forecast.seconds_until(start, events),
            forecast.seconds_until_if_busy(start, events),
            forecast.expected(range_start, range_end),
        ):
            assert isfinite(found)
            assert found >= 0
