"""A thread that writes pages while the next ones are read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Queue
from types import TracebackType
from typing import Final, Self

from tap_audit_events.api.event_page import EventPage

MOST_WAITING: Final = 2
"""Pages; one may have as many bytes as `max_response_megabytes`."""


class WriterThread:
    """Writes pages in order in a thread of its own. Leaving its ``with`` block ends the thread.

    Args:
        write: writes a page.
    """

    def __init__(self, write: Callable[[EventPage], None]) -> None:
        self._write = write
        self._waiting: Queue[EventPage | None] = Queue(MOST_WAITING)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)

    def put(self, page: EventPage) -> None:
        """Hand a page over; waits while too many wait.

        Raises:
            Exception: what the writing of an earlier page raised.
        """
        self._check()
        self._waiting.put(page)

    def finish(self) -> None:
        """Wait until every page is written.

        Raises:
            Exception: what the writing of a page raised.
        """
        self._end()
        self._check()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        while (page := self._waiting.get()) is not None:
            if self._error is None:
                try:
                    self._write(page)
                except BaseException as error:  # noqa: BLE001 - the main thread raises it
                    self._error = error
            del page  # so that the next page can take its place in memory
