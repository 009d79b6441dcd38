"""The time range of a run, and the windows in which it is requested."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from tap_audit_events.events.instants import (
    EARLIEST,
    LATEST,
    NEVER,
    Instant,
    brief,
    later,
    next_whole_second,
    text_of,
    whole_second,
)


class Origin(Enum):
    """Where a bound of a run's range comes from."""

    SETTING = auto()
    STATE = auto()
    CLOCK = auto()


@dataclass(frozen=True, slots=True)
class Window:
    """A time range that is requested with the same filters on each of its pages.

    Attributes:
        start: first instant that belongs to it, None if there is no lower bound.
        end: last instant that belongs to it.
        until: first instant that belongs to the next window, not after `end`; None in the last
            window of a run. Nothing from `until` on belongs to this window.
        start_origin: where `start` comes from, None if the tap chose it between two windows.
        end_origin: likewise for `end`.
    """

    start: Instant | None
    end: Instant
    until: Instant | None = None
    start_origin: Origin | None = field(default=None, compare=False)
    end_origin: Origin | None = field(default=None, compare=False)

    def starting_at(self, start: Instant | None) -> Window:
        """The rest of the window."""
        origin = self.start_origin if start == self.start else None
        return replace(self, start=start, start_origin=origin)

    def ending_at(self, end: Instant) -> Window:
        """The window with another end."""
        return replace(self, end=end, end_origin=None)

    @property
    def limit(self) -> Instant:
        """The end of the window: the start of the next window; for the last window, `end`."""
        return self.until or self.end

    @property
    def start_time(self) -> str | None:
        """``startTime`` of its requests: the start of `rounded`."""
        first = self.rounded.start
        return first and text_of(first)

    @property
    def end_time(self) -> str:
        """``endTime`` of its requests: rounded up to a whole second."""
        return text_of(self.rounded.end)

    def holds(self, instant: Instant) -> bool:
        """Whether an event of that time belongs to the window."""
        return bool(self.held([instant]))

    def held(self, ascending: Sequence[Instant]) -> Sequence[Instant]:
        """Of instants in ascending order, those that belong to the window."""
        first = bisect_left(ascending, self.start or NEVER)
        if self.until is not None:
            return ascending[first : bisect_left(ascending, self.until)]
        return ascending[first : bisect_right(ascending, self.end)]

    @property
    def rounded(self) -> Window:
        """The range that the requests of the window cover, in whole seconds."""
        start = self.start and whole_second(self.start)
        if start is not None and start.endswith("-01T00:00:00"):
            start = later(start, seconds=-1)  # a leap second may count to the month before
        return Window(start, next_whole_second(self.limit))

    def __str__(self) -> str:
        end = brief(self.limit)
        return f"from {brief(self.start)} to {end}" if self.start else f"up to {end}"


def run_window(
    *,
    start_date: Instant | None,
    end_date: Instant | None,
    now: Instant,
    bookmark: Instant | None = None,
    lookback_seconds: int = 0,
    ids_from: Instant = EARLIEST,
) -> Window | None:
    """The range of a run: from max(start_date, bookmark - lookback) to min(end_date, now).

    It does not start before `ids_from`: the ids of older delivered events are not known.
    The lookback's start is rounded down to a whole second, and so is ``now``: later events are left
    for the next run, as that second has not ended yet. None if the range is empty.
    """
    lookback = whole_second(later(bookmark or EARLIEST, seconds=-lookback_seconds))
    start = max(start_date or EARLIEST, lookback, ids_from)
    end = min(whole_second(now), end_date or LATEST)
    if end < start:
        return None
    return Window(
        None if start == EARLIEST else start,
        end,
        start_origin=Origin.SETTING if start == start_date else Origin.STATE,
        end_origin=Origin.SETTING if end == end_date else Origin.CLOCK,
    )
