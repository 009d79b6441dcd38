"""Where a window continues after a refused cursor, and what ends it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import CursorRefusedError
from tap_audit_events.events.instants import Instant, whole_second
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning import pagination
from tap_audit_events.extraction.planning.window_reader import WindowReader, WindowRequest
from tests.extraction.planning.scheduling import instant
from tests.extraction.planning.test_window_reader import (
    WHOLE,
    OneWindow,
    a_page,
    at_times,
    crowded_times,
    ids_of,
    read,
    times,
)

END, UNTIL = WHOLE.end, instant(500)
REFUSED = CursorRefusedError("AE-CURSOR-REFUSED")
PAGES: list[list[float]] = [[1, 2.5], [3.5, 3.5, 4], [4.5, 6], [7, 9]]


def read_pages(count: int, start: Instant | None = None) -> WindowReader:
    """A reader that has read so many pages of its window and has requested the next one."""
    reader = WindowReader(Window(start, END, UNTIL))
    for number, moments in enumerate(PAGES[:count]):
        reader.next_request()
        reader.accept(a_page(at_times(moments), f"cursor {number}"))
    reader.next_request()
    return reader


@pytest.mark.parametrize(("count", "start"), [(1, 2.5), (2, 3.5), (3, 4.5), (4, 7)])
def test_a_refused_cursor_restarts_at_the_newest_page(count: int, start: float) -> None:
    """The restart is at the start of that page, or at its newest event if it is the only one."""
    reader = read_pages(count)
    before = [reader.take_page().restarted_at for _ in range(count)]
    reader.fail(REFUSED)
    assert (reader.is_in_flight, reader.is_read, reader.error) == (False, False, None)
    assert not reader.is_alone
    assert reader.next_request() == WindowRequest(reader, Window(instant(start), END, UNTIL), None)
    reader.accept(a_page(at_times([start, 9.5]), None))
    assert [*before, reader.take_page().restarted_at] == [*count * [None], instant(start)]


def test_the_second_restart_is_at_the_newest_instant_and_the_third_is_an_error() -> None:
    """The page that is requested again brings nothing new each time."""
    reader = read_pages(3)
    starts = []
    for _ in range(3):
        reader.fail(REFUSED)
        if reader.error is None:
            starts.append(reader.next_request().window.start)
            reader.accept(a_page(at_times([4.5, 6] if len(starts) == 1 else [6]), "again"))
            reader.next_request()
    assert starts == [instant(4.5), instant(6)]
    assert (reader.error, reader.is_read) == (REFUSED, True)


@pytest.mark.parametrize(
    ("events", "cursor"), [(at_times([4.6, 8]), "more"), (at_times([4.6, 8]), None), ([], None)]
)
def test_a_restart_that_does_not_begin_where_it_should_is_an_error(
    events: list[tuple[str, Instant]], cursor: str | None
) -> None:
    """The start of a range is inclusive: if the event there is missing, later ones may be too.

    The page is not delivered, as it would move the bookmark past the missing events.
    """
    reader = read_pages(3)
    while reader.ready_pages:
        reader.take_page()
    reader.fail(REFUSED)
    assert reader.next_request().window.start == instant(4.5)
    reader.accept(a_page(events, cursor))
    assert reader.error == REFUSED
    assert reader.ready_pages == 0


@pytest.mark.parametrize(("first", "error"), [(4.5, None), (4.6, REFUSED)])
def test_a_restart_may_begin_with_an_empty_page(first: float, error: Exception | None) -> None:
    """The repeated event may follow on the next page; if it does not, the error is the same."""
    reader = read_pages(3)
    reader.fail(REFUSED)
    reader.next_request()
    reader.accept(a_page([], "more"))
    assert reader.error is None
    reader.next_request()
    reader.accept(a_page(at_times([first, 8]), None))
    assert reader.error == error


@pytest.mark.parametrize("outside", [[instant(-7)], [UNTIL], [instant(10**6)]])
@pytest.mark.parametrize("pages", [1, 2])
def test_a_window_is_not_restarted_at_an_event_outside_of_it(
    outside: list[Instant], pages: int
) -> None:
    """A range that ends before it starts may get an empty page, and its events would be lost."""
    reader = read_pages(pages, start=instant(0))
    events = [("of another window", each) for each in outside]
    reader.accept(a_page(sorted([*at_times([10, 20]), *events], key=lambda each: each[1])))
    reader.next_request()
    reader.accept(a_page(events, "of others alone"))
    reader.fail(REFUSED)
    assert reader.error is None
    start = reader.next_request().window.start
    assert start is not None
    assert instant(0) <= start <= instant(20)


def test_a_cursor_refused_after_disorder_is_an_error() -> None:
    """A restart could miss an event."""
    reader = WindowReader(WHOLE)
    reader.next_request()
    reader.accept(a_page([("1", instant(7)), ("2", instant(3))]))
    reader.next_request()
    reader.fail(CursorRefusedError("AE-CURSOR-REFUSED"))
    assert isinstance(reader.error, CursorRefusedError)
    reader.restart_alone()
    assert isinstance(reader.error, CursorRefusedError)


@given(st.one_of(times, crowded_times), st.integers(1, 9), st.integers(1, 4))
def test_a_refused_cursor_loses_nothing_or_fails(
    moments: list[float], page_size: int, lifetime: int
) -> None:
    """Every event before the error is delivered; restarts continue while they bring new events."""
    service = OneWindow(at_times(moments), page_size, refuses=lambda number: number >= lifetime)
    reader = WindowReader(WHOLE)
    pages = read(reader, service.respond)
    seen = ids_of(pages)
    assert seen == [event[0] for event in service.events[: len(seen)]]
    if reader.error is None:
        assert len(seen) == len(moments)
    else:
        newest = whole_second(dict(service.events)[seen[-1]])
        ties = sum(whole_second(moment) == newest for _, moment in service.events)
        assert ties >= page_size * lifetime, "a restart would have brought more"
    assert all(page.in_order for page in pages)
    assert len(service.requests) <= (2 * len(moments) + 2) * (lifetime + 1)


@given(
    st.one_of(times, crowded_times),
    st.integers(1, 5),
    st.lists(st.sampled_from(["page", "page", "refuse", "empty", "repeat", "old"]), max_size=40),
    st.booleans(),
)
def test_a_window_always_ends(
    moments: list[float], page_size: int, script: list[str], is_alone: bool
) -> None:
    """A hostile service may mix refusals, empty pages and repeats in any way."""
    service = OneWindow(at_times(moments), page_size)
    sent: list[Page] = []
    turns = 0

    def respond(request: WindowRequest) -> Page:
        nonlocal turns
        what = script[turns % len(script)] if script else "page"
        turns += 1
        if what == "refuse" and request.cursor is not None:
            raise CursorRefusedError("AE-CURSOR-REFUSED")
        cursor = None if request.cursor is None else request.cursor.partition(" ")[0]
        if what == "empty":
            return Page(next_cursor=f"{cursor or 0} {turns}")
        if what in {"repeat", "old"} and sent:
            old = sent[-1 if what == "repeat" else 0]
            return a_page(list(zip(old.ids, old.instants, strict=True)), f"{cursor or 0} {turns}")
        page = service.respond(request._replace(cursor=cursor))
        sent.append(page)
        return page

    reader = WindowReader(WHOLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pagination, "MAX_EMPTY_PAGES", 20)
        pages = read(reader, respond, most_requests=20_000)
        if is_alone:
            reader.restart_alone()
            pages += read(reader, respond, most_requests=20_000)
    came = ids_of(pages)
    assert set(came) <= {event[0] for event in service.events}
    if reader.error is None:
        assert sorted(came) == [event[0] for event in service.events]
