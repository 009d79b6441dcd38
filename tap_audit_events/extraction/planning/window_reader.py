"""One window: its requests up to the page without a cursor, and its pages in order."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tap_audit_events.errors.exceptions import CursorRefusedError, ServiceError
from tap_audit_events.events.instants import NEVER, Instant
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.pagination import Paginator


class WindowRequest(NamedTuple):
    """A request that a window's reader needs. The request for the first page has no cursor."""

    reader: WindowReader
    window: Window
    cursor: str | None


class WindowPage(NamedTuple):
    """A page that was read.

    Attributes:
        window: the window it belongs to; other events of the page belong to other windows.
        in_order: whether the events of the window, up to this page, are in ascending order.
        completes_window: whether no more pages of the window follow.
        restarted_at: the instant from which the window was requested again after a refused cursor;
            None if it was not, or was requested again from its start.
    """

    window: Window
    page: Page
    in_order: bool
    completes_window: bool
    restarted_at: Instant | None = None


class WindowReader:
    """Reads one window by cursor to its end; no thread, no clock, no network.

    Attributes:
        planned_pages: how many pages it should have, 1 if nothing is known.
        is_read: whether nothing is left to request.
        is_alone: whether it was restarted, to be read without other windows in parallel.
        error: why it was not read to its end; None if nothing went wrong.
    """

    def __init__(self, window: Window) -> None:
        self.window = window
        self.planned_pages = 1.0
        self.is_in_flight = False
        self.is_read = False
        self.is_alone = self._is_undecided = False
        self.pages_read = self.events_read = 0
        self.error: Exception | None = None
        self._requested_window = window
        self._paginator = Paginator()
        self._progress = _Progress()
        self._reached = _Progress()  # when a cursor was last refused
        self._restarted_at_page = False
        self._restarted_at: Instant | None = None
        self._refusal: Exception | None = None
        self._newest_page_start: Instant | None = None
        self._ready: deque[WindowPage] = deque()

    @property
    def is_requested(self) -> bool:
        return self.is_in_flight or self.pages_read > 0

    @property
    def can_begin_again(self) -> bool:
        """Whether the window can be given up: only its first page with events was read.

        That page cannot be taken until the next one is requested, so no event is delivered twice.
        """
        return self._is_undecided and not self.is_read

    @property
    def ready_pages(self) -> int:
        """Pages that can be taken."""
        return 0 if self.can_begin_again else len(self._ready)

    @property
    def pages_held(self) -> int:
        """Pages that were read and not taken yet."""
        return len(self._ready)

    @property
    def bytes_held(self) -> int:
        return sum(read.page.size for read in self._ready)

    @property
    def position(self) -> Instant | None:
        """How far it was read: its newest instant so far, or its start."""
        return self._progress.newest or self.window.start

    def take_page(self) -> WindowPage:
        return self._ready.popleft()

    def next_request(self) -> WindowRequest:
        self.is_in_flight = True
        self._is_undecided = False
        return WindowRequest(self, self._requested_window, self._paginator.cursor)

    def accept(self, page: Page) -> None:
        """Add a page, unless a restart left a gap: the bookmark would pass the missing events."""
        self.is_in_flight = False
        self.pages_read += 1
        self._is_undecided = not self.events_read and bool(page.ids)
        self.events_read += len(page.ids)
        # Other events may lie anywhere: the window must not be restarted at one of them.
        held = self.window.held(page.sorted_instants)
        self._progress.advance(held, is_ascending=page.is_ascending)
        if held:
            self._newest_page_start = held[0]
        try:
            self._paginator.advance(page, self._requested_window.rounded)
        except Exception as error:  # noqa: BLE001 - raised after the page was delivered
            self._end(error)
        if page.malformed is not None:
            self._end(page.malformed)
        self.is_read = self.is_read or self._paginator.is_finished
        if self._refusal is not None and (held or self.is_read):
            refusal, self._refusal = self._refusal, None
            if not self._continues(held):
                self._end(refusal)
                return
        completes = self.is_read and self.error is None
        in_order = self._progress.in_order
        self._ready.append(WindowPage(self.window, page, in_order, completes, self._restarted_at))

    def fail(self, error: Exception) -> None:
        """Record the error of the request in flight.

        A refused cursor restarts the window at the start of its newest page, as an event out of
        order may follow there. If no new event follows, or that was the only page, it restarts at
        its newest instant. If no new event follows there either, the error is final.
        """
        self.is_in_flight = False
        self._refusal = error
        progress = self._progress
        if not isinstance(error, CursorRefusedError) or not progress.in_order:
            self._end(error)
        elif progress.is_beyond(self._reached):
            self._reached = progress
            self._restart(at_page=progress.pages > 1)
        elif self._restarted_at_page:
            self._restart(at_page=False)
        else:
            self._end(error)

    def restart_alone(self) -> None:
        """Restart the window, as cursors may be refused because of other windows' requests."""
        self.is_alone = True
        if self._progress.in_order:
            self.error, self.is_read = None, False
            self._restart(at_page=True)

    def cut(self, at: Instant) -> WindowReader:
        """Shorten a window that was not requested yet; the rest becomes a window of its own."""
        rest = WindowReader(self.window.starting_at(at))
        self.window = self._requested_window = replace(self.window, until=at)
        return rest

    def _end(self, error: Exception) -> None:
        """End the window with an error, which is raised after the pages before it."""
        if isinstance(error, ServiceError):
            error.window = str(self._requested_window)
        self.error = error
        self.is_read = True

    def _continues(self, held: Sequence[Instant]) -> bool:
        """Whether the events after a restart begin at its instant, which has a known event.

        Otherwise the service's bounds are not inclusive, and other events may be missing too.
        """
        return self._restarted_at is None or (bool(held) and held[0] <= self._restarted_at)

    def _restart(self, *, at_page: bool) -> None:
        """Request the rest of the window without a cursor, from its newest page or instant."""
        self._restarted_at_page = at_page
        known = self._newest_page_start if at_page else self._reached.newest
        start = max(filter(None, [known, self._requested_window.start]), default=None)
        self._progress = _Progress()
        self._requested_window = self.window.starting_at(start)
        self._restarted_at = start if known else None
        # A new paginator, because pages and cursors may be repeated.
        self._paginator = Paginator()


@dataclass(slots=True)
class _Progress:
    """How far a window was read since its last restart.

    Attributes:
        pages: pages with events of the window.
        newest: the newest instant so far, `NEVER` if there was no event.
        ties: events of that instant.
        in_order: whether all events were in ascending order.
    """

    pages: int = 0
    newest: Instant = NEVER
    ties: int = 0
    in_order: bool = True

    def advance(self, instants: Sequence[Instant], *, is_ascending: bool) -> None:
        """Record the sorted times of those events of a page that belong to the window."""
        if not instants:
            return
        self.pages += 1
        is_next = self.newest <= instants[0]
        self.in_order = self.in_order and is_ascending and is_next
        if instants[-1] > self.newest:
            self.newest, self.ties = instants[-1], 0
        self.ties += len(instants) - bisect_left(instants, self.newest)

    def is_beyond(self, other: _Progress) -> bool:
        return (self.newest, self.ties) > (other.newest, other.ties)
