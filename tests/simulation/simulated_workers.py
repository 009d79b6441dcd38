"""The workers of a simulated run, in the main thread or in threads, and its rate limiter."""

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from math import isinf
from typing import Any

from tap_audit_events.extraction.planning.concurrency import ConcurrencyEstimator
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.extraction.workers import Fetch, RequestPlan, Workers
from tap_audit_events.service.rate_limiter import RateLimiter, RequestCounts
from tests.simulation.world import World

PATIENCE_SECONDS = 5
"""Threads that do nothing for so long are taken to hang."""


class InlineWorkers(Workers):
    """Sends requests in the main thread; the world draws which response arrives when."""

    def __init__(
        self, plan: RequestPlan, fetch: Fetch, stop: Stop, count: int, world: World
    ) -> None:
        super().__init__(plan, fetch, stop, count)
        self._random = world.random
        self._most_in_flight = world.history.most_in_flight
        self._in_flight: list[Any] = []

    def pages(self) -> Generator[Any, None, None]:
        while True:
            self._stop.check()
            yield None
            while self._random.random() < 0.3 and self._receive():
                self._stop.check()
            page = self._plan.next_page()
            if page is not None:
                yield page
            elif self._plan.is_done:
                return
            else:
                assert self._receive(), "nothing is requested, and nothing comes"

    def _receive(self) -> bool:
        """Start some requests, and receive the response of one; return whether there was one."""
        while not self._in_flight or self._random.random() < 0.7:
            request = self._plan.next_request(self._most_in_flight)
            if request is None:
                break
            self._in_flight.append(request)
        assert len(self._in_flight) <= self._count, "more requests in flight than concurrency"
        if not self._in_flight:
            return False
        request = self._in_flight.pop(self._random.randrange(len(self._in_flight)))
        try:
            page = self._fetch(request)
        except Exception as error:  # noqa: BLE001 - as in a worker
            self._plan.fail(request, error)
        else:
            self._plan.accept(request, page)
        return True


class FixedEstimator(ConcurrencyEstimator):
    """Permits as many requests as the history says, as simulated responses take no time."""

    def __init__(self, most_in_flight: int) -> None:
        super().__init__()
        self._fixed = most_in_flight

    @property
    def most_in_flight(self) -> int:
        return self._fixed if self._waits else 1


class ThreadedWorkers(Workers):
    """The real workers, except that a main thread that would wait for ever fails."""

    def __init__(
        self, plan: RequestPlan, fetch: Fetch, stop: Stop, count: int, world: World
    ) -> None:
        super().__init__(plan, fetch, stop, count)
        self._estimator = FixedEstimator(world.history.most_in_flight)
        self._idle_seconds = 0

    def _wait(self) -> bool:
        is_idle = super()._wait()
        self._idle_seconds += is_idle
        assert self._idle_seconds < PATIENCE_SECONDS, "the threads hang"
        return is_idle


class SimulatedRateLimiter(RateLimiter):
    """Lets simulated time go by instead of waiting.

    Attributes:
        waited_seconds: the sum of its waits.
    """

    def __init__(self, run: RequestCounts, world: World) -> None:
        super().__init__(run, lambda: world.seconds)
        self._world = world
        self.waited_seconds = 0.0

    def _wait(self, seconds: float) -> None:
        if isinf(seconds):
            super()._wait(seconds)
            return
        until = self._world.seconds + seconds
        self.waited_seconds += seconds
        if self._world.history.uses_threads:
            super()._wait(0.002)  # other threads may send meanwhile, if nothing forbids it
        self._world.reach(until)


@contextmanager
def threads_joined() -> Iterator[None]:
    """Wait at the end for the threads that were started meanwhile."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "a thread outlives its run"
