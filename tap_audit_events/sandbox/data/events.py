"""Realistic events, always the same for the same arguments, rendered only when they are served."""

import json
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from tap_audit_events.sandbox.data.generator import Event, EventGenerator
from tap_audit_events.sandbox.data.rows import Row, Rows, key_of_row
from tap_audit_events.sandbox.data.timeline import stamp_of, text_of, tied, timeline

ORGANIZATION_ID: Final = "6f1d4c1e-7f0b-4f3a-9d35-0c8a5b1e2d47"
"""The organization of the events, unless another one is named."""

MAXIMUM_DAYS: Final = 36_500
TEMPLATES: Final = 2000
"""How many different bodies there are at most, apart from request ids."""


def generate(
    count: int,
    days: float,
    seed: int | str,
    until: datetime,
    organization_id: str = ORGANIZATION_ID,
) -> list[Event]:
    """The events of `generated_rows` as dictionaries."""
    rows = generated_rows(count, days, seed, until, organization_id)
    return [json.loads(body.render(head)) for head, body in rows]


def generated_rows(
    count: int,
    days: float,
    seed: int | str,
    until: datetime,
    organization_id: str,
) -> Rows:
    """`count` events of the days before `until`, in order; `until` needs a time zone.

    The newest lies less than two milliseconds before `until`. Ids are unique.

    Raises ValueError for a negative `count`, and for `days` out of their bounds.
    """
    if count < 0:
        raise ValueError("the number of events is negative")
    if not 0 < days <= MAXIMUM_DAYS:
        raise ValueError(f"the days are not above 0 and at most {MAXIMUM_DAYS}")
    random = Random(seed)
    generator = EventGenerator(random, organization_id)
    templates = [generator.template() for _ in range(min(count, TEMPLATES))]
    stamps = timeline(count, days, until, random)
    rows = Rows()
    for stamp, template in zip(stamps, random.choices(templates, k=count), strict=True):
        rows.append(template.row(text_of(stamp), generator.event_id()))
    for start, stop in tied(stamps):
        alike = [rows[index] for index in range(start, stop)]
        rows.replace(start, sorted(alike, key=key_of_row))
    return rows


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
        if not events_per_second >= 0:
            raise ValueError("the rate of live events is negative")
        self._rate = events_per_second
        self._start = start or datetime.now(UTC)
        self._started_seconds = now_seconds
        self._count = 0
        # The seed alone would draw the ids of the generated events again.
        self._generator = EventGenerator(Random(f"live {seed}"), organization_id)

    def due(self, now_seconds: float) -> Rows:
        """The events since the last call."""
        count = int((now_seconds - self._started_seconds) * self._rate) - self._count
        return Rows.of(self._next() for _ in range(count))

    def _next(self) -> Row:
        self._count += 1
        time = self._start + timedelta(seconds=self._count / self._rate)
        template = self._generator.template()
        return template.row(text_of(stamp_of(time, 3)), self._generator.event_id())
