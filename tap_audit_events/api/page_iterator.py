"""The pages of a run, one after the other."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.errors.exceptions import AuditEventsError
from tap_audit_events.extraction.shutdown import Stop


class PageIterator(Iterator[EventPage]):
    """Iterates over the pages of one run; only one thread at a time may advance it.

    After an error it does not end, but raises the error again: otherwise a loop that tries again
    with the same iterator would seem to have read everything.
    """

    def __init__(self, pages: Generator[EventPage, None, None], stop: Stop) -> None:
        self._pages = pages
        self._stop = stop
        self._is_closed = False
        self._error: AuditEventsError | None = None
        self._process_id: int | None = None

    def __next__(self) -> EventPage:
        self._process_id = self._process_id or os.getpid()
        if self._process_id != os.getpid():  # whose threads are not in this fork of it
            raise RuntimeError("a fork cannot continue a run of its parent: call pages() in it")
        if self._error is not None and not self._is_closed:
            raise self._error
        try:
            page = next(self._pages)
        except AuditEventsError as error:
            self._error = error
            raise
        if self._is_closed:  # by another thread, meanwhile
            self._pages.close()
        return page

    def close(self) -> None:
        """End the run, its connections and its threads; any thread may call it.

        If another thread waits for a page, `StoppedError` is raised there. Afterwards the iteration
        is at its end.
        """
        self._is_closed = True
        try:
            self._pages.close()
        except ValueError:  # another thread is inside of it
            self._stop.request(signal.SIGTERM)
