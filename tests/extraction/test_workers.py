"""The threads that send requests: each page arrives once and in order, and every wait ends."""

import gc
import threading
import weakref
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import cycle

import pytest

from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction import workers as workers_module
from tap_audit_events.extraction.planning.concurrency import ConcurrencyEstimator
from tap_audit_events.extraction.planning.plan import Plan
from tap_audit_events.extraction.planning.window_reader import WindowPage, WindowRequest
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.extraction.workers import Workers
from tests.extraction.planning.fake_service import (
    PAGE_SIZE,
    WAIT_SECONDS,
    FakeService,
    Patient,
    ended,
)
from tests.extraction.planning.scheduling import EVER


class Steered(ConcurrencyEstimator):
    """Permits as many requests in flight as the test says; the number changes each time."""

    def __init__(self, mosts: list[int]) -> None:
        super().__init__()
        self._mosts = cycle(mosts)

    @property
    def most_in_flight(self) -> int:
        return next(self._mosts) if self._waits else 1


class APlan(Plan):
    """Cuts windows for all workers if more than one request gains time."""

    def __init__(self) -> None:
        super().__init__(EVER, page_size=PAGE_SIZE)

    def next_request(self, most_in_flight: int, *, has_room: bool = True) -> WindowRequest | None:
        return super().next_request(4 if most_in_flight > 1 else 0, has_room=has_room)


def workers_for(
    service: FakeService,
    plan: Plan | None = None,
    *,
    stop: Stop | None = None,
    most: int = 4,
    count: int = 4,
) -> Workers:
    """Workers that may have `most` requests in flight from the second response on."""
    workers = Workers(plan or APlan(), service.send, stop or Stop(), count)
    workers._estimator = Steered([most])
    return workers


def ids_of(pages: Iterator[WindowPage]) -> list[int]:
    return [
        int(event_id)
        for read in pages
        for event_id, moment in zip(read.page.ids, read.page.instants, strict=True)
        if read.window.holds(moment)
    ]


def distinct(ids: list[int]) -> list[int]:
    return list(dict.fromkeys(ids))


def pages_of(workers: Workers) -> Generator[WindowPage, None, None]:
    """The pages; it fails if none arrives for long."""
    waits = 0
    with closing(workers.pages()) as pages:
        for read in pages:
            if read is not None:
                yield read
                del read
                continue
            waits += 1
            assert waits < WAIT_SECONDS, "no page comes"


# Pages


@pytest.mark.parametrize("mosts", [[1], [4], [4, 1, 1, 2, 8]])
def test_each_page_is_delivered_once_and_in_order(mosts: list[int]) -> None:
    """Any thread may send a request, and the number of useful requests in flight may change."""
    service = FakeService(pages=200)
    workers = workers_for(service)
    workers._estimator = Steered(mosts)
    assert distinct(ids_of(pages_of(workers))) == list(range(2000))
    assert service.requests <= 1.25 * 200 + 4
    assert service.most_in_flight <= 4
    assert threading.current_thread() not in service.threads
    assert ended(service.threads)


def test_pages_that_are_not_waited_for_leave_few_wakeups() -> None:
    """Otherwise a run with a slow target would collect a wakeup for each page."""
    many = threading.Event()

    class Counting(FakeService):
        def respond(self, window: Window, cursor: str | None) -> Page:
            if self.requests >= 40:
                many.set()
            return super().respond(window, cursor)

    service, stop = Counting(pages=60), Stop()
    with closing(pages_of(workers_for(service, stop=stop, most=8))) as pages:
        next(pages)
        assert many.wait(WAIT_SECONDS)
        assert stop.wakeups.qsize() <= 4


@pytest.mark.parametrize(
    "count", [1, 4, *(pytest.param(count, marks=pytest.mark.long) for count in (2, 3))]
)
def test_requests_are_in_flight_together(count: int) -> None:
    """If that many gain time, there are as many requests in flight as workers."""
    service = Patient(pages=50, together=count)
    workers = workers_for(service, count=count)
    assert distinct(ids_of(pages_of(workers))) == list(range(500))
    assert service.most_in_flight == count
    assert len(service.threads) == count


def test_one_request_in_flight_needs_one_thread() -> None:
    """Against a near service a second thread would only cost time."""
    service = FakeService(pages=50)
    assert len(distinct(ids_of(pages_of(workers_for(service, most=1))))) == 500
    assert service.most_in_flight == 1
    assert len(service.threads) == 1


def test_a_page_is_released_before_the_next_is_taken() -> None:
    """The next page can then use its memory."""
    service = FakeService(pages=30)
    taken: list[weakref.ref[Page]] = []
    gc.collect()
    with closing(pages_of(workers_for(service))) as pages:
        for read in pages:
            assert [page() for page in taken] == [None] * len(taken)
            taken.append(weakref.ref(read.page))
            del read
    assert len(taken) >= 30


def test_the_caller_gets_control_while_no_page_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows progress and writes an old STATE, before the first page and during a long wait."""
    monkeypatch.setattr(workers_module, "IDLE_SECONDS", 0.001)
    waited = threading.Event()

    class Late(FakeService):
        def respond(self, window: Window, cursor: str | None) -> Page:
            assert waited.wait(WAIT_SECONDS)
            return super().respond(window, cursor)

    pages = workers_for(Late(pages=1)).pages()
    assert [next(pages), next(pages)] == [None, None]
    waited.set()
    assert len(ids_of(filter(None, pages))) == 10
