"""Chooses the next window to request and the next page, without threads, clock or network."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

from tap_audit_events.errors.exceptions import CursorRefusedError
from tap_audit_events.events.instants import EARLIEST, Instant
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.hourly_density import HourlyDensity
from tap_audit_events.extraction.planning.window_reader import (
    WindowPage,
    WindowReader,
    WindowRequest,
)

SPARE_SHARE: Final = 0.25
SPARE_REQUESTS: Final = 4
"""The request budget: a quarter more requests than a sequential run needs, and four."""

WORKERS_OF_A_SHORT_BUDGET: Final = 8
"""While the budget cannot afford a window for each worker, windows are cut as if there were at most
this many workers: smaller windows would soon use it up."""

WINDOW_PAGES: Final = 8
"""Maximum number of pages of a cut window, so that the first window is soon read to its end."""

LAST_SHARE: Final = 0.8
"""A window is cut to at most this share of one worker's part of the remaining pages."""

FILL: Final = 0.9
"""A window is cut a little short, so that it rarely needs one more page."""

TOO_LARGE: Final = 2
"""A window is given up if more than twice as many pages follow its first one as planned."""

COST_OF_GIVING_UP: Final = 3
"""The first page is requested again, and two windows may each waste a request."""

PAGES_FOR_WORKERS: Final = 12
"""If more pages than this seem to follow the first one, other organizations are read first."""

PAGES_HELD: Final = 800
"""Maximum number of pages that are requested and not yet taken."""


