"""Threads that send an export's requests, while one thread uses the pages in order."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from queue import Empty

from tap_audit_events.extraction.plan import Export
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.extraction.window_reader import Exported, Reading

IDLE_SECONDS = 1.0
"""How often the main thread looks around while it waits for a page."""


_REPLIES = 16
"""Replies that tell how long one takes: a quarter may be quicker, as where a page is short."""


class Workers:
    """As many threads as requests may be under way; each asks for one page after the other.

    While one request at a time pays, whoever takes the pages sends it, if it may wait for the
    service: a page that goes from one thread to another costs a fifth of the time that it takes.

    Args:
        export: knows what to ask for; only one thread at a time asks it.
        stop: ends the wait for a page.
        count: how many threads.
        may_wait: whether whoever takes the pages may wait for the service itself.
    """

    def __init__(self, export: Export, stop: Stop, count: int, *, may_wait: bool = False) -> None:
        self._export = export
        self._stop = stop
        self._count = count
        self._may_wait = may_wait
        self._pays = Pays()
        self._under_way = 0
        self._on_its_way: deque[Reading] = deque()
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
                reading = None
                with self._changed:
                    exported = self._export.next_page()
                    if exported is None and self._export.is_done:
                        return
                    if not self._is_alone:
                        self._changed.notify()  # there may be room for one more
                    elif exported is None:
                        reading = self._take()
                if exported is not None:
                    yield exported
                elif reading is not None:
                    self._read(reading)
                else:
                    self._wait(idle)
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def perform(self, reading: Reading) -> bool:
        """Ask for the next page of a window, and hand in what comes.

        Returns:
            Whether the same is to be done again: the page after it is on its way.
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

    @property
    def _is_alone(self) -> bool:
        """Whether whoever takes the pages asks for them too."""
        return self._may_wait and self._pays.most == 1

    def _wait(self, idle: Callable[[], object]) -> None:
        try:
            self._stop.news.get(timeout=IDLE_SECONDS)
        except Empty:
            idle()

    def _work(self) -> None:
        try:
            while (reading := self._next()) is not None:
                self._read(reading)
                self._stop.news.put(None)
        except BaseException as defect:  # noqa: BLE001 - the run would wait for ever
            self._defect = defect
            self._stop.news.put(None)

    def _read(self, reading: Reading) -> None:
        """Ask for one page; leave the one behind it, if it is on its way, to who is free for it."""
        began = time.monotonic()
        goes_on = self.perform(reading)
        with self._changed:
            self._pays.learn(time.monotonic() - began)
            if goes_on:
                self._on_its_way.append(reading)
            else:
                self._under_way -= 1
            if not self._is_alone:
                self._changed.notify()

    def _next(self) -> Reading | None:
        """What a thread is to ask for; waits for it. None where the run is over."""
        with self._changed:
            while not self._is_over:
                reading = None if self._is_alone else self._take()
                if reading is not None:
                    self._changed.notify()  # there may be something for one more
                    return reading
                self._changed.wait()
        return None

    def _take(self) -> Reading | None:
        """The next page to ask for, and that is waited for first, where one more request pays."""
        if self._on_its_way:
            return self._on_its_way.popleft()
        reading = self._export.next_request() if self._under_way < self._pays.most else None
        self._under_way += reading is not None
        return reading


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
