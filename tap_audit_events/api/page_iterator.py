"""The pages of a run, one after the other."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from inspect import GEN_CLOSED, getgeneratorstate
from typing import TypeVar

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.extraction.shutdown import Stop

_Item = TypeVar("_Item")


class RunIterator(Iterator[_Item]):
    """Iterates over the items of a run; only one thread at a time may advance it.

    After an error or an interruption, each further step raises the same exception again. If the
    iteration ended instead, a loop that retries would seem to have read everything.
    """

    def __init__(self, items: Generator[_Item, None, None]) -> None:
        self._items = items
        self._is_closed = False
        self._error: BaseException | None = None

    def __next__(self) -> _Item:
        if self._error is not None and not self._is_closed:
            raise self._error
        try:
            return next(self._items)
        except StopIteration:
            raise
        except BaseException as error:
            if getgeneratorstate(self._items) == GEN_CLOSED:  # unless a thread is advancing it
                self._error = error
            raise


class PageIterator(RunIterator[EventPage]):
    """Iterates over the pages of one run. A fork of the process cannot continue it."""

    def __init__(self, pages: Generator[EventPage, None, None], stop: Stop) -> None:
        super().__init__(pages)
        self._stop = stop
        self._process_id: int | None = None

    def __next__(self) -> EventPage:
        self._process_id = self._process_id or os.getpid()
        if self._process_id != os.getpid():  # a fork does not have the threads of the run
            raise RuntimeError("a fork cannot continue its parent's run: call pages() in the fork")
        try:
            page = super().__next__()
        except ValueError:
            if self._is_closed:  # another thread is closing the generator
                raise StopIteration from None
            raise
        if self._is_closed:  # by another thread, meanwhile
            self._items.close()
        return page

    def close(self) -> None:
        """End the run, its connections and its threads; any thread may call it.

        If another thread waits for a page, `StoppedError` is raised there. Afterwards the iteration
        is at its end.
        """
        self._is_closed = True
        try:
            self._items.close()
        except ValueError:  # another thread is advancing it
            self._stop.request(signal.SIGTERM)
