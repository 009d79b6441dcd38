"""Threads that send the requests of a plan, while the main thread takes the pages in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from tap_audit_events.events.page import Page
from tap_audit_events.extraction.concurrency import ConcurrencyEstimator
from tap_audit_events.extraction.shutdown import Stop

Fetch: TypeAlias = Callable[[Any], Page]
"""Sends a request of the plan; it is called from several threads."""

_Request = TypeVar("_Request")
_Read_co = TypeVar("_Read_co", covariant=True)


class Requests(Protocol[_Request, _Read_co]):
    """What to request next, and what comes next: a `Plan`, or those of several organizations."""

    @property
    def is_done(self) -> bool: ...
    def next_request(self, most_in_flight: int) -> _Request | None: ...
    def accept(self, request: _Request, page: Page) -> None: ...
    def fail(self, request: _Request, error: Exception) -> None: ...
    def next_page(self) -> _Read_co | None: ...


IDLE_SECONDS = 1.0
"""How often the main thread looks after other things while it waits for a page."""

_Inbox: TypeAlias = "SimpleQueue[_Request | None]"


class Workers(Generic[_Request, _Read_co]):
    """Sends the requests of a plan in daemon threads, each of which sends one at a time.

    A request goes to the thread that became idle last, whose memory is still in the processor's
    cache: to the one that has just received a page, if a request is due.

    Args:
        plan: knows what to request; only one thread at a time uses it.
        fetch: requests a page.
        stop: ends the main thread's wait for a page.
        count: threads at most.
        clock: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        plan: Requests[_Request, _Read_co],
        fetch: Fetch,
        stop: Stop,
        count: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._fetch = fetch
        self._stop = stop
        self._count = count
        self._clock = clock
        self._estimator = ConcurrencyEstimator()
        self._lock = threading.Lock()
        self._started = 0
        self._idle: list[_Inbox[_Request]] = []
        self._is_over = False
        self._defect: BaseException | None = None

    def pages(self, idle: Callable[[], object]) -> Generator[_Read_co, None, None]:
        """Each page in order, as soon as it has come.

        After a signal nobody waits for the threads; they end when their connections are closed.

        Args:
            idle: called now and then while a page is waited for.

        Raises:
            StoppedError: a signal asked the run to stop.
            Exception: what came instead of the next page.
        """
        try:
            while True:
                self._stop.check()
                with self._lock:
                    page = self._plan.next_page()
                    is_done = page is None and self._plan.is_done
                    self._assign()
                if self._defect is not None:
                    raise self._defect
                if is_done:
                    return
                if page is None:
                    self._wait(idle)
                else:
                    started_at = self._clock()
                    yield page
                    del page  # so that the next page can take its place in memory
                    self._estimator.delivered(self._clock() - started_at)
        finally:
            self._end()

    def _wait(self, idle: Callable[[], object]) -> None:
        try:
            self._stop.wakeups.get(timeout=IDLE_SECONDS)
        except Empty:
            idle()

    def _assign(self) -> None:
        """Hand requests that are due to idle threads, or to new ones."""
        while self._idle or self._started < self._count:
            request = self._next_request()
            if request is None:
                return
            if self._idle:
                self._idle.pop().put(request)
            else:
                self._started += 1
                threading.Thread(target=self._work, args=(request,), daemon=True).start()

    def _next_request(self) -> _Request | None:
        if self._is_over:
            return None
        return self._plan.next_request(self._estimator.most_in_flight)

    def _work(self, request: _Request | None) -> None:
        inbox: _Inbox[_Request] = SimpleQueue()
        try:
            while request is not None:
                self.perform(request, inbox)
                request = inbox.get()
        except BaseException as defect:  # noqa: BLE001 - the main thread would wait for ever
            self._defect = defect
            self._stop.wakeups.put(None)

    def perform(self, request: _Request, inbox: _Inbox[_Request]) -> None:
        """Send a request and hand in what comes; the thread is idle then."""
        started_at, processor = self._clock(), time.thread_time()
        outcome: Page | Exception
        try:
            outcome = self._fetch(request)
        except Exception as error:  # noqa: BLE001 - the plan raises it when it is its turn
            outcome = error
        seconds = self._clock() - started_at
        with self._lock:
            self._estimator.received(seconds, time.thread_time() - processor)
            if isinstance(outcome, Exception):
                self._plan.fail(request, outcome)
            else:
                self._plan.accept(request, outcome)
            if self._is_over:
                inbox.put(None)
            else:
                self._idle.append(inbox)
            self._assign()
        self._stop.wakeups.put(None)

    def _end(self) -> None:
        """End the threads that are idle; the others end after their response or their error."""
        with self._lock:
            self._is_over = True
            for inbox in self._idle:
                inbox.put(None)
