"""Realistic events, always the same for the same arguments, rendered only when they are served."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from random import Random
from typing import Final

from tap_audit_events.sandbox.generator import Event, EventGenerator
from tap_audit_events.sandbox.rows import Row, key_of
from tap_audit_events.sandbox.timeline import digits_of, instant_at, timeline

ORGANIZATION_ID: Final = "6f1d4c1e-7f0b-4f3a-9d35-0c8a5b1e2d47"
"""The organization of the events, unless another one is named."""

MAXIMUM_DAYS: Final = 36_500
TEMPLATES: Final = 800
"""How many different templates there are at most for each number of fraction digits."""


def generate(
    count: int,
    days: float,
    seed: int | str,
    until: datetime,
    organization_id: str = ORGANIZATION_ID,
) -> list[Event]:
    """The events of `generated_rows` as dictionaries, in the order of the interface."""
    rows = sorted(generated_rows(count, days, seed, until, organization_id), key=itemgetter(0))
    return [json.loads(body.render(key)) for key, body in rows]


def generated_rows(
    count: int,
    days: float,
    seed: int | str,
    until: datetime,
    organization_id: str = ORGANIZATION_ID,
) -> Iterator[Row]:
    """`count` events of the days before `until`, which needs a time zone; oldest first.

    The newest lies less than two milliseconds before `until`. Ids are unique.

    Raises ValueError for a negative `count`, and for `days` out of their bounds.
    """
    if count < 0:
        raise ValueError("the number of events is negative")
    if not 0 < days <= MAXIMUM_DAYS:
        raise ValueError(f"the days are not above 0 and at most {MAXIMUM_DAYS}")
    random = Random(seed)
    generator = EventGenerator(random, organization_id)
    pools = {digits: generator.templates(min(count, TEMPLATES), digits) for digits in (0, 3, 6)}
    for stamp in timeline(count, days, until, random):
        pool = pools[digits_of(stamp)]
        yield (
            key_of(instant_at(stamp), generator.event_id()),
            pool[int(random.random() * len(pool))],
        )


class LiveEvents:
    """Events that happen at a steady rate while the sandbox runs."""

    def __init__(
        self,
        events_per_second: float,
        start: datetime | None,
        organization_id: str,
        seed: int,
        now_seconds: float,
    ) -> None:
        """Let the first event be one interval after `start`, the present with None."""
        if not events_per_second >= 0:
            raise ValueError("the rate of live events is negative")
        self._rate = events_per_second
        self._start = start or datetime.now(UTC)
        self._started_seconds = now_seconds
        self._count = 0
        # The seed alone would draw the ids of the generated events again.
        self._generator = EventGenerator(Random(f"live {seed}"), organization_id)

    def due(self, now_seconds: float) -> list[Row]:
        """The events since the last call, oldest first."""
        count = int((now_seconds - self._started_seconds) * self._rate) - self._count
        return [self._next() for _ in range(count)]

    def _next(self) -> Row:
        self._count += 1
        return self._generator.row(self._start + timedelta(seconds=self._count / self._rate))
