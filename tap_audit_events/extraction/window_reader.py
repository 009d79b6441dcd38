"""One window: its requests up to the page without a cursor, and its pages in order."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from tap_audit_events.errors.exceptions import CursorRefusedError
from tap_audit_events.events.instants import Instant, later, whole_second
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.pagination import Paginator


class Request(NamedTuple):
    """What a worker requests.

    Attributes:
        reader: the reader that takes the response.
        window: whose events are requested.
        cursor: position of the page, None for the first one.
    """

    reader: WindowReader
    window: Window
    cursor: str | None


class ReadPage(NamedTuple):
    """A page that was read.

    Attributes:
        window: the window it belongs to; other events of the page belong to other windows.
        page: the page.
        in_order: whether the events of the window came in ascending order, up to this page.
        completes_window: whether no more pages of the window follow.
    """

    window: Window
    page: Page
    in_order: bool
    completes_window: bool


class WindowReader:
    """Reads one window by cursor to its end; no thread, no clock, no network.

    Args:
        window: the window.
        expected_pages: how many pages it should have.

    Attributes:
        window: the window; a split shortens it.
        expected_pages: as above.
        is_in_flight: whether a request is on its way.
        is_read: whether nothing is left to request.
        pages_read: pages that have come.
        events_read: events that have come.
        has_more: whether it is known that more of its events follow.
        is_alone: whether it was restarted to be read without others next to it.
        restarts: how often it was restarted.
        error: what ended it before its end.
    """

    def __init__(self, window: Window, expected_pages: float = 1.0) -> None:
        self.window = window
        self.expected_pages = expected_pages
        self.is_in_flight = False
        self.is_read = False
        self.has_more = self.is_alone = False
        self.pages_read = self.events_read = self.restarts = 0
        self.error: Exception | None = None
        self._requested = window
        self._paginator = Paginator()
        self._progress = _Progress()
        self._reached = _Progress()
        self._restarted_at_page = False
        self._newest_page_start: Instant | None = None
        self._page_start_before: Instant | None = None
        self._ready: deque[ReadPage] = deque()

    @property
    def is_requested(self) -> bool:
        """Whether a request was sent for it."""
        return self.is_in_flight or self.pages_read > 0

    @property
    def is_done(self) -> bool:
        """Whether all its pages have come and were taken."""
        return self.is_read and not self._ready

    @property
    def ready_pages(self) -> int:
        """Pages that have come and were not taken."""
        return len(self._ready)

    @property
    def ready_bytes(self) -> int:
        """Bytes of the pages that have come and were not taken."""
        return sum(ready.page.size for ready in self._ready)

    @property
    def position(self) -> Instant | None:
        """How far it has come: the newest instant so far."""
        return self._progress.newest or self.window.start

    @property
    def in_order(self) -> bool:
        """Whether its events came in ascending order so far."""
        return self._progress.in_order

    @property
    def can_split(self) -> bool:
        """Whether a split would request at most two pages again.

        Requests start at whole seconds. So the newest page has to reach into later seconds than
        that of its start, and the page before it has to start in an earlier one.
        """
        newest, start = self._progress.newest, self._newest_page_start
        if newest is None or start is None or newest < later(whole_second(start), seconds=2):
            return False
        if self.pages_read > 1 and not self.window.holds(start):  # the service ignores its bounds
            return False
        before = self._page_start_before
        return before is None or before < whole_second(start)

    def take_page(self) -> ReadPage:
        """Take the oldest page that is ready."""
        taken = self._ready.popleft()
        return taken._replace(window=self.window)  # a split may have shortened it meanwhile

    def next_request(self) -> Request:
        """The next request of the window."""
        self.is_in_flight = True
        return Request(self, self._requested, self._paginator.cursor)

    def accept(self, page: Page) -> None:
        """Take in the page that was requested."""
        self.is_in_flight = False
        self.pages_read += 1
        self.events_read += len(page.ids)
        self._progress.advance(page)
        if page.instants:
            self._page_start_before = self._newest_page_start
            self._newest_page_start = page.oldest
        try:
            self._paginator.advance(page)
        except Exception as error:  # noqa: BLE001 - raised after the page was delivered
            self._fail(error)
        if page.malformed is not None:
            self._fail(page.malformed)
        self.is_read = self.is_read or self._paginator.is_finished
        self.has_more = not self.is_read
        completes = self.is_read and self.error is None
        self._ready.append(ReadPage(self.window, page, self.in_order, completes))

    def fail(self, error: Exception) -> None:
        """Take in what came instead of a page.

        A refused cursor restarts the window, as long as that brings something new.
        """
        self.is_in_flight = False
        if isinstance(error, CursorRefusedError) and self._has_moved:
            self._restart()
        else:
            self._fail(error)

    def restart_alone(self) -> None:
        """Restart the window, as cursors may be refused because of other windows' requests."""
        self.is_alone = True
        if self.pages_read and self._progress.in_order:
            self.error, self.is_read = None, False
            self._restart()

    def split(self) -> WindowReader:
        """Give up the pages that are not read yet: they become a window of their own.

        That window starts with the newest page, whose events are requested again, so that an event
        that comes up to a page too late is still found. If there was only one page, nothing of the
        window is kept.
        """
        start = self.window.start
        if self.pages_read > 1 and self._newest_page_start is not None:
            start = self._newest_page_start
        rest = WindowReader(Window(start, self.window.end, self.window.until))
        rest.has_more = True
        self.window = Window(self.window.start, self.window.end, start)
        self.is_read = True
        if self.pages_read == 1:
            self._ready.clear()
        return rest

    def cut(self, at: Instant) -> WindowReader:
        """Shorten a window that was not requested yet; the rest becomes a window of its own."""
        rest = WindowReader(Window(at, self.window.end, self.window.until))
        self.window = self._requested = Window(self.window.start, self.window.end, at)
        return rest

    def _fail(self, error: Exception) -> None:
        self.error = error
        self.is_read = True

    @property
    def _has_moved(self) -> bool:
        """Whether a restart would bring something new; events out of order could be missed."""
        progress, reached = self._progress, self._reached
        if not progress.in_order:
            return False
        is_again = progress.pages == 1 and progress.newest == reached.newest
        return progress.is_beyond(reached) or (self._restarted_at_page and is_again)

    def _restart(self) -> None:
        """Request the rest of the window without a cursor.

        It restarts at the start of its newest page, as an event out of order may follow there. If
        that was the only page since the last restart, it restarts at its newest instant.
        """
        self.restarts += 1
        progress = self._progress
        self._restarted_at_page = progress.pages > 1
        newest_start = self._newest_page_start if progress.pages > 1 else progress.newest
        start = max(filter(None, [newest_start, self._requested.start]), default=None)
        self._reached, self._progress = progress, _Progress()
        self._requested = Window(start, self.window.end, self.window.until)
        self._paginator.restart()


@dataclass(slots=True)
class _Progress:
    """How far a window was read since its last restart.

    Attributes:
        pages: pages with events.
        newest: the newest instant so far.
        ties: events of that instant.
        in_order: whether all events came in ascending order.
    """

    pages: int = 0
    newest: Instant | None = None
    ties: int = 0
    in_order: bool = True

    def advance(self, page: Page) -> None:
        if not page.instants:
            return
        self.pages += 1
        is_next = self.newest is None or self.newest <= page.oldest
        self.in_order = self.in_order and page.is_ascending and is_next
        if self.newest is None or page.newest > self.newest:
            self.newest, self.ties = page.newest, 0
        self.ties += len(page.sorted_instants) - bisect_left(page.sorted_instants, self.newest)

    def is_beyond(self, other: _Progress) -> bool:
        if self.newest is None:
            return False
        return other.newest is None or (self.newest, self.ties) > (other.newest, other.ties)
