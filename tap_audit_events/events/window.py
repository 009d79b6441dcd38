"""The range of a run, and the windows in which it is requested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tap_audit_events.events.instants import (
    EARLIEST,
    Instant,
    brief,
    later,
    next_whole_second,
    text_of,
    whole_second,
)

AsksAhead: TypeAlias = Callable[[Instant | None], bool]
"""Whether the next page may be requested before the last one is read. Its argument is the last
page's newest instant as far as it is known, None if it is not known."""


@dataclass(frozen=True, slots=True)
class Window:
    """A time range that is requested with the same filters on each of its pages.

    Attributes:
        start: first instant of the window, None for the time of the oldest event.
        end: last instant of the window.
        until: first instant of the next window, None if there is none. The requests reach to
            `end`, but the window is read only up to here.
    """

    start: Instant | None
    end: Instant
    until: Instant | None = None

    @property
    def start_time(self) -> str | None:
        """Value of ``startTime``: rounded down to a second, because services differ in rounding."""
        return None if self.start is None else text_of(whole_second(self.start))

    @property
    def end_time(self) -> str:
        """Value of ``endTime``: rounded up to a second."""
        return text_of(next_whole_second(self.end))

    def holds(self, instant: Instant) -> bool:
        """Whether an instant is in the window, which includes `start` and `end` but not `until`."""
        return (
            (self.start is None or self.start <= instant)
            and instant <= self.end
            and (self.until is None or instant < self.until)
        )

    def asks(self, instant: Instant) -> bool:
        """Whether a request for the window covers an instant, given that its bounds are rounded."""
        start = None if self.start is None else whole_second(self.start)
        return Window(start, next_whole_second(self.end)).holds(instant)

    def __str__(self) -> str:
        start = "the oldest event" if self.start is None else brief(self.start)
        return f"{start} to {brief(self.until or self.end)}"


def run_window(
    *,
    start_date: Instant | None,
    end_date: Instant | None,
    bookmark: Instant | None,
    lookback_seconds: int,
    now: Instant,
    ids_from: Instant | None = None,
) -> Window | None:
    """The range of a run: from max(start_date, bookmark - lookback) to min(end_date, now).

    With `ids_from` it starts there at the earliest, because ids delivered before are not known.
    The bookmark's side and ``now`` are rounded down to whole seconds: events of the current second
    are left for the next run. None if the range is empty.
    """
    starts = [] if start_date is None else [start_date]
    if bookmark is not None:
        lookback = whole_second(later(bookmark, seconds=-lookback_seconds))
        starts.append(max(lookback, ids_from or lookback))
    start = max(starts, default=EARLIEST)
    end = min(whole_second(now), end_date or whole_second(now))
    return None if end < start else Window(None if start == EARLIEST else start, end)
