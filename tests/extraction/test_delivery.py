"""Pages in, records out: complete and once, for any pages, runs and repeats by the service."""

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import CursorRefusedError
from tap_audit_events.events.instants import EARLIEST, LATEST, Instant, text_of
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window, run_window
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.id_groups import Group, digests_of
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.extraction.window_reader import Pages, read_window
from tap_audit_events.singer.state import from_bookmark, to_bookmark
from tests.builders import ORGANIZATION_ID
from tests.extraction.test_watermark import at

EVERYTHING = Window(None, at(10**6))


def a_page(events: Sequence[tuple[str, Instant]]) -> Page:
    texts = [f'{{"id":"{i}","occurredAt":"{text_of(instant)}"}}'.encode() for i, instant in events]
    return Page([e[0] for e in events], [e[1] for e in events], list(map(msgspec.Raw, texts)))


def delivered(
    delivery: Delivery, page: Page, window: Window = EVERYTHING, *, in_order: bool = True
) -> list[str]:
    delivery.begin(page, window, in_order=in_order)
    ids = [record["id"] for record in delivery.records()]
    delivery.take_in()
    return ids


events_of_time = st.lists(st.integers(0, 400), max_size=50).map(
    lambda times: [(f"id-{number:02}", at(time)) for number, time in enumerate(sorted(times))]
)


@given(
    events_of_time,
    st.lists(st.integers(0, 450), min_size=1, max_size=6),
    st.integers(1, 7),
    st.integers(0, 30),
    st.data(),
)
def test_any_runs_over_any_pages_deliver_every_event_once(
    events: list[tuple[str, Instant]],
    run_times: list[int],
    page_size: int,
    lookback: int,
    data: st.DataObject,
) -> None:
    """Runs at any times, pages of any size, repeated pages, state through JSON: complete, once."""
    bookmark: dict[str, Any] = {}
    seen: list[str] = []
    for now in [*sorted(run_times), 460]:
        watermark = from_bookmark(
            bookmark, organization_id=ORGANIZATION_ID, lookback_seconds=lookback
        )
        window = run_window(
            start_date=None,
            end_date=None,
            bookmark=watermark.bookmark,
            lookback_seconds=lookback,
            now=at(now),
            ids_from=watermark.ids_from,
        )
        if window is None:
            continue
        delivery = Delivery(watermark)
        shown = [event for event in events if event[1] <= at(now)]
        asked = [event for event in shown if (window.start or EARLIEST) <= event[1]]
        pages = [asked[n : n + page_size] for n in range(0, len(asked), page_size)]
        for page in pages:
            for _ in range(data.draw(st.integers(1, 2))):
                seen += delivered(delivery, a_page(page), window)
        delivery.watermark.settle(LATEST)
        bookmark = to_bookmark(delivery.watermark, organization_id=ORGANIZATION_ID, action_types=[])
    assert sorted(seen) == [event_id for event_id, _ in events]


@given(events_of_time, st.integers(0, 50))
def test_only_what_is_written_counts_as_delivered(
    events: list[tuple[str, Instant]], written: int
) -> None:
    """A run that ends within a page knows the records before the one in hand, and no more."""
    delivery = Delivery(Watermark(lookback_seconds=100))
    delivery.begin(a_page(events), EVERYTHING, in_order=True)
    records = delivery.records()
    for _ in zip(range(written), records, strict=False):
        pass  # the record in hand last is not written yet
    delivery.take_in()
    count = min(written, len(events))
    whole = count if written > len(events) else max(0, count - 1)
    held = b"".join(group.digests for group in delivery.watermark.groups)
    assert held == digests_of(event_id for event_id, _ in events[:whole])
    delivery.take_in()
    assert delivery.delivered == whole


def test_a_bookmark_stays_while_pages_are_out_of_order() -> None:
    """It moves when the range is complete; until then the ids beyond it are held."""
    delivery = Delivery(Watermark(at(100), [], lookback_seconds=0))
    delivered(delivery, a_page([("a", at(110))]))
    delivered(delivery, a_page([("c", at(300)), ("b", at(200))]), in_order=False)
    delivered(delivery, a_page([("d", at(400))]))
    assert delivery.watermark.bookmark == at(110)
    kept = to_bookmark(delivery.watermark, organization_id=ORGANIZATION_ID, action_types=[])
    again = from_bookmark(kept, organization_id=ORGANIZATION_ID, lookback_seconds=0)
    assert again.bookmark == at(110)
    instants = [at(110), at(200), at(300), at(400), at(350)]
    assert again.fresh(["a", "b", "c", "d", "e"], instants) == [4]
    again.deliver(["e"], [at(350)])
    assert again.fresh(["a", "b", "c", "d", "e"], instants) == []
    delivery.watermark.settle(LATEST)
    assert delivery.watermark.bookmark == at(400)


def test_late_events_are_counted_with_the_latest() -> None:
    """Late is what lies before the bookmark that the run began with."""
    delivery = Delivery(Watermark(at(100), [], lookback_seconds=60))
    delivered(delivery, a_page([("a", at(25)), ("b", at(99)), ("c", at(100)), ("d", at(120))]))
    assert (delivery.delivered, delivery.late, delivery.latest_seconds) == (4, 2, 7.5)


