"""The threads that send requests: how many pay, and that none is waited for in vain."""

import itertools
import threading
import weakref
from collections.abc import Callable
from contextlib import closing

import pytest

from tap_audit_events.events.page import Envelope, Page, read_page
from tap_audit_events.events.window import AsksAhead, Window
from tap_audit_events.extraction.plan import Export
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.extraction.window_reader import Pages
from tap_audit_events.extraction.workers import Pays, Workers
from tap_audit_events.sandbox import Service
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.extraction.scheduling import Play, instant

PAGE_SECONDS = 0.004
"""What a page takes of the processor."""


def processor() -> Callable[[], float]:
    """A clock that goes on by a page each time it is read, but for the first."""
    readings = iter(range(10_000))
    return lambda: next(readings) * PAGE_SECONDS


@pytest.mark.parametrize(
    ("reply_seconds", "most"), [(0.001, 1), (0.004, 1), (0.0121, 3), (0.1001, 25), (1.001, 250)]
)
def test_as_many_pay_as_fit_into_a_reply(reply_seconds: float, most: int) -> None:
    """None but one where the service replies at once."""
    pays = Pays(processor())
    assert pays.most == 1
    for _ in range(40):
        pays.learn(reply_seconds)
    assert pays.most == most


def test_a_reply_that_is_quicker_or_slower_than_others_does_not_count() -> None:
    """As that of a short page, or one that had to be asked for again."""
    pays = Pays(processor())
    for number in range(40):
        pays.learn({0: 0.001, 1: 5.0}.get(number % 8, 0.1001))
    assert pays.most == 25


def test_it_follows_a_service_that_becomes_slower() -> None:
    """The last replies count."""
    pays = Pays(processor())
    for _ in range(40):
        pays.learn(0.001)
    for _ in range(16):
        pays.learn(0.1001)
    assert pays.most == 25


class Threaded(Play):
    """Notes which thread asks for each page."""

    def __post_init__(self) -> None:
        self.asked_by: list[threading.Thread] = []
        super().__post_init__()

    def _pages_of(self, asks_ahead: AsksAhead, window: Window) -> Pages:
        with closing(super()._pages_of(asks_ahead, window)) as pages:
            while True:
                self.asked_by.append(threading.current_thread())
                page = next(pages, None)
                if page is None:
                    return
                yield page


class Steered(Pays):
    """Finds one request at a time enough, or not, as the numbers of the pages have it."""

    def __init__(self, mosts: list[int]) -> None:
        super().__init__()
        self._mosts = itertools.cycle(mosts)

    def learn(self, reply_seconds: float) -> None:
        del reply_seconds
        self.most = next(self._mosts)


@pytest.mark.parametrize(
    "mosts", [[1], [4], [1, 4], [1, 1, 1, 4, 4, 4, 4], [4, 1, 1, 2, 8], [3, 1]]
)
@pytest.mark.parametrize("may_wait", [True, False])
def test_whoever_asks_each_page_comes_once_in_order(mosts: list[int], may_wait: bool) -> None:
    """The threads hand windows to each other whenever more or fewer requests pay."""
    play = Threaded([instant(60.0 * number) for number in range(5000)], concurrency=4)
    workers = Workers(play._export, Stop(), 4, may_wait=may_wait)
    workers._pays = Steered(mosts)
    for exported in workers.pages(lambda: None):
        play._take(exported)
    assert play.played.delivered == list(range(5000))
    here = threading.current_thread()
    assert (here in play.asked_by) == may_wait
    assert (set(play.asked_by) == {here}) == (may_wait and mosts == [1])


def test_a_page_is_gone_before_the_next_is_read(
    service: Service, settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the next one takes its place, in memory and in the processor's cache."""
    kept: list[int] = []
    pages: list[weakref.ref[Page]] = []

    def read(envelope: Envelope) -> Page:
        kept.append(sum(page() is not None for page in pages))
        page = read_page(envelope)
        pages.append(weakref.ref(page))
        return page

    monkeypatch.setattr("tap_audit_events.singer.stream.read_page", read)
    monkeypatch.setattr(Pays, "learn", lambda *_: None)
    service.add([an_event(id=f"{n}", at=f"2024-05-06T07:08:{n:02}Z") for n in range(50)])
    TapAuditEvents(config=settings | {"page_size": 10}).sync_all()
    assert kept == [0, 0, 0, 0, 0]


def test_a_defect_in_a_thread_ends_the_run(
    service: Service, settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The main thread would wait for ever for a page that nobody asks for."""

    def came(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(Export, "came", came)
    service.add([an_event(id="1", at="2024-05-06T07:08:09Z")])
    with pytest.raises(RuntimeError, match="a defect"):
        TapAuditEvents(config=settings).sync_all()
