"""Status 204 (no content), which some services send instead of an empty page.

The interface does not know it. A gateway may send it too, in place of events that exist. So it
counts as an empty page only if nothing can be lost by that.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from tap_audit_events.errors.exceptions import ServiceError, service_error
from tap_audit_events.events.instants import EARLIEST, LATEST, NEVER, Instant
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window


def rest_of_range(window: Window) -> Window:
    """The window up to the end of the run's range: a page of it confirms that the window is empty.

    So does another status 204, but then nothing may follow: see `NothingFollows`.
    """
    return replace(window, until=None)


def is_empty(window: Window, rest: Page) -> bool:
    """Whether a page of `rest_of_range` shows that the window is empty."""
    if rest.malformed is not None or window.until is None:
        return False
    return rest.oldest >= window.until if rest.ids else rest.next_cursor is None


class NothingFollows:
    """Remembers from when on there should be no events; safe to use from several threads.

    If an event is there after all, status 204 was not true: as long as it is not delivered, the
    bookmark stays before the missing events, and the next run requests them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._start = LATEST
        self._newest = NEVER

    def after(self, start: Instant | None) -> None:
        """Record that there are no events from `start` on; `RetryableError` if there was one."""
        with self._lock:
            if self._newest >= (start or EARLIEST):
                raise untrue()
            self._start = min(self._start, start or EARLIEST)

    def check(self, page: Page) -> None:
        """Raise `RetryableError` if a page has an event where there should be none."""
        if not page.ids:
            return
        with self._lock:
            if page.newest >= self._start:
                raise untrue()
            self._newest = max(self._newest, page.newest)


def untrue() -> ServiceError:
    """The error for a status 204 in place of events."""
    return service_error("AE-GATEWAY", details="status 204, although there are events")
