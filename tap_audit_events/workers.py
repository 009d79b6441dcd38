"""Threads that send an export's requests, while the main thread uses the pages in order."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from queue import Empty

from tap_audit_events.export import Export
from tap_audit_events.reading import Exported, Reading
from tap_audit_events.stopping import Stop

IDLE_SECONDS = 1.0
"""How often the main thread looks around while it waits for a page."""


_REPLIES = 16
"""Replies that tell how long one takes: a quarter may be quicker, as where a page is short."""


class Workers:
    """As many threads as requests may be under way; each asks for one page after the other.

    Args:
        export: knows what to ask for; only one thread at a time asks it.
        stop: ends the wait of the main thread.
        count: how many threads.
    """

    def __init__(self, export: Export, stop: Stop, count: int) -> None:
        self._export = export
        self._stop = stop
        self._count = count
        self._pays = Pays()
        self._under_way = 0
        self._changed = threading.Condition()
        self._is_over = False
        self._defect: BaseException | None = None

    def pages(self, idle: Callable[[], object]) -> Iterator[Exported]:
        """Each page in order, as soon as it has come.

        Where a signal asks to stop, the threads are left to themselves; they end with the process.

        Args:
            idle: called now and then while a page is waited for.

        Raises:
            StoppedError: a signal asked to stop.
            Exception: what came instead of the next page.
        """
        for _ in range(self._count):
            threading.Thread(target=self._work, daemon=True).start()
        try:
            while True:
                self._stop.check()
                if self._defect is not None:
                    raise self._defect
                with self._changed:
                    exported = self._export.next_page()
                    self._changed.notify()  # there may be room for one more
                if exported is not None:
                    yield exported
                elif self._export.is_done:
                    return
                else:
                    self._wait(idle)
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def perform(self, reading: Reading) -> bool:
        """Ask for the next page of a window, and hand in what comes.

        Returns:
            Whether the same is to be done again at once: the page after it is on its way.
        """
        pages = reading.pages
        try:
            exported = next(pages)
        except Exception as error:  # noqa: BLE001 - raised again when its turn has come
            with self._changed:
                self._export.failed(reading, error)
            return False
        with self._changed:
            goes_on = self._export.came(reading, exported)
        if exported.page.is_next_asked and not goes_on:
            pages.close()  # nobody will take that answer
        return goes_on

    def _wait(self, idle: Callable[[], object]) -> None:
        try:
            self._stop.news.get(timeout=IDLE_SECONDS)
        except Empty:
            idle()

    def _work(self) -> None:
        try:
            while (reading := self._next()) is not None:
                goes_on = True
                while goes_on and not self._is_over:
                    began = time.monotonic()
                    goes_on = self.perform(reading)
                    with self._changed:
                        self._under_way -= not goes_on
                        self._pays.learn(time.monotonic() - began)
                    self._stop.news.put(None)
        except BaseException as defect:  # noqa: BLE001 - the main thread would wait for ever
            self._defect = defect
            self._stop.news.put(None)

    def _next(self) -> Reading | None:
        """What to ask for; waits for it. None where the run is over."""
        with self._changed:
            while not self._is_over:
                pays = self._under_way < self._pays.most
                reading = self._export.next_request() if pays else None
                if reading is not None:
                    self._under_way += 1
                    self._changed.notify()  # there may be something for one more
                    return reading
                self._changed.wait()
        return None


class Pays:
    """How many requests at a time are of use.

    While one waits for its reply, others can be worked on: as many as the processor can serve in
    that time. With a service that replies at once more would only be in each other's way. The
    first is sent alone.

    Args:
        processor_seconds: what the process has used of the processor so far.

    Attributes:
        most: requests under way at most.
    """

    def __init__(self, processor_seconds: Callable[[], float] = time.process_time) -> None:
        self.most = 1
        self._processor_seconds = processor_seconds
        self._reply_seconds: deque[float] = deque(maxlen=_REPLIES)
        self._pages = 0
        self._processor_seconds_before = processor_seconds()

    def learn(self, reply_seconds: float) -> None:
        """Take in how long a page took, from the request to what was read of it."""
        self._pages += 1
        self._reply_seconds.append(reply_seconds)
        quick = sorted(self._reply_seconds)[len(self._reply_seconds) // 4]
        used = self._processor_seconds() - self._processor_seconds_before
        if used:
            per_page = used / self._pages
            self.most = max(1, int(quick / per_page))
