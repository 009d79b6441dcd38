"""Follows the cursors of one window, and detects a lack of progress (interface.md 4.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Set as AbstractSet
from typing import Final

from tap_audit_events.errors.exceptions import sanitize, service_error
from tap_audit_events.events.instants import EARLIEST, Instant
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window

RECENT_CURSORS: Final = 1000
MAX_CURSOR_LENGTH: Final = 16_384
"""In characters. It is part of a URL, and usual servers accept no URL of 16 KiB."""

MAX_EMPTY_PAGES: Final = 1000
"""Maximum number of pages in a row without a requested event: a service that divides events into
pages before it filters them may send many empty pages."""

MAX_REPEATED_PAGES: Final = 30
"""Maximum number of pages in a row without an event that is new to the window."""

MAX_RECENT_IDS: Final = 100_000
"""Maximum number of ids that are remembered to recognize such pages."""

MAX_CYCLES: Final = 3
"""Maximum number of times that a much earlier page may be repeated."""


class Paginator:
    """Reads ``nextCursor`` from page after page until a page has none.

    A page without events is a page like any other: only one without ``nextCursor`` is the last.
    It remembers a bounded amount: the newest cursors, the ids since the newest event, and the
    cursor and page at the last power of two, which reveal any longer cycle (Brent's algorithm).

    An event that is set aside counts as one of the window: its time is not known.

    Attributes:
        cursor: position of the next page, None before the first page and after the last.
        is_finished: whether the last page was read.
    """

    def __init__(self) -> None:
        self.cursor: str | None = None
        self.is_finished = False
        self._pages = 0
        self._next_milestone = 1
        self._recent_cursors: deque[int] = deque(maxlen=RECENT_CURSORS)
        self._milestone_cursor = 0
        self._newest = EARLIEST
        self._recent_ids: set[str] = set()
        self._milestone_page: AbstractSet[str] = frozenset()
        self._empty = self._repeated = self._cycles = 0

    def advance(self, page: Page, requested: Window) -> None:
        """Take the cursor of the next page from the newest page.

        Events outside of `requested` are not progress. `ContractError` if the cursor is too long or
        was sent before in this window, or if the pages contain nothing new.
        """
        self._pages += 1
        self.cursor = page.next_cursor
        self.is_finished = page.next_cursor is None
        if page.next_cursor is not None:
            self._check_cursor(page.next_cursor)
            self._check_progress(page, requested)

    def _check_cursor(self, cursor: str) -> None:
        if len(cursor) > MAX_CURSOR_LENGTH:
            details = f"{len(cursor):,} characters; the most is {MAX_CURSOR_LENGTH:,}"
            raise service_error("AE-CURSOR-LENGTH", details=details)
        digest = hash(cursor)
        if digest in self._recent_cursors or digest == self._milestone_cursor:
            raise service_error("AE-CURSOR-REPEATED", details=f"nextCursor {sanitize(cursor)}")
        self._recent_cursors.append(digest)

    def _check_progress(self, page: Page, requested: Window) -> None:
        instants = requested.held(page.sorted_instants)
        ids = frozenset(page.ids)
        if len(instants) < len(page.ids):
            pairs = zip(page.ids, page.instants, strict=True)
            ids = frozenset(each for each, instant in pairs if requested.holds(instant))
        ids = ids.union(str(hash(each.text)) for each in page.unusable)
        self._empty = 0 if ids else self._empty + 1
        if self._empty > MAX_EMPTY_PAGES:
            raise service_error("AE-EMPTY-PAGES", details=f"{self._empty} in a row")
        if ids:
            self._count_repeats(ids)
            self._remember(ids, max(instants, default=self._newest))
        if self._pages >= self._next_milestone:
            self._milestone_page, self._milestone_cursor = ids, hash(page.next_cursor)
            self._next_milestone *= 2

    def _count_repeats(self, ids: AbstractSet[str]) -> None:
        is_repeated = ids <= self._recent_ids
        self._repeated = self._repeated + 1 if is_repeated else 0
        self._cycles += not is_repeated and ids <= self._milestone_page
        if self._repeated > MAX_REPEATED_PAGES or self._cycles > MAX_CYCLES:
            raise service_error("AE-NO-PROGRESS", details=f"after {self._pages} pages")

    def _remember(self, ids: AbstractSet[str], newest: Instant) -> None:
        """Remember the ids since a page last had a newer event: repeated pages have none."""
        if newest > self._newest or len(self._recent_ids) > MAX_RECENT_IDS:
            self._recent_ids.clear()
        self._newest = max(self._newest, newest)
        self._recent_ids |= ids