class Plan:
    """Reads a range in windows.

    The first request covers the whole range. If more pages follow and parallel requests gain time,
    the range is cut into windows of a few pages, by how many events are expected; each is read by
    cursor to its own end. So the service's time filter finds every event of a window, and no
    window depends on another.

    Attributes:
        windows: how many were requested.
        restarted: the windows that were restarted because a cursor was refused.
    """

    def __init__(self, window: Window, *, page_size: int) -> None:
        self.windows = 0
        self.restarted: list[Window] = []
        self._page_size = page_size
        self._readers = [WindowReader(window)]
        self._density = HourlyDensity()
        self._oldest = EARLIEST
        self._newest_bytes = 0
        self._requests = 0
        self._useful_pages = 0.0
        self._empty_windows = 0
        self._is_sequential = False

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

    @property
    def in_flight(self) -> int:
        """Windows whose next page is requested."""
        return sum(each.is_in_flight for each in self._readers)

    @property
    def bytes_held(self) -> int:
        """Bytes of the pages that are not taken yet, and, as an estimate, of those in flight."""
        held = sum(each.bytes_held for each in self._readers)
        return self.in_flight * self._newest_bytes + held

    @property
    def seems_large(self) -> bool:
        """Whether so many pages seem to follow the first one that parallel requests would pay.

        False as soon as the next page is requested.
        """
        first = self._readers[0] if self._readers else None
        return (
            first is not None
            and self.windows == 1
            and first.can_begin_again
            and self._pages_left(first) > PAGES_FOR_WORKERS
            and self._cut_at(first, WINDOW_PAGES) is not None
        )

    def next_request(self, workers: int, *, has_room: bool = True) -> WindowRequest | None:
        """The next request to send, None if none should be sent now.

        The caller then calls `accept` or `fail` with it, and limits how many are in flight.

        Args:
            workers: how many requests in flight to plan for; the others go to other organizations,
                but the plan may get them too. For one, no window is given up; for none, none is
                cut.
            has_room: whether there is memory for a page that has to wait for others.
        """
        if self._is_sequential and self.in_flight:
            return None
        reader = self._next_reader(has_room=has_room)
        if reader is not None and self.windows and workers and not self._is_sequential:
            reader = self._prepared(reader, workers)
        if reader is None:
            return None
        self.windows += not reader.is_requested
        return reader.next_request()

    def accept(self, request: WindowRequest, page: Page) -> None:
        reader = request.reader
        self._newest_bytes = page.size
        self._learn(reader, page)
        reader.accept(page)
        if reader.is_read:
            self._empty_windows = 0 if reader.events_read else self._empty_windows + 1

    def fail(self, request: WindowRequest, error: Exception) -> None:
        """Record the error of a request; `next_page` raises it after the pages before it.

        Cursors that are refused while several windows are read may be refused because of that, for
        example if a service keeps only the newest: then the rest is read sequentially.
        """
        reader = request.reader
        reader.fail(error)
        if not isinstance(error, CursorRefusedError):
            return
        if reader.error is not None and self.windows > 1 and not reader.is_alone:
            self._is_sequential = True
            reader.restart_alone()
        if reader.error is None:
            self.restarted.append(reader.window)

    def next_page(self) -> WindowPage | None:
        """The next page in order, None if it is not there yet; raises the error of its request."""
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

    def _next_reader(self, *, has_room: bool) -> WindowReader | None:
        """The first window that is not in flight, None if there is no room for its next page."""
        pages = self.in_flight + sum(each.pages_held for each in self._readers)
        has_room = has_room and pages < PAGES_HELD
        unread = self._unread()
        reader = next((each for each in unread if not each.is_in_flight), None)
        is_needed_now = reader is unread[0] and not self.ready_pages if unread else False
        return reader if is_needed_now or has_room else None

    def _unread(self) -> list[WindowReader]:
        """The windows that are not read to their end, up to one that ends the run."""
        before_error = takewhile(lambda reader: reader.error is None, self._readers)
        return [reader for reader in before_error if not reader.is_read]

    def _prepared(self, reader: WindowReader, workers: int) -> WindowReader | None:
        """The window as it should be requested: as it is, cut or begun again; None if it waits."""
        is_rest = reader is self._readers[-1]
        if reader.is_requested:
            is_large = workers > 1 and reader.can_begin_again and self._is_too_large(reader)
            return self._begun_again(reader, workers, is_rest=is_rest) if is_large else reader
        if not self._can_afford(1):
            return None if self.in_flight else reader
        if not self._cut(reader, workers) and is_rest and self.in_flight:
            # It may hold far more pages than expected: then it should be given up.
            return reader if self._can_afford(COST_OF_GIVING_UP) else None
        return reader

    def _is_too_large(self, reader: WindowReader) -> bool:
        return self._pages_left(reader) > TOO_LARGE * max(1.0, reader.planned_pages - 1)

    def _begun_again(
        self, reader: WindowReader, workers: int, *, is_rest: bool
    ) -> WindowReader | None:
        """The first part of a window that is given up; the window itself if it is continued.

        All of it is requested again, since an event out of order may follow anywhere. Without
        budget, a large window waits while the others earn some; the last one, which would be read
        by a single cursor, is given up beyond the budget.
        """
        if not self._can_afford(COST_OF_GIVING_UP):
            if self._pages_left(reader) <= WINDOW_PAGES:
                return reader
            if self.in_flight:
                return None
            if not (is_rest and self._can_afford(0)):
                return reader
        place = self._readers.index(reader)
        self._useful_pages -= reader.pages_read
        self._readers[place] = again = WindowReader(reader.window)
        if self._cut(again, workers):
            return again
        self._useful_pages += reader.pages_read
        self._readers[place] = reader
        return reader

    def _cut(self, reader: WindowReader, workers: int) -> bool:
        """Shorten a window to a few pages, and return whether that was possible.

        The rest can be cut again. After empty windows, a window has more pages: the range ends now,
        but its last event may be old.
        """
        can_afford_all = self._can_afford(workers)
        if not can_afford_all:
            workers = min(workers, WORKERS_OF_A_SHORT_BUDGET)
        expected = self._pages_left(reader)
        least = 1.0 if can_afford_all else min(2.0, expected / 2)
        if not self._can_afford(1):
            least = WINDOW_PAGES  # a smaller one would only earn back what giving up has cost
        share = LAST_SHARE * expected / workers
        pages = min(WINDOW_PAGES, max(least, share)) * 2**self._empty_windows
        reader.planned_pages = pages
        at = self._cut_at(reader, pages)
        if at is None:
            return False
        self._readers.insert(self._readers.index(reader) + 1, reader.cut(at))
        return True

    def _cut_at(self, reader: WindowReader, pages: float) -> Instant | None:
        """The whole second by which so many pages are expected; None if little would be left."""
        if self._pages_left(reader) <= 1.5 * pages + 0.5:
            return None
        start = self._position(reader)
        at = self._density.instant_after(start, FILL * pages * self._page_size)
        return at if start < at < reader.window.limit else None

    # What is expected, and what the budget allows

    def _learn(self, reader: WindowReader, page: Page) -> None:
        """Learn from a page of a window, before the window's reader gets it."""
        held = len(reader.window.held(page.sorted_instants))
        self._requests += 1
        most = self._page_size if page.next_cursor is None else len(page.instants)
        self._useful_pages += held / most if most else 1.0
        if page.instants and self._oldest == EARLIEST:
            self._oldest = page.oldest
        start = self._position(reader)
        end = page.newest if page.instants else start
        if page.next_cursor is None:
            end = reader.window.limit
        self._density.learn(start, end, page.sorted_instants)

    def _position(self, reader: WindowReader) -> Instant:
        """How far a window was read; nothing is expected before the oldest event."""
        return max(reader.position or EARLIEST, self._oldest)

    def _pages_left(self, reader: WindowReader) -> float:
        """Pages to expect in the rest of a window, 0 as long as no event was seen."""
        if self._oldest == EARLIEST:
            return 0.0
        start, end = self._position(reader), reader.window.limit
        return self._density.events_between(start, end) / self._page_size

    def _can_afford(self, more: int) -> bool:
        """Whether the budget allows that many more windows, if each open one wastes a request.

        A window wastes up to one request, as its last page may be nearly empty. A sequential run
        has a last page too.
        """
        beyond = self._requests - self._useful_pages + len(self._unread()) + more - 1
        return beyond <= SPARE_SHARE * self._useful_pages + SPARE_REQUESTS
