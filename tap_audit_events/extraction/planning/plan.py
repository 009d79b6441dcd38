"""Chooses the next window to request and the next page, without threads, clock or network."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

from tap_audit_events.errors.exceptions import CursorRefusedError
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.request_budget import COST_OF_CUT, RequestBudget
from tap_audit_events.extraction.planning.window_reader import ReadPage, Request, WindowReader
from tap_audit_events.extraction.planning.window_sizes import WindowSizes

WINDOW_PAGES: Final = 8
"""Maximum number of pages of a cut window, so that the first window is soon read to its end."""

SMALL_WINDOW_PAGES: Final = 2
FEW_WORKERS: Final = 4
MEDIUM_WINDOW_PAGES: Final = 5
MANY_WORKERS: Final = 10
"""While the budget cannot afford a window for each worker, a window is cut to at least
`SMALL_WINDOW_PAGES`, or to the pages that are left divided by `FEW_WORKERS` if that is less; and to
at least `MEDIUM_WINDOW_PAGES`, or to the pages that are left divided by `MANY_WORKERS` if that is
less. Smaller windows would use up the budget, and the rest would be read by one cursor."""

LAST_SHARE: Final = 0.8
"""A window is cut to at most this share of one worker's part of the remaining pages, but never to
less than one page."""

FEW_PAGES: Final = 2
TOO_LARGE: Final = 2
"""A window in progress is given up only if more than a few pages are left, and more than
`TOO_LARGE` times as many as expected."""

PAGES_FOR_WORKERS: Final = 12
"""If more pages than this seem to follow the first one, other organizations are read first."""

MANY_PAGES: Final = 24
"""Far more pages than it takes to earn back two requests: the forecast may be wrong."""

_COST_OF_REST: Final = 1 + COST_OF_CUT
"""What it costs to give up a window after its first page. While other requests are in flight, the
whole rest of the range is requested only if the budget can afford that: it may hold far more pages
than expected, for example if there are more events each day."""

PAGES_HELD: Final = 800
"""Maximum number of pages that are requested and not yet taken."""

BYTES_HELD: Final = 60 * 1024 * 1024
"""Maximum number of bytes of these pages."""


class Plan:
    """Reads a range in windows.

    The first request covers the whole range. If more pages follow and parallel requests gain time,
    the range is cut into windows of a few pages, by how many events are expected; each is read by
    cursor to its own end. So the service's time filter finds every event of a window, and no
    window depends on another. With a concurrency of 1 nothing is cut.

    Attributes:
        windows: how many were requested.
        restarted: the windows that were restarted because a cursor was refused.
    """

    def __init__(self, window: Window, *, page_size: int, concurrency: int = 1) -> None:
        self.windows = self.in_flight = 0
        self.restarted: list[Window] = []
        self._concurrency = self._workers = concurrency
        self._readers = [WindowReader(window)]
        self._sizes = WindowSizes(page_size)
        self._budget = RequestBudget(page_size)
        self._newest_bytes = 1
        self._is_sequential = False
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

    @property
    def bytes_held(self) -> int:
        """Bytes of the pages that are not taken yet, and, as an estimate, of those in flight."""
        ready = sum(each.ready_bytes for each in self._readers)
        return max(1, self.in_flight * self._newest_bytes + ready)

    @property
    def seems_large(self) -> bool:
        """Whether so many pages seem to follow the first one that parallel requests would pay.

        False as soon as the next page is requested.
        """
        first = self._readers[0] if self._readers else None
        return (
            first is not None
            and self.windows == first.pages_read == 1
            and not (first.is_read or first.is_in_flight)
            and self._sizes.can_cut(first)
            and self._sizes.pages_left(first) > PAGES_FOR_WORKERS
        )

    def next_request(self, most_in_flight: int, workers: int | None = None) -> Request | None:
        """The next request to send, None if none should be sent now.

        The caller then calls `accept` or `fail` with it.

        Args:
            most_in_flight: how many requests in flight gain time; if only one, no window is cut.
                The caller sends no more. If it is at most `concurrency`, pages arrive faster than
                they are taken, so the caller counts ready pages too, except the one taken next.
            workers: how many requests in flight to plan for, all by default. The others go to other
                organizations, but the plan may get them too.
        """
        self._workers = workers or self._concurrency
        most = 1 if self._is_sequential else self._concurrency
        if self.in_flight >= most:
            return None
        reader = self._next_reader(is_parallel=min(most, most_in_flight) > 1)
        if reader is None:
            return None
        self.windows += not reader.is_requested
        self.in_flight += 1
        return reader.next_request()

    def accept(self, request: Request, page: Page) -> None:
        reader = request.reader
        self.in_flight -= 1
        self._sizes.learn(reader, page)
        self._budget.count(reader, page)
        self._newest_bytes = page.size
        reader.accept(page)
        if reader.is_read:
            self._empty_windows = 0 if reader.events_read else self._empty_windows + 1

    def fail(self, request: Request, error: Exception) -> None:
        """Record the error of a request; `next_page` raises it after the pages before it.

        Cursors that are refused while several windows are read may be refused because of that, for
        example if a service keeps only the newest: then the rest is read sequentially.
        """
        reader = request.reader
        self.in_flight -= 1
        reader.fail(error)
        if not isinstance(error, CursorRefusedError):
            return
        if reader.error is not None and self._concurrency > 1 and not reader.is_alone:
            self._is_sequential = True
            reader.restart_alone()
        if reader.error is None:
            self.restarted.append(reader.window)

    def next_page(self) -> ReadPage | None:
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

    def _next_reader(self, *, is_parallel: bool) -> WindowReader | None:
        """The first window that is not in flight and may be requested now."""
        pages_before = 0.0
        for reader in self._unread():
            if not reader.is_in_flight:
                if not self._has_room(pages_before):
                    return None
                return self._prepared(reader, is_parallel=is_parallel)
            pages_before += _planned_pages_left(reader)
        return None

    def _unread(self) -> list[WindowReader]:
        """The windows that are not read to their end, up to one that ends the run."""
        before_error = takewhile(lambda reader: reader.error is None, self._readers)
        return [reader for reader in before_error if not reader.is_read]

    def _has_room(self, pages_before: float) -> bool:
        """Whether there is room to hold a page until all pages before it are taken.

        Room is kept for the pages before it, which are needed first: at most half of all room, as
        their number is an estimate.
        """
        if not (pages_before or self.ready_pages):
            return True
        held = self.in_flight + sum(each.ready_pages for each in self._readers)
        mean_bytes = self.bytes_held / max(1, held)
        room = min(PAGES_HELD, BYTES_HELD / mean_bytes)
        return held + min(pages_before, room / 2) < room

    def _prepared(self, reader: WindowReader, *, is_parallel: bool) -> WindowReader | None:
        """The window as it should be requested: as it is, cut or begun again; None if it waits."""
        if not self.windows or not is_parallel:  # the first request covers the whole range
            return reader
        if reader.is_requested:
            if not self._is_too_large(reader):
                return reader
            given_up, reader = reader, reader.begin_again()
            self._insert_after(given_up, reader)
            self._budget.count_again(given_up.pages_read)
        elif not self._can_afford(1):
            return None if self.in_flight else reader
        self._cut(reader)
        is_rest = reader is self._readers[-1]
        if is_rest and self.in_flight and not self._can_afford(_COST_OF_REST):
            return None
        return reader

    def _cut(self, reader: WindowReader) -> None:
        """Shorten a window to a few pages; the rest can be cut again.

        After empty windows, a window is cut to more pages: the range ends now, but its last event
        may be old.
        """
        expected = self._sizes.pages_left(reader)
        open_windows = [each for each in self._unread() if each.is_requested]
        pages_ahead = expected + sum(map(_planned_pages_left, open_windows))
        least = 1.0
        if not self.in_flight and not self._can_afford(1):
            least = WINDOW_PAGES  # a smaller one would only earn back what giving up the rest costs
        elif not self._can_afford(self._workers):
            small = min(SMALL_WINDOW_PAGES, pages_ahead / FEW_WORKERS)
            least = max(least, small, min(MEDIUM_WINDOW_PAGES, pages_ahead / MANY_WORKERS))
        share = LAST_SHARE * pages_ahead / self._workers
        pages = min(WINDOW_PAGES, max(least, share)) * 2**self._empty_windows
        is_small = expected <= 1.5 * pages + 0.5  # little would be left
        at = None if is_small else self._sizes.cut(reader, pages)
        if not self._empty_windows:  # else a guess: the window may soon be given up
            reader.planned_pages = pages
        if at is not None:
            self._insert_after(reader, reader.cut(at))

    def _is_too_large(self, reader: WindowReader) -> bool:
        """Whether a window in progress should be given up, to read all of it again in parts.

        If the budget is used up, the whole rest is requested as one window. If its first page shows
        that many pages follow, the budget may be exceeded by up to two requests: otherwise, one
        cursor would read all of them.
        """
        pages_left = self._sizes.pages_left(reader)
        if self._workers == 1:  # the first page may have been a burst; nobody would read the parts
            return False
        is_rest = reader.pages_read == 1 and not self.in_flight and pages_left > MANY_PAGES
        cost = 0 if is_rest else reader.pages_read + COST_OF_CUT
        return (
            pages_left > max(FEW_PAGES, TOO_LARGE * _planned_pages_left(reader))
            and reader.can_begin_again
            and self._sizes.can_cut(reader)
            and self._can_afford(cost)
        )

    def _can_afford(self, more: int) -> bool:
        """Whether the budget allows that many more windows."""
        return self._budget.can_afford(more, self._unread())

    def _insert_after(self, reader: WindowReader, rest: WindowReader) -> None:
        self._readers.insert(self._readers.index(reader) + 1, rest)


def _planned_pages_left(reader: WindowReader) -> float:
    """How many of its planned pages a window has left, at least one."""
    return max(1.0, reader.planned_pages - reader.pages_read)
