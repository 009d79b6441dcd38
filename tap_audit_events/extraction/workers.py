"""Threads that send the requests of a plan, while the main thread takes the pages in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeAlias

from tap_audit_events.errors.exceptions import AuditEventsError
from tap_audit_events.extraction.planning.concurrency import ConcurrencyEstimator
from tap_audit_events.extraction.shutdown import Stop

Fetch: TypeAlias = Callable[[Any], Any]
"""Sends a request of the plan; it is called from several threads."""

IDLE_SECONDS = 1.0
"""While there is no page to take, `Workers.pages` yields None each time that this time passes."""


class RequestPlan(Protocol):
    """What the workers need of a plan: the interface of `Plan` and of `OrganizationsPlan`."""

    @property
    def is_done(self) -> bool: ...
    def next_request(self, most_in_flight: int) -> Any: ...
    def accept(self, request: Any, page: Any) -> None: ...
    def fail(self, request: Any, error: Exception) -> None: ...
    def next_page(self) -> Any: ...


class Workers:
    """Sends the requests of a plan in at most `count` daemon threads, one at a time in each.

    If the system allows no further thread, those that have started send all requests. Only one
    thread at a time uses the plan. `stop` ends the main thread's wait for a page.
    """

    def __init__(
        self,
        plan: RequestPlan,
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
        self._lock = threading.RLock()  # the garbage collector may end an abandoned run in it
        self._started = self._busy = 0
        self._requests: SimpleQueue[Any] = SimpleQueue()
        self._idle_at = clock() + IDLE_SECONDS
        self._is_over = False
        self._defect: BaseException | None = None

    def pages(self) -> Generator[Any, None, None]:
        """Yield each page in order, as soon as it has arrived; None while none arrives.

        The first None comes at once, and then one each time that `IDLE_SECONDS` pass. A run does
        not wait for its threads; after a signal, closing their connections ends them.

        Raises:
            StoppedError: a signal asked the run to stop.
            AuditEventsError: the system does not allow even one thread.
            Exception: the error of the request for the next page.
        """
        is_first_wait = True
        try:
            while True:
                self._stop.check()
                with self._lock:
                    page = self._plan.next_page()
                    is_done = self._plan.is_done
                    self._assign()
                if self._defect is not None:
                    raise self._defect
                if page is not None:
                    started_at = self._clock()
                    yield page
                    del page  # so that the next page can take its place in memory
                    taken_at = self._clock()
                    self._estimator.delivered(taken_at - started_at)
                    self._idle_at = taken_at + IDLE_SECONDS
                elif is_done:
                    return
                elif is_first_wait or self._wait():
                    is_first_wait = False
                    yield None
        finally:
            self._end()

    def _wait(self) -> bool:
        """Wait for a page, and return whether `IDLE_SECONDS` have passed without one."""
        with suppress(Empty):
            self._stop.wakeups.get(timeout=max(0.0, self._idle_at - self._clock()))
        if self._clock() < self._idle_at:
            return False
        self._estimator.waited(IDLE_SECONDS)
        self._idle_at = self._clock() + IDLE_SECONDS
        return True

    def _assign(self) -> None:
        """Hand requests that are due to idle threads, or to new ones."""
        while not self._is_over and self._busy < self._count:
            request = self._plan.next_request(self._estimator.most_in_flight)
            if request is None:
                return
            self._busy += 1
            if self._busy > self._started:
                self._start_thread()
            self._requests.put(request)

    def _start_thread(self) -> None:
        """Start another thread; if the system refuses it, no further one is started in this run."""
        try:
            threading.Thread(target=self._work, daemon=True).start()
        except RuntimeError as error:
            if not self._started:
                raise AuditEventsError("AE-THREADS") from error
            self._count = self._started
        else:
            self._started += 1

    def _work(self) -> None:
        try:
            while (request := self._requests.get()) is not None:
                self._perform(request)
        except BaseException as defect:  # noqa: BLE001 - else the main thread would wait for ever
            self._defect = defect
            self._stop.wakeups.put(None)

    def _perform(self, request: Any) -> None:
        started_at, processor = self._clock(), time.thread_time()
        try:
            outcome = self._fetch(request)
        except Exception as error:  # noqa: BLE001 - the plan raises it after earlier pages
            outcome = error
        seconds = self._clock() - started_at
        with self._lock:
            self._estimator.received(seconds, time.thread_time() - processor)
            if isinstance(outcome, Exception):
                self._plan.fail(request, outcome)
            else:
                self._plan.accept(request, outcome)
            self._busy -= 1
            self._assign()
        if self._stop.wakeups.empty():  # else the main thread wakes up anyway
            self._stop.wakeups.put(None)

    def _end(self) -> None:
        """End the threads that are idle; the others end after their response or their error."""
        with self._lock:
            self._is_over = True
        for _ in range(self._started):
            self._requests.put(None)
