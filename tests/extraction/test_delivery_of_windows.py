"""Events of a page that belong to other windows or are out of order: none is lost or repeated."""

import pytest

from tap_audit_events.errors.exceptions import ContractError
from tap_audit_events.events.instants import EARLIEST, Instant
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.planning.window_reader import WindowPage
from tap_audit_events.extraction.watermark import Watermark
from tests.extraction.test_delivery import EVERYTHING, a_page, delivered
from tests.extraction.watermarks import at


def test_events_outside_of_the_window_are_dropped_and_counted() -> None:
    """A service that ignores a bound does not change what is delivered."""
    delivery = Delivery(Watermark())
    page = a_page([("a", at(5)), ("b", at(10)), ("c", at(20)), ("d", at(21))])
    assert delivered(delivery, page, Window(at(10), at(20))) == ["b", "c"]
    assert (delivery.outside, delivery.repeats) == (2, 0)


def test_an_event_at_the_border_of_two_windows_is_delivered_with_the_first_that_shows_it() -> None:
    """The second window may have been read before the event became visible."""
    delivery = Delivery(Watermark())
    first = Window(None, at(500), until=at(34))
    assert delivered(delivery, a_page([("a", at(33)), ("b", at(34))]), first) == ["a", "b"]
    second = Window(at(34), at(500))
    assert delivered(delivery, a_page([("b", at(34)), ("c", at(34))]), second) == ["c"]
    assert delivery.repeats == 1


def test_a_window_need_not_show_an_event_that_the_window_before_it_delivered() -> None:
    """A service that treats `startTime` as exclusive shows the event only in the first window."""
    delivery = Delivery(Watermark())
    first = a_page([("a", at(33)), ("b", at(34)), ("c", at(35))])
    assert delivered(delivery, first, Window(None, at(500), until=at(34))) == ["a", "b"]
    second = Window(at(34), at(500))
    assert delivered(delivery, a_page([("c", at(35))]), second, completes_window=True) == ["c"]


def test_an_event_that_its_window_did_not_show_is_delivered_with_a_later_one() -> None:
    """A service that rounds times to minutes shows the event only in the later window."""
    delivery = Delivery(Watermark())
    delivered(delivery, a_page([("a", at(12))]), Window(at(10), at(500), until=at(34)))
    page = a_page([("start", at(9)), ("a", at(12)), ("b", at(33)), ("c", at(35))])
    assert delivered(delivery, page, Window(at(34), at(500))) == ["b", "c"]
    assert (delivery.outside, delivery.repeats) == (1, 1)


def test_an_event_that_may_have_been_delivered_is_dropped_from_a_later_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If ids were dropped, an event of their time may be a repeat that cannot be recognized."""
    monkeypatch.setattr("tap_audit_events.extraction.watermark.IDS_HELD_BEFORE_LOOKBACK", 2)
    delivery = Delivery(Watermark())
    times = [10, 60, 110, 160]
    first = a_page([(f"{time}", at(time)) for time in times])
    delivered(delivery, first, Window(None, at(500), until=at(200)))
    assert delivery.watermark.dropped_until == at(60)
    page = a_page([("10", at(10)), ("60", at(60)), ("x", at(61)), ("110", at(110))])
    assert delivered(delivery, page, Window(at(200), at(500))) == ["x"]


@pytest.mark.parametrize(
    ("times", "completes_window"), [([35, 37], True), ([35, 37], False), ([35], True), ([], True)]
)
def test_an_event_that_its_window_does_not_show_is_an_error(
    times: list[int], completes_window: bool
) -> None:
    """The error is raised before later events could move the bookmark past the missing one."""
    delivery = Delivery(Watermark())
    first = a_page([("a", at(33)), ("b", at(36))])
    assert delivered(delivery, first, Window(None, at(500), until=at(34))) == ["a"]
    second = a_page([(f"{time}", at(time)) for time in times])
    window = Window(at(34), at(500))
    read = WindowPage(window, second, True, completes_window)
    with pytest.raises(ContractError, match=r"AE-WINDOW.*1 in all, for example 'b'") as raised:
        delivery.choose(read)
    assert raised.value.window == str(window)
    assert delivery.watermark.bookmark == at(33)


def test_an_event_of_a_later_window_is_not_missing_from_the_one_before_it() -> None:
    """A service that ignores ``endTime`` may show the event long before its window is read."""
    delivery = Delivery(Watermark())
    first = a_page([("a", at(33)), ("d", at(60))])
    assert delivered(delivery, first, Window(None, at(500), until=at(34))) == ["a"]
    second = Window(at(34), at(500), until=at(50))
    assert delivered(delivery, a_page([("b", at(40))]), second, completes_window=True) == ["b"]
    third = a_page([("c", at(55)), ("d", at(60))])
    assert delivered(delivery, third, Window(at(50), at(500)), completes_window=True) == ["c", "d"]


def test_the_number_of_expected_events_of_later_windows_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A service that ignores ``endTime`` may send all later events; not all are expected then."""
    monkeypatch.setattr("tap_audit_events.extraction.delivery.MAX_EXPECTED", 2)
    delivery = Delivery(Watermark())
    first = a_page([("a", at(33)), ("b", at(35)), ("c", at(36)), ("d", at(37))])
    assert delivered(delivery, first, Window(None, at(500), until=at(34))) == ["a"]
    second = a_page([("b", at(35)), ("c", at(36))])
    rest = Window(at(34), at(500))
    assert delivered(delivery, second, rest, completes_window=True) == ["b", "c"]


def test_a_window_whose_last_page_was_not_written_is_not_complete() -> None:
    """The events not written may be older than those before them, so the bookmark stays."""
    delivery = Delivery(Watermark())
    page = a_page([("a", at(35)), ("b", at(33))])
    read = WindowPage(EVERYTHING, page, in_order=False, completes_window=True)
    delivery.commit(read, delivery.choose(read), 1)
    assert delivery.delivered == 1
    assert delivery.watermark.bookmark == EARLIEST


def test_an_event_that_its_window_shows_later_is_not_an_error() -> None:
    """The event may be on a later page, follow an empty page or be out of order."""
    delivery = Delivery(Watermark())
    first = a_page([("a", at(33)), ("b", at(36)), ("c", at(35))])
    assert delivered(delivery, first, Window(None, at(500), until=at(34))) == ["a"]
    window = Window(at(34), at(500))
    for ids, in_order, completes_window in (
        ([], True, False),
        ([("d", at(35))], True, False),
        ([("e", at(37)), ("c", at(35))], False, False),
        ([("b", at(36))], False, True),
    ):
        delivered(
            delivery,
            a_page(ids),
            window,
            in_order=in_order,
            completes_window=completes_window,
        )
    assert delivery.delivered == 5


@pytest.mark.parametrize(
    ("restarted_at", "expected"),
    [
        (None, ["older", "last dropped", "newer"]),
        (at(10), ["older", "last dropped", "newer"]),
        (at(20), ["last dropped", "newer"]),
        (at(25), ["newer"]),
        (at(40), ["newer"]),
    ],
)
def test_a_restarted_window_repeats_no_event_whose_id_was_dropped(
    restarted_at: Instant | None, expected: list[str]
) -> None:
    """Events newer than the dropped ids, or newer than the restart, are delivered."""
    delivery = Delivery(Watermark())
    delivery.watermark.dropped_until = at(25)
    page = a_page([("older", at(20)), ("last dropped", at(25)), ("newer", at(30))])
    chosen = delivery.choose(WindowPage(EVERYTHING, page, True, False, restarted_at))
    assert [page.ids[position] for position in chosen] == expected
    assert delivery.repeats == 3 - len(expected)
