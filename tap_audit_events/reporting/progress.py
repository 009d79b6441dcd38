"""How far a run has come, as text for a log line and for a progress bar."""

from __future__ import annotations

import time

from tap_audit_events.events.instants import Instant, brief, seconds_between
from tap_audit_events.events.window import Window

PROGRESS_SECONDS = 10.0


def events_text(count: int, *, separator: str = ",") -> str:
    """The number of events, as ``1 event`` or ``2,000 events``."""
    return f"{count:{separator}} event{'' if count == 1 else 's'}"


class Progress:
    """Shows how many events are delivered and how fast, and estimates the time that remains.

    The estimate assumes that events are spread evenly over the range, which they rarely are.
    """

    def __init__(self, window: Window | None = None) -> None:
        self._started_at = self._shown_at = time.monotonic()
        self._first = None if window is None else window.start
        self._end = None if window is None else window.end

    def set_window(self, window: Window) -> None:
        """Set the range, once it is known."""
        self._first, self._end = window.start, window.end

    def set_first_instant(self, instant: Instant) -> None:
        """Set where the range starts, if it has no start; only the first call counts."""
        self._first = self._first or instant

    def is_due(self, every_seconds: float) -> bool:
        """Whether progress should be shown now; True at most once in `every_seconds`."""
        now = time.monotonic()
        if now - self._shown_at < every_seconds:
            return False
        self._shown_at = now
        return True

    def log_line(
        self, *, delivered: int, reached: Instant | None, requests: int, retries: int
    ) -> str:
        """The progress as a log line; `reached` is the newest instant delivered, if there is one.

        Retries count as requests too.
        """
        events = events_text(delivered, separator="")
        return (
            f"{events}, {self._rate(delivered):.0f} a second{self._position(reached)};"
            f" requests: {requests}, retries: {retries}"
        )

    def bar_text(self, *, delivered: int, reached: Instant | None) -> str:
        """The progress as a short text next to a progress bar."""
        parts = [events_text(delivered), f"{self._rate(delivered):,.0f}/s"]
        if share := self.share(reached):
            parts.append(f"{self._remaining(share)} to go")
        if reached is not None:  # last, as a narrow terminal cuts the end
            parts.append(reached[:16].replace("T", " "))
        return "  ".join(parts)

    def share(self, reached: Instant | None) -> float | None:
        """The share of the range before an instant, 0 to 1; None if it is not known."""
        first, end = self._first, self._end
        if reached is None or first is None or end is None:
            return None
        seconds = seconds_between(first, end)  # 0 if less than a microsecond
        done = seconds_between(first, min(max(reached, first), end))
        return done / seconds if seconds > 0 else None

    def _rate(self, delivered: int) -> float:
        return delivered / max(time.monotonic() - self._started_at, 1e-9)

    def _position(self, reached: Instant | None) -> str:
        share = self.share(reached)
        if reached is None or share is None:
            return ""
        remaining = f", {self._remaining(share)} to go" if share else ""
        return f"; reached {brief(reached)}, {share:.0%} of the range{remaining}"

    def _remaining(self, share: float) -> str:
        seconds = round((time.monotonic() - self._started_at) * (1 - share) / share)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02}"
