"""How the newest ranges change a forecast."""

from collections.abc import Sequence
from itertools import product

import pytest

from tap_audit_events.extraction.planning.forecast import Forecast
from tests.extraction.planning.forecasts import DAY, HOUR, MONDAY, expected, learn
from tests.extraction.planning.scheduling import instant


def after_a_day(every_hours: float) -> Forecast:
    """Many days with an event an hour, then one with an event every so many hours."""
    forecast = Forecast()
    learn(forecast, 0, 100 * DAY, [number * HOUR for number in range(2400)])
    for _ in range(4):
        learn(forecast, 100 * DAY, 100 * DAY, [])
    every = every_hours * HOUR
    day = [100 * DAY + number * every for number in range(round(DAY / every))]
    for _ in range(5):
        learn(forecast, 100 * DAY, 101 * DAY, day)
    return forecast


DAY_AFTER = 101 * DAY, 102 * DAY
YEAR_AFTER = 101 * DAY, 466 * DAY


def after_weeks(*events_an_hour: int) -> Forecast:
    """Ten weeks with two events an hour, then weeks with so many, each in five ranges."""
    forecast, start = Forecast(), MONDAY
    for each, hours in [*[(2, 84)] * 20, *product(events_an_hour, (33, 33, 33, 33, 36))]:
        times = [start + number * HOUR / each for number in range(each * hours) if each]
        learn(forecast, start, start := start + hours * HOUR, times)
    return forecast


@pytest.mark.parametrize(
    ("events_an_hour", "hours", "events"),
    [((4,), 1, 4), ((4,), 1000, 4000), ((1, 4), 1000, 4000)],
)
def test_more_events_than_usual_are_expected_for_good(
    events_an_hour: Sequence[int], hours: float, events: float
) -> None:
    """As many events are expected as the newest ranges held."""
    forecast = after_weeks(*events_an_hour)
    start = MONDAY + 60 * 7 * DAY + 5.5 * HOUR
    assert expected(forecast, start, start + hours * HOUR) == pytest.approx(events)
    until = forecast.seconds_until(instant(start), events)
    assert until == pytest.approx(hours * HOUR, rel=1e-8)


@pytest.mark.parametrize(
    ("events_an_hour", "usual"), [((), 2), ((1,), 21 / 11), ((0,), 20 / 11), ((4, 1), 25 / 12)]
)
def test_fewer_events_than_usual_change_only_the_average(
    events_an_hour: Sequence[int], usual: float
) -> None:
    """A weekend is not mistaken for the end of the events."""
    forecast = after_weeks(*events_an_hour)
    start = MONDAY + 60 * 7 * DAY + 5.5 * HOUR
    for hours in (1, 84, 1000):
        assert expected(forecast, start, start + hours * HOUR) == pytest.approx(usual * hours)


def test_ranges_without_a_duration_do_not_change_the_trend() -> None:
    """Their events only count for their hour of the week, like all others."""
    forecast, start = after_weeks(), MONDAY + 10 * 7 * DAY
    for _ in range(5):
        learn(forecast, start, start, [start] * 2)
    for hour, events in ((0, 30 / 10), (1, 20 / 10)):
        then = start + hour * HOUR
        assert expected(forecast, then, then + HOUR) == pytest.approx(events, rel=0.05)
        assert forecast.seconds_until(instant(then), events / 2) == pytest.approx(
            HOUR / 2, rel=0.05
        )


def test_more_than_usual_is_expected_to_continue() -> None:
    """After a day with three times as many events, about twice as many are expected for good."""
    usual, busy = after_a_day(1), after_a_day(1 / 3)
    for after in (DAY_AFTER, YEAR_AFTER):
        assert 1.8 < expected(busy, *after) / expected(usual, *after) < 3
    assert busy.seconds_until(instant(101 * DAY), 48) < 1.2 * DAY


def test_events_of_one_instant_are_a_high_density() -> None:
    """They took no time, and nothing is divided by it."""
    forecast = Forecast()
    learn(forecast, DAY, DAY, [DAY] * 1000)
    assert expected(forecast, DAY, DAY + 1) > 10
    assert 0 <= forecast.seconds_until(instant(DAY), 1000) < DAY
