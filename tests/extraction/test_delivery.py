"""Each event of the pages is delivered once, for any pages, runs and repeats by the service."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.instants import EARLIEST, LATEST, Instant, text_of
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window, run_window
from tap_audit_events.extraction.coverage import Coverage
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.planning.window_reader import WindowPage
from tap_audit_events.extraction.watermark import Watermark
from tests.extraction.watermarks import at, bookmark_of, read_bookmark

EVERYTHING = Window(None, at(10**6))


def a_page(events: Sequence[tuple[str, Instant]]) -> Page:
    texts = [f'{{"id":"{i}","occurredAt":"{text_of(instant)}"}}'.encode() for i, instant in events]
    return Page([e[0] for e in events], [e[1] for e in events], list(map(msgspec.Raw, texts)))


def delivered(
    delivery: Delivery,
    page: Page,
    window: Window = EVERYTHING,
    *,
    in_order: bool = True,
    completes_window: bool = False,
) -> list[str]:
    read = WindowPage(window, page, in_order, completes_window)
    chosen = delivery.choose(read)
    delivery.commit(read, chosen, len(chosen))
    return [page.ids[position] for position in chosen]


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
    """Runs start at any time, pages of any size may repeat, and the state goes through JSON."""
    bookmark: dict[str, Any] = {}
    seen: list[str] = []
    for now in [*sorted(run_times), 460]:
        watermark = read_bookmark(bookmark, lookback_seconds=lookback)
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
        bookmark = bookmark_of(delivery.watermark)
    assert sorted(seen) == [event_id for event_id, _ in events]


def test_a_bookmark_stays_while_pages_are_out_of_order() -> None:
    """The bookmark moves when the window is complete; until then the ids after it are held."""
    delivery = Delivery(Watermark(at(100), [], lookback_seconds=0))
    delivered(delivery, a_page([("a", at(110))]))
    delivered(delivery, a_page([("c", at(300)), ("b", at(200))]), in_order=False)
    delivered(delivery, a_page([("d", at(400))]), in_order=False)
    assert delivery.watermark.bookmark == at(110)
    kept = bookmark_of(delivery.watermark)
    again = read_bookmark(kept, lookback_seconds=0)
    assert again.bookmark == at(110)
    instants = [at(110), at(200), at(300), at(400), at(350)]
    assert again.fresh(["a", "b", "c", "d", "e"], instants) == [4]
    again.deliver(["e"], [at(350)])
    assert again.fresh(["a", "b", "c", "d", "e"], instants) == []
    delivered(delivery, a_page([]), in_order=False, completes_window=True)
    assert delivery.watermark.bookmark == at(400)
    assert not delivery.was_in_order


def test_a_complete_window_moves_the_bookmark_once_its_last_page_was_written() -> None:
    """The bookmark does not move beyond the window, even if later events were delivered."""
    watermark = Watermark(lookback_seconds=60)
    watermark.deliver(["later"], [at(700)], moves_bookmark=False)
    delivery = Delivery(watermark)
    window = Window(None, at(1000), until=at(500))
    delivered(delivery, a_page([("a", at(110))]), window)
    page = a_page([("c", at(300)), ("b", at(200))])
    read = WindowPage(window, page, in_order=False, completes_window=True)
    delivery.commit(read, delivery.choose(read), 1)
    assert delivery.delivered == 2
    assert watermark.bookmark == at(110)
    assert delivered(delivery, page, window, in_order=False, completes_window=True) == ["b"]
    assert watermark.bookmark == at(300)
    delivered(delivery, a_page([("d", at(600))]), Window(at(500), at(1000)))
    assert watermark.bookmark == at(600)


def test_late_events_are_counted_and_the_greatest_delay_is_kept() -> None:
    """An event is late if it is older than the bookmark with which the run began."""
    delivery = Delivery(Watermark(at(100), [], lookback_seconds=60))
    delivered(delivery, a_page([("a", at(25)), ("b", at(99)), ("c", at(100)), ("d", at(120))]))
    assert (delivery.delivered, delivery.late, delivery.latest_seconds) == (4, 2, 7.5)


@pytest.mark.parametrize(("written", "bookmark"), [(0, None), (1, at(2)), (2, at(4))])
def test_excluded_events_move_the_bookmark_if_the_others_are_written(
    written: int, bookmark: Instant | None
) -> None:
    """The bookmark would otherwise pass events that are not written."""
    types = {at(1): "noise", at(2): "x", at(3): "x", at(4): "noise"}
    page = a_page([(instant, instant) for instant in types])
    texts = [f'{{"action":{{"type":"{each}"}}}}'.encode() for each in types.values()]
    read = WindowPage(EVERYTHING, replace(page, texts=texts), True, True)
    delivery = Delivery(Watermark(), {"noise"})
    chosen = delivery.choose(read)
    delivery.commit(read, chosen, written)
    assert list(chosen) == [1, 2]
    assert delivery.watermark.bookmark == bookmark


def test_written_events_are_added_to_the_coverage() -> None:
    """If some events of a page were delivered before, only the new ones are added."""
    events = [("a", at(1)), ("b", at(2)), ("c", at(3))]
    delivery = Delivery(Watermark())
    delivered(delivery, a_page(events[:1]))
    delivery.coverage = Coverage(text_of(at(0)), [], [])
    delivered(delivery, a_page(events))
    expected, page = Coverage(text_of(at(0)), [], []), a_page(events[1:])
    expected.add(page.ids, page.instants, page.texts)
    assert delivery.coverage == expected
    assert delivery.coverage.events == 2
