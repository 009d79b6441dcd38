"""The times of the events of a benchmark; the sandbox itself generates office hours."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import cycle
from random import Random
from typing import Any, Final, TypeAlias

OFFICE_HOURS: Final = "office hours"
"""The events that the sandbox generates: busy hours, quiet nights and weekends, bursts, ties."""

DAYS: Final = 30
SEED: Final = 1
TEMPLATES: Final = 1000
"""The number of different events, apart from their ids and times."""

_RANGE_SECONDS: Final = DAYS * 86_400.0
_YEAR_SECONDS: Final = 365 * 86_400.0
_BURST_SECONDS: Final = 600.0

Times: TypeAlias = Iterator[float]
"""Seconds before the end of the range."""


def _even(count: int, random: Random) -> Times:
    return (random.random() * _RANGE_SECONDS for _ in range(count))


def _one_burst(count: int, random: Random) -> Times:
    """19 of 20 events lie within ten minutes."""
    start = _RANGE_SECONDS / 2
    for seconds in _even(count, random):
        is_outside = random.random() < 0.05
        yield seconds if is_outside else start - random.random() * _BURST_SECONDS


def _bursts_of_seconds(count: int, random: Random) -> Times:
    """Each burst has about 1,500 events within two seconds."""
    starts = list(_even(max(1, count // 1500), random))
    return (random.choice(starts) + 2 * random.random() for _ in range(count))


def _ended_a_year_ago(count: int, random: Random) -> Times:
    return (_YEAR_SECONDS + seconds for seconds in _even(count, random))


def _ties(count: int, random: Random) -> Times:
    """Up to 300 events share an instant."""
    while count:
        seconds = random.random() * _RANGE_SECONDS
        for _ in range(tied := min(count, random.randint(1, 300))):
            yield seconds
        count -= tied


SHAPES: Final[dict[str, Callable[[int, Random], Times]]] = {
    "even": _even,
    "one burst": _one_burst,
    "bursts of seconds": _bursts_of_seconds,
    "ended a year ago": _ended_a_year_ago,
    "ties": _ties,
}


def times(shape: str, count: int, until: datetime) -> Iterator[str]:
    """Return so many values of `occurredAt`, unsorted, in milliseconds; `until` is in UTC."""
    for seconds in SHAPES[shape](count, Random(SEED)):
        time = until - timedelta(seconds=seconds)
        yield f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"


def events(
    shape: str, count: int, until: datetime, templates: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Return events of a shape, with the content of the templates."""
    rows = zip(times(shape, count, until), cycle(templates))
    for number, (occurred_at, template) in enumerate(rows):
        yield template | {"id": f"{number:08}-{template['id']}", "occurredAt": occurred_at}
