"""Events that happen while the sandbox runs."""

from datetime import UTC, datetime, timedelta
from random import Random

from tap_audit_events.sandbox.events import Event, EventMaker
from tap_audit_events.sandbox.timeline import moment_of


class LiveEvents:
    """Makes the events that have become due, at a steady rate, whenever it is asked."""

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
        self._made = 0
        # The seed alone would draw the ids of the events of `generate` again.
        self._maker = EventMaker(Random(f"live {seed}"), organization_id)

    def due(self, now_seconds: float) -> list[Event]:
        """The events since the last call, oldest first."""
        count = int((now_seconds - self._started_seconds) * self._rate) - self._made
        return [self._next() for _ in range(count)]

    def _next(self) -> Event:
        self._made += 1
        time = self._start + timedelta(seconds=self._made / self._rate)
        return self._maker.event(moment_of(time, 3).text())
