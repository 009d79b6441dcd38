"""Estimates how many pages are left in a window, and at which instant to cut it."""

from __future__ import annotations

from math import sqrt
from typing import Final

from tap_audit_events.events.instants import EARLIEST, Instant, later, whole_second
from tap_audit_events.events.page import Page
from tap_audit_events.extraction.planning.forecast import Forecast
from tap_audit_events.extraction.planning.window_reader import WindowReader

_MIN_SECONDS: Final = 4

_MAX_TIMES: Final = 3
"""Even if hours not seen yet are busy, a window should hold at most this many times its planned
pages."""


class WindowSizes:
    """Estimates the size of windows from the pages that were read."""

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._forecast = Forecast()
        self._oldest = EARLIEST

    def learn(self, reader: WindowReader, page: Page) -> None:
        """Learn from a page of a window, before `WindowReader.accept` gets it."""
        if page.instants and self._oldest == EARLIEST:
            self._oldest = page.oldest
        start = self._position(reader)
        end = page.newest if page.instants else start
        if page.next_cursor is None:
            end = reader.window.limit
        self._forecast.learn(start, end, page.sorted_instants)

    def pages_left(self, reader: WindowReader) -> float:
        """Pages that are left in a window; something must have been learned."""
        start, end = self._position(reader), reader.window.limit
        return self._forecast.expected(start, end) / self._page_size

    def can_cut(self, reader: WindowReader) -> bool:
        """Whether enough time is left in a window; it cannot be cut within a second.

        It cannot be cut either as long as the time of the oldest event is unknown.
        """
        start = whole_second(self._position(reader))
        return start > EARLIEST and later(start, seconds=_MIN_SECONDS) < reader.window.limit

    def cut(self, reader: WindowReader, pages: float) -> Instant | None:
        """The whole second by which so many pages of events are expected; None if there are fewer.

        It is a little early, so that an extra page is rarely needed, and earlier if it would
        otherwise include hours that were not seen yet and may hold far more.
        """
        start = self._position(reader)
        events = pages * self._page_size
        events -= min(2 * sqrt(events), events / 2)
        seconds = min(
            self._forecast.seconds_until(start, events),
            self._forecast.seconds_until_if_busy(start, events * _MAX_TIMES),
        )
        at = later(whole_second(start), seconds=2 + int(seconds))  # start and seconds are rounded
        return at if start < at < reader.window.limit else None

    def _position(self, reader: WindowReader) -> Instant:
        """How far a window was read; nothing is expected before the oldest event."""
        return max(reader.position or EARLIEST, self._oldest)
