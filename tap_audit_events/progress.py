"""How far a run has come, said every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

from tap_audit_events.timestamps import Instant, brief, seconds_between
from tap_audit_events.windows import Window

PROGRESS_SECONDS = 10.0


class Progress:
    """Says in one line what has been done, how fast, and how long the rest may take.

    What is left is judged by time: events lie closer at one time than at another.

    Args:
        window: the range of the run.
        clock: seconds that go by.
    """

    def __init__(self, window: Window, clock: Callable[[], float] = time.monotonic) -> None:
        self._window = window
        self._clock = clock
        self._started_at = self._said_at = clock()
        self._first: Instant | None = window.start

    def passed(self, instant: Instant) -> None:
        """The first event of the run lies here, where the range has no start."""
        self._first = self._first or instant

    @property
    def is_due(self) -> bool:
        """Whether a line should be said now; true once every `PROGRESS_SECONDS`."""
        now = self._clock()
        if now - self._said_at < PROGRESS_SECONDS:
            return False
        self._said_at = now
        return True

    def line(self, *, delivered: int, reached: Instant | None, requests: int, retries: int) -> str:
        """What to say.

        Args:
            delivered: events so far.
            reached: the newest instant delivered, None where there is none.
            requests: sent so far.
            retries: of them, those that were sent again.
        """
        seconds = max(self._clock() - self._started_at, 1e-9)
        return (
            f"{delivered} events, {delivered / seconds:.0f} a second{self._position(reached)};"
            f" {requests} requests, {retries} of them retries"
        )

    def _position(self, reached: Instant | None) -> str:
        if reached is None or self._first is None or not self._first < self._window.end:
            return ""
        reached = min(max(reached, self._first), self._window.end)
        share = seconds_between(self._first, reached) / seconds_between(
            self._first, self._window.end
        )
        return f"; reached {brief(reached)}, {share:.0%} of the range{self._to_go(share)}"

    def _to_go(self, share: float) -> str:
        if not share:
            return ""
        seconds = round((self._clock() - self._started_at) * (1 - share) / share)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f", {hours}:{minutes:02}:{seconds:02} to go"
