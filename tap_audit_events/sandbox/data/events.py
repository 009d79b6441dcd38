"""Realistic events, always the same for the same arguments, rendered only when they are served."""

import json
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from tap_audit_events.sandbox.data.generator import Event, EventGenerator, GeneratedBody
from tap_audit_events.sandbox.data.instants import instant_of
from tap_audit_events.sandbox.data.store import Key, Row, key_of
from tap_audit_events.sandbox.data.timeline import timeline

ORGANIZATION_ID: Final = "6f1d4c1e-7f0b-4f3a-9d35-0c8a5b1e2d47"
"""The organization of the events, unless another one is named."""

MAXIMUM_DAYS: Final = 36_500
BODIES: Final = 2000
"""How many different bodies there are at most, apart from request ids."""

_DIGITS: Final = (3, 3, 3, 6)
"""At least how many digits the fractions of a body's times have."""


def generate(
    count: int,
    days: float,
    seed: int | str,
    until: datetime,
    organization_id: str = ORGANIZATION_ID,
) -> list[Event]:
    """The events of `generated` as dictionaries."""
    keys, bodies = generated(count, days, seed, until, organization_id)
    return [json.loads(body.render(key)) for key, body in zip(keys, bodies, strict=True)]


def generated(
    count: int,
    days: float,
    seed: int | str,
    until: datetime,
    organization_id: str,
) -> tuple[list[Key], list[GeneratedBody]]:
    """`count` events of the days before `until`, in order; `until` needs a time zone.

    The newest lies less than two milliseconds before `until`. Ids are unique.
    """
    random = Random(seed)
    generator = EventGenerator(random, organization_id)
    bodies = [generator.body(random.choice(_DIGITS)) for _ in range(min(count, BODIES))]
    instants = timeline(count, days, until, random)
    keys = sorted(key_of(instant, generator.event_id()) for instant in instants)
    return keys, random.choices(bodies, k=count)


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
        """Let the first event happen one interval after `start`; without `start`, after now."""
        self._rate = events_per_second
        self._start = start or datetime.now(UTC)
        self._started_seconds = now_seconds
        self._count = 0
        # The seed alone would draw the ids of the generated events again.
        self._generator = EventGenerator(Random(f"live {seed}"), organization_id)

    def due(self, now_seconds: float) -> list[Row]:
        """The events since the last call."""
        count = int((now_seconds - self._started_seconds) * self._rate) - self._count
        return [self._next() for _ in range(count)]

    def _next(self) -> Row:
        self._count += 1
        time = self._start + timedelta(seconds=self._count / self._rate)
        instant = instant_of(time.isoformat(timespec="milliseconds"))
        return key_of(instant, self._generator.event_id()), self._generator.body(digits=3)
