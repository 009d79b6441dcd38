"""Which window to request next, and which page comes next: no thread, no clock, no network."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from math import ceil, floor, sqrt
from typing import Final

from tap_audit_events.errors.exceptions import CursorRefusedError
from tap_audit_events.events.instants import EARLIEST, later, whole_second
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.forecast import Forecast
from tap_audit_events.extraction.window_reader import ReadPage, Request, WindowReader

SPARE_SHARE: Final = 0.25
SPARE_REQUESTS: Final = 3
"""Requests beyond those of a sequential run: at most this share of them, and so many."""

WINDOW_PAGES: Final = 8
"""Pages that a window is cut for at most, so that the first one is soon read to its end."""

LAST_SHARE: Final = 0.8
"""A worker gets at most this share of its part of the pages that are left."""

FEW_PAGES: Final = 3
"""A window is not split after its first page for fewer pages."""

SPLIT_FACTOR: Final = 2
SPLIT_AFTER_PAGES: Final = 12
"""A window in progress is split if it has so many times the pages that were expected, and at least
so many, and if more than `WINDOW_PAGES` are left: a split may miss an event out of order."""

COST_OF_SPLIT: Final = 3 + SPARE_SHARE
"""Requests: a page is requested again, and what is left is cut."""

UNKNOWN_PAGES: Final = 0.5
"""Expected of a window that nobody knows anything about: it may be split after its first page."""

ROUNDING: Final = 1e-6

LONGEST_SECONDS: Final = 1e12
"""Longer than the range of times."""

PAGES_HELD: Final = 12
BYTES_HELD: Final = 48 * 1024 * 1024
"""Pages that were requested and not taken yet: so many for each request in flight; bytes."""


class Plan:
    """Reads a range in windows.

    The first request covers the whole range. If more pages follow and requests in parallel pay,
    the range is cut into windows of a few pages, by how many events are expected; each is read by
    cursor to its own end. So the service's time filter finds every event of a window, and no
    window depends on another.

    Requests stay within `SPARE_SHARE` and `SPARE_REQUESTS` of what a sequential run needs: the last
    page of a window may be nearly empty, so a window is cut only if all that are open may waste
    one request.

    Args:
        window: the range of the run.
        page_size: events of a page at most.
        concurrency: requests in flight at most; with 1 nothing is cut.
        pages_held: pages at most that may have been requested and not taken.

    Attributes:
        windows: how many were requested.
        in_flight: requests in flight.
        restarted: the windows that were restarted because a cursor was refused.
    """

    def __init__(
        self, window: Window, *, page_size: int, concurrency: int = 1, pages_held: int | None = None
    ) -> None:
        self.windows = self.in_flight = 0
        self._range = window
        self._page_size = page_size
        self._concurrency = concurrency
        self._pages_held = pages_held or PAGES_HELD * concurrency
        self.restarted: list[Window] = []
        self._forecast = Forecast()
        self._readers = [WindowReader(window, UNKNOWN_PAGES)]
        self._oldest = window.start or EARLIEST
        self._useful = self._most_useful = self._wasted = 0.0
        self._newest_bytes = 1
        self._is_sequential = concurrency == 1
        self._is_in_order = True
        self._empty_windows = 0

    @property
    def is_done(self) -> bool:
        """Whether every page was taken."""
        return not self._readers

    @property
    def ready_pages(self) -> int:
        """Pages that can be taken now, one after the other."""
        pages = 0
        for reader in self._readers:
            pages += reader.ready_pages
            if not reader.is_read or reader.error is not None:
                break
        return pages

    def next_request(self, most_in_flight: int) -> Request | None:
        """The next request to send, None if none should be sent now.

        Whoever takes it calls `accept` or `fail` with it.

        Args:
            most_in_flight: how many requests in flight pay at present.
        """
        most = 1 if self._is_sequential else min(most_in_flight, self._concurrency)
        if self.in_flight >= most:
            return None
        reader = self._next_reader(is_parallel=most > 1)
        if reader is None:
            return None
        self.windows += not reader.is_requested
        self.in_flight += 1
        return reader.next_request()

    def accept(self, request: Request, page: Page) -> None:
        """Take in the page that was requested."""
        reader = request.reader
        self.in_flight -= 1
        self._learn(reader, page)
        self._count(reader, page)
        self._newest_bytes = max(1, page.size)
        reader.accept(page)
        self._is_in_order = self._is_in_order and reader.in_order
        if reader.is_read:
            self._empty_windows = 0 if reader.events_read else self._empty_windows + 1

    def fail(self, request: Request, error: Exception) -> None:
        """Take in what came instead of a page; `next_page` raises it after the pages before it.

        Cursors that are refused while several windows are read may be refused because of that, for
        example if a service keeps only the newest: then the rest is read sequentially.
        """
        reader = request.reader
        self.in_flight -= 1
        reader.fail(error)
        is_refused = isinstance(error, CursorRefusedError)
        if is_refused and reader.error is not None and not self._is_sequential:
            self._is_sequential = True
            reader.restart_alone()
        if is_refused and reader.error is None:
            self.restarted.append(reader.window)

    def next_page(self) -> ReadPage | None:
        """The next page in order, None if it has not come or all were taken.

        Raises:
            Exception: what came instead of it.
        """
        while self._readers:
            first = self._readers[0]
            if first.ready_pages:
                return first.take_page()
            if first.error is not None:
                raise first.error
            if not first.is_read:
                return None
            del self._readers[0]
        return None

    # Which window to request

    def _next_reader(self, *, is_parallel: bool) -> WindowReader | None:
        """The first window that nobody requests and that may be requested now."""
        pages_before = 0.0
        for reader in list(self._unread()):
            if not reader.is_in_flight:
                if not self._has_room(reader, pages_before):
                    return None
                found = self._prepared(reader, is_parallel=is_parallel)
                if found is not None:
                    return found
            pages_before += _pages_left(reader)
        return None

    def _prepared(self, reader: WindowReader, *, is_parallel: bool) -> WindowReader | None:
        """The window as it should be requested: as it is, cut or split; None if it should wait."""
        if self._is_sequential and self._concurrency > 1 and not reader.is_alone:
            reader.restart_alone()
        if not is_parallel or not self.windows:
            return reader
        if reader.is_requested:
            if not self._is_too_large(reader):
                return reader
            reader = self._split(reader)
        if self._can_afford(1):
            self._cut(reader)
        elif self.in_flight:
            return None
        return reader

    def _unread(self) -> Iterator[WindowReader]:
        """The windows that are not read to their end, up to one that ends the run."""
        for reader in self._readers:
            if reader.error is not None:
                return
            if not reader.is_read:
                yield reader

    def _has_room(self, reader: WindowReader, pages_before: float) -> bool:
        """Whether a page may be held until those before it have been read and taken.

        Otherwise it would take the room of pages that are needed first. At most half of the room
        is kept for them, as their number is an estimate.
        """
        if reader is self._readers[0] and not reader.ready_pages:
            return True
        room = min(self._pages_held, BYTES_HELD / self._newest_bytes)
        held = self.in_flight + sum(each.ready_pages for each in self._readers)
        return held + min(pages_before, room / 2) < room

    def _cut(self, reader: WindowReader) -> None:
        """Shorten a window to a few pages; what is left of it can be cut again.

        After empty windows it is cut to more: the range ends now, while its events may have ended
        long ago.
        """
        expected = self._expected_pages(reader)
        open_pages = sum(_pages_left(each) for each in self._unread() if each.is_requested)
        share = LAST_SHARE * (expected + open_pages) / self._concurrency
        pages = min(WINDOW_PAGES, max(1.0, share)) * 2**self._empty_windows
        is_whole = expected <= 1.5 * pages + 0.5
        reader.expected_pages = expected if is_whole else pages
        if self._empty_windows:
            reader.expected_pages = UNKNOWN_PAGES
        if is_whole:
            return
        start = reader.position or self._oldest
        events = pages * self._page_size
        events -= min(2 * sqrt(events), events / 2)  # so that hardly ever a page more comes
        seconds = min(self._forecast.seconds_until(start, events), LONGEST_SECONDS)
        at = later(whole_second(start), seconds=2 + int(seconds))
        if start < at < (reader.window.until or self._range.end):
            self._readers.insert(self._readers.index(reader) + 1, reader.cut(at))

    def _is_too_large(self, reader: WindowReader) -> bool:
        """Whether a window in progress should be split.

        Not after events out of order: one of them may follow in the part that is given up.
        """
        pages = SPLIT_FACTOR * reader.expected_pages
        is_first = reader.pages_read == 1  # all of the window is requested again
        return (
            reader.pages_read >= (pages if is_first else max(pages, SPLIT_AFTER_PAGES))
            and reader.can_split
            and self._is_in_order
            and self._can_afford(COST_OF_SPLIT)
            and self._expected_pages(reader) > (FEW_PAGES if is_first else WINDOW_PAGES)
        )

    def _split(self, reader: WindowReader) -> WindowReader:
        """Give up the unread part of a window, which becomes a window of its own."""
        rest = reader.split()
        self._readers.insert(self._readers.index(reader) + 1, rest)
        self._useful -= 1  # its newest page is requested again
        self._wasted += 1
        return rest

    # What came

    def _expected_pages(self, reader: WindowReader) -> float:
        """How many pages may be left in a window."""
        until = reader.window.until or self._range.end
        start = reader.position or self._oldest
        return self._forecast.expected(start, until) / self._page_size if start < until else 0.0

    def _can_afford(self, more: float) -> bool:
        """Whether so many more windows keep the run within its bound of requests.

        However few events follow, each open window needs at most one request beyond the pages that
        its events fill; one of them none, if it is known that more events follow.
        """
        windows = sum(not reader.is_read for reader in self._readers)
        beyond = self._useful + self._wasted - self._known_pages(self._useful) + windows + more
        return beyond <= SPARE_SHARE * self._known_pages(self._most_useful) + SPARE_REQUESTS

    def _known_pages(self, pages: float) -> int:
        """The pages of a sequential run that fill so many, and one if more events follow."""
        has_more = any(reader.has_more for reader in self._unread())
        return floor(pages + ROUNDING) + 1 if has_more else ceil(pages - ROUNDING)

    def _count(self, reader: WindowReader, page: Page) -> None:
        """Count which share of the request a sequential run would have needed as well."""
        useful = 0.0 if page.next_cursor is None else 1.0
        if page.instants:
            window, instants = reader.window, page.sorted_instants
            start = bisect_left(instants, window.start) if window.start else 0
            end = bisect_left(instants, window.until) if window.until else len(instants)
            size = self._page_size if page.next_cursor is None else len(instants)
            useful = max(0, end - start) / size
        self._useful += useful
        self._wasted += 1 - useful
        self._most_useful = max(self._most_useful, self._useful)

    def _learn(self, reader: WindowReader, page: Page) -> None:
        """Tell the forecast which range was read, and what came."""
        if self._concurrency == 1:
            return
        if page.instants and self._oldest == EARLIEST:
            self._oldest = page.oldest
        start = reader.position or self._oldest
        end = page.newest if page.instants else start
        if page.next_cursor is None:
            end = reader.window.until or self._range.end
        self._forecast.learn(start, end, page.instants)


def _pages_left(reader: WindowReader) -> float:
    """How many pages a window should still have, at least one."""
    return max(1.0, reader.expected_pages - reader.pages_read)
