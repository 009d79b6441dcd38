"""The range of a run, and the windows it is asked in."""

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
"""Whether the page after one that has just come may be asked for before that one is looked at; it
is told what seems to be the newest instant in it, None where that is not known."""


@dataclass(frozen=True, slots=True)
class Window:
    """A range of time, asked with the same filters on each of its pages.

    Attributes:
        start: first instant that belongs to it, None for the oldest event there is.
        end: last instant that belongs to it.
        until: first instant that belongs to the next window already, None where there is none.
            What is asked reaches to `end`, and is read no further than here.
    """

    start: Instant | None
    end: Instant
    until: Instant | None = None

    @property
    def start_time(self) -> str | None:
        """What ``startTime`` asks: rounded down to a second, for services differ in rounding."""
        return None if self.start is None else text_of(whole_second(self.start))

    @property
    def end_time(self) -> str:
        """What ``endTime`` asks: rounded up to a second."""
        return text_of(next_whole_second(self.end))

    def holds(self, instant: Instant) -> bool:
        """Whether an instant lies in the window: `start` and `end` do, `until` does not."""
        return (
            (self.start is None or self.start <= instant)
            and instant <= self.end
            and (self.until is None or instant < self.until)
        )

    def asks(self, instant: Instant) -> bool:
        """Whether a request for the window asks for an instant; the bounds asked are rounded."""
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

    With `ids_from` it starts there at the earliest: what was delivered before is not known by id.
    Both the bookmark's side and ``now`` are rounded down to whole seconds: events of the second
    that is still running wait for the next run. None where the range is empty.
    """
    starts = [] if start_date is None else [start_date]
    if bookmark is not None:
        lookback = whole_second(later(bookmark, seconds=-lookback_seconds))
        starts.append(max(lookback, ids_from or lookback))
    start = max(starts, default=EARLIEST)
    end = min(whole_second(now), end_date or whole_second(now))
    return None if end < start else Window(None if start == EARLIEST else start, end)
