"""How far a run has come, in words for a log line and for a bar."""

from __future__ import annotations

import time
from collections.abc import Callable

from tap_audit_events.events.instants import Instant, brief, seconds_between
from tap_audit_events.events.window import Window

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

    def passed(self, instant: Instant | None) -> None:
        """The first event of the run lies here, where the range has no start."""
        self._first = self._first or instant

    def is_due(self, every_seconds: float) -> bool:
        """Whether something should be said now; true once in so many seconds."""
        now = self._clock()
        if now - self._said_at < every_seconds:
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
        return (
            f"{delivered} events, {self._rate(delivered):.0f} a second{self._position(reached)};"
            f" {requests} requests, {retries} of them retries"
        )

    def text(self, *, delivered: int, reached: Instant | None) -> str:
        """The same in short, to stand beside a bar."""
        parts = [f"{delivered:,} events", f"{self._rate(delivered):,.0f}/s"]
        if reached is not None:
            parts.append(reached[:16].replace("T", " "))
        if share := self.share(reached):
            parts.append(f"{self._to_go(share)} to go")
        return "  ".join(parts)

    def share(self, reached: Instant | None) -> float | None:
        """How much of the range lies before an instant, 0 to 1; None where that is not known."""
        if reached is None or self._first is None or not self._first < self._window.end:
            return None
        reached = min(max(reached, self._first), self._window.end)
        return seconds_between(self._first, reached) / seconds_between(
            self._first, self._window.end
        )

    def _rate(self, delivered: int) -> float:
        return delivered / max(self._clock() - self._started_at, 1e-9)

    def _position(self, reached: Instant | None) -> str:
        share = self.share(reached)
        if reached is None or share is None:
            return ""
        to_go = f", {self._to_go(share)} to go" if share else ""
        return f"; reached {brief(reached)}, {share:.0%} of the range{to_go}"

    def _to_go(self, share: float) -> str:
        seconds = round((self._clock() - self._started_at) * (1 - share) / share)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02}"