def test_what_lies_outside_of_the_window_is_left_out_and_counted() -> None:
    """A service that ignores a bound changes nothing."""
    delivery = Delivery(Watermark())
    page = a_page([("a", at(5)), ("b", at(10)), ("c", at(20)), ("d", at(21))])
    assert delivered(delivery, page, Window(at(10), at(20))) == ["b", "c"]
    assert (delivery.outside, delivery.repeats) == (2, 0)


def steps(work: Callable[[], object]) -> int:
    """How many instructions of Python code are run."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_a_page_that_repeats_nothing_costs_no_step_for_each_event() -> None:
    """The watermark works at the speed of C: a page of 1,000 takes as many steps as one of 10."""

    def page_of(size: int) -> Callable[[], object]:
        ids = [f"new-{number}" for number in range(size)]
        instants = [at(1000 + number // 100) for number in range(size)]
        page = Page(ids, instants, [b""] * size)
        old = Group(at(999), digests_of(["old"]))
        delivery = Delivery(Watermark(at(999), [old], lookback_seconds=60))
        window = Window(at(0), at(10**6))

        def work() -> None:
            assert page.is_ascending
            delivery.begin(page, window, in_order=True)
            delivery.all_written()
            delivery.take_in()
            assert delivery.delivered == size

        return work

    steps(page_of(1))  # newer Pythons count a function's instructions from its second call on
    few = steps(page_of(10))
    assert few > 0
    assert steps(page_of(1000)) == few


# Windows that are started again


class Refusing:
    """A service of one window that refuses the cursor after so many pages."""

    def __init__(self, events: list[tuple[str, Instant]], page_size: int, lifetime: int) -> None:
        self.events, self.page_size, self.lifetime = events, page_size, lifetime
        self.asked: list[Window] = []

    def pages(self, window: Window) -> Pages:
        self.asked.append(window)
        start = window.start or EARLIEST
        found = [event for event in self.events if start[:19] <= event[1] <= window.end]
        for number, first in enumerate(range(0, len(found) or 1, self.page_size)):
            if number == self.lifetime:
                raise CursorRefusedError("AE-CURSOR-REFUSED")
            yield a_page(found[first : first + self.page_size])


@given(events_of_time, st.integers(1, 9), st.integers(1, 4))
def test_a_refused_cursor_loses_nothing_or_fails_and_says_so(
    events: list[tuple[str, Instant]], page_size: int, lifetime: int
) -> None:
    """Every event before the error arrives; restarts go on as long as they bring something new."""
    service = Refusing(events, page_size, lifetime)
    delivery = Delivery(Watermark(lookback_seconds=1))
    seen: list[str] = []
    restarts: list[Window] = []
    refused = None
    try:
        for window, page, in_order in read_window(EVERYTHING, service.pages, restarts.append):
            seen += delivered(delivery, page, window, in_order=in_order)
    except CursorRefusedError as error:
        refused = error
    assert seen == [event_id for event_id, _ in events[: len(seen)]]
    if refused is None:
        assert len(seen) == len(events)
    else:
        newest = dict(events)[seen[-1]]
        assert refused.window == str(Window(newest, EVERYTHING.end))
        same_second = sum(instant[:19] == newest[:19] for _, instant in events)
        assert same_second >= page_size * lifetime, "a restart would have brought more"
    assert delivery.in_order
    assert restarts == service.asked[1:]
    assert len(service.asked) <= len(events) + 2


def test_a_restart_that_reaches_more_ties_goes_on() -> None:
    """More events of one instant than the attempt before reached is something new."""
    events = [(f"tie-{n}", at(5)) for n in range(10)]
    lifetimes = iter([1, 2, 4, 99])
    service = Refusing(events, page_size=2, lifetime=0)

    def pages(window: Window) -> Pages:
        service.lifetime = next(lifetimes)
        return service.pages(window)

    delivery = Delivery(Watermark(lookback_seconds=1))
    seen: list[str] = []
    for window, page, in_order in read_window(EVERYTHING, pages, lambda _: None):
        seen += delivered(delivery, page, window, in_order=in_order)
    assert seen == [event_id for event_id, _ in events]


def test_a_page_is_not_kept_once_it_was_handed_out() -> None:
    """It is large, and may wait for long until the next is wanted."""
    pages = read_window(EVERYTHING, lambda _: (a_page([]) for _ in range(2)), lambda _: None)
    page = next(pages).page
    holders = sys.getrefcount(page)
    assert holders == 2  # the name above, and the argument
    assert len(list(pages)) == 1


def test_a_cursor_refused_before_the_first_event_is_an_error() -> None:
    """There is nothing to start again from."""

    def pages(window: Window) -> Pages:
        del window
        yield a_page([])
        raise CursorRefusedError("AE-CURSOR-REFUSED")

    with pytest.raises(CursorRefusedError):
        list(read_window(EVERYTHING, pages, lambda _: None))


@given(st.lists(st.lists(st.integers(0, 30), max_size=5), max_size=5))
def test_order_is_judged_over_all_pages_of_a_window(pages: list[list[int]]) -> None:
    """From the first event that is older than one before it, pages are out of order."""
    made = [a_page([(f"{n}-{k}", at(t)) for k, t in enumerate(p)]) for n, p in enumerate(pages)]
    exported = list(read_window(EVERYTHING, lambda _: (page for page in made), lambda _: None))
    times: list[int] = []
    for (_, _, in_order), page in zip(exported, pages, strict=True):
        newest = max(times, default=0)
        assert in_order == (page == sorted(page) and min(page, default=newest) >= newest)
        times += page
