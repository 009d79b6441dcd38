"""Forecasts that have learned something, and what they expect."""

import random
from collections.abc import Sequence

from tap_audit_events.extraction.planning.forecast import Forecast
from tests.extraction.planning.scheduling import instant

HOUR, DAY = 3600, 86400
MONDAY = 4 * DAY
"""`scheduling.START` is a Thursday."""


def learn(forecast: Forecast, start: float, end: float, times: Sequence[float]) -> None:
    """Let the forecast learn the events between two times."""
    forecast.learn(instant(start), instant(end), sorted(map(instant, times)))


def expected(forecast: Forecast, start: float, end: float) -> float:
    return forecast.expected(instant(start), instant(end))


def drawn_forecast(seed: int) -> Forecast:
    """A forecast that has learned a few ranges of any length and density."""
    rng, forecast = random.Random(seed), Forecast()
    for _ in range(rng.randint(1, 9)):
        start = rng.uniform(0, 50 * DAY)
        end = start + rng.choice([0, 1e-6, 3, HOUR, 2 * DAY, 20 * DAY]) * rng.random()
        learn(forecast, start, end, [rng.uniform(start, end) for _ in range(rng.randint(1, 300))])
    return forecast


def office_hours(day: int) -> list[float]:
    """A hundred events an hour from nine to five, on a day of the week that begins on `MONDAY`."""
    start = MONDAY + day * DAY + 9 * HOUR
    return [start + number * 36 for number in range(800)]


def worked_days(days: int) -> Forecast:
    """A forecast that has learned so many days, of which Saturdays and Sundays are free."""
    forecast = Forecast()
    for day in range(days):
        start = MONDAY + day * DAY
        learn(forecast, start, start + DAY, office_hours(day) if day % 7 < 5 else [start])
    return forecast
