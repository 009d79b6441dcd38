"""One window: its requests, what ends it early, and how it is cut."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import CursorRefusedError, ServiceError, service_error
from tap_audit_events.events.instants import LATEST, Instant
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.pagination import MAX_EMPTY_PAGES
from tap_audit_events.extraction.planning.window_reader import (
    WindowPage,
    WindowReader,
    WindowRequest,
)
from tests.extraction.planning.scheduling import instant

END = 1000.0
AN_ERROR = service_error("AE-EVENT")
WHOLE = Window(None, instant(END))
Event = tuple[str, Instant]


def at_times(times: Iterable[float]) -> list[Event]:
    """Events of these times, in ascending order, each with an id of its own."""
    return [(f"{number:03}", instant(time)) for number, time in enumerate(sorted(times))]


def a_page(events: Sequence[Event], cursor: str | None = "more", **fields: object) -> Page:
    ids, instants = [event[0] for event in events], [event[1] for event in events]
    return Page(ids, instants, [b""] * len(ids), next_cursor=cursor, **fields)  # type: ignore[arg-type]


@dataclass
class OneWindow:
    """A service of some events that follows interface.md, except that it may refuse cursors.

    Attributes:
        events: all events, in ascending order.
        page_size: events of a page.
        refuses: whether the request of a page, by its number since the last one without a cursor,
            is refused.
        requests: what was requested.
    """

    events: Sequence[Event]
    page_size: int = 5
    refuses: Callable[[int], bool] = lambda _: False
    requests: list[WindowRequest] = field(default_factory=list)

    def respond(self, request: WindowRequest) -> Page:
        """The page that a request is for.

        Raises:
            CursorRefusedError: the service refuses the cursor.
        """
        self.requests.append(request)
        number = int(request.cursor or 0)
        if number and self.refuses(number):
            raise CursorRefusedError("AE-CURSOR-REFUSED")
        window = request.window
        inside = [event for event in self.events if window.rounded.holds(event[1])]
        start = number * self.page_size
        is_last = start + self.page_size >= len(inside)
        found = inside[start : start + self.page_size]
        return a_page(found, None if is_last else f"{number + 1}")


def read(
    reader: WindowReader, respond: Callable[[WindowRequest], Page], most_requests: int = 1000
) -> list[WindowPage]:
    """All pages of a window; the reader's `error` says what ended it early."""
    for _ in range(most_requests):
        if reader.is_read:
            break
        request = reader.next_request()
        assert reader.is_in_flight
        try:
            page = respond(request)
        except ServiceError as error:
            reader.fail(error)
        else:
            reader.accept(page)
        assert not reader.is_in_flight
    assert reader.is_read, "the window does not end"
    return [reader.take_page() for _ in range(reader.ready_pages)]


def ids_of(pages: Iterable[WindowPage]) -> list[str]:
    """The ids of the events that belong to their page's window, without repeats."""
    found = {
        event_id: None
        for read in pages
        for event_id, moment in zip(read.page.ids, read.page.instants, strict=True)
        if read.window.holds(moment)
    }
    return list(found)


times = st.lists(st.integers(0, 4000).map(lambda n: n / 4), max_size=60)
crowded_times = st.lists(st.integers(0, 40).map(lambda n: n / 4), max_size=60)


# To the end of the window


@given(times, st.integers(1, 9))
def test_a_window_is_read_by_cursor_to_its_end(moments: list[float], page_size: int) -> None:
    """Each page is requested with the same window; only the last one completes it."""
    service = OneWindow(at_times(moments), page_size)
    reader = WindowReader(WHOLE)
    pages = read(reader, service.respond)
    assert ids_of(pages) == [event[0] for event in service.events]
    assert [page.completes_window for page in pages] == [False] * (len(pages) - 1) + [True]
    assert {request.window for request in service.requests} == {WHOLE}
    cursors = [request.cursor for request in service.requests]
    assert cursors == [None, *map(str, range(1, len(pages)))]
    assert (reader.pages_read, reader.events_read) == (len(pages), len(moments))
    assert reader.error is None


@pytest.mark.parametrize("kind", ["no page", "malformed event", "repeated cursor"])
def test_an_error_names_the_window_that_was_requested(kind: str) -> None:
    """The log then says in which window the run ended."""
    window = Window(instant(3), instant(END))
    reader = WindowReader(window)
    reader.next_request()
    if kind == "no page":
        reader.fail(service_error("AE-403"))
    elif kind == "malformed event":
        reader.accept(a_page([], malformed=service_error("AE-EVENT")))
    else:
        for number in range(2):
            reader.accept(a_page(at_times([4 + number]), "again"))
    assert isinstance(reader.error, ServiceError)
    assert reader.error.summary.endswith(f", in the window {window}")


def test_a_reader_knows_its_progress() -> None:
    """Its attributes are checked from before the first request until every page is taken."""
    reader = WindowReader(Window(instant(3), instant(END)))
    assert (reader.is_requested, reader.position) == (False, instant(3))
    assert reader.planned_pages == 1
    reader.next_request()
    assert (reader.is_requested, reader.is_in_flight) == (True, True)
    reader.accept(a_page(at_times([4, 5]), size=70))
    assert (reader.is_requested, reader.is_in_flight) == (True, False)
    assert (reader.position, reader.pages_held) == (instant(5), 1)
    reader.next_request()
    reader.accept(a_page([], None))
    assert (reader.is_read, reader.ready_pages) == (True, 2)
    assert [reader.take_page().page.size for _ in range(2)] == [70, 0]
    assert reader.ready_pages == 0


@example([[5], [3], [6]])
@given(st.lists(st.lists(st.integers(0, 30), max_size=5), max_size=5))
def test_order_is_judged_over_all_pages_of_a_window(pages: list[list[int]]) -> None:
    """From the first event that is older than one before it, pages are out of order."""
    responses = [
        a_page(
            [(f"{number}-{place}", instant(time)) for place, time in enumerate(times)], f"{number}"
        )
        for number, times in enumerate(pages)
    ]
    came = read(WindowReader(WHOLE), lambda _: responses.pop(0) if responses else Page())
    flat: list[int] = []
    for read_page, page in zip(came, pages, strict=False):
        flat += page
        assert read_page.in_order == (flat == sorted(flat))


# What ends it early


def test_a_malformed_event_ends_the_window_after_its_page() -> None:
    """The events before it are delivered; the page does not complete the window."""
    error = service_error("AE-EVENT")
    reader = WindowReader(WHOLE)
    (page,) = read(reader, lambda _: a_page(at_times([1, 2]), None, malformed=error))
    assert reader.error is error
    assert page.page.ids == ["000", "001"]
    assert not page.completes_window


def test_a_repeated_cursor_ends_the_window_after_its_page() -> None:
    """The events of that page are delivered."""
    reader = WindowReader(WHOLE)
    numbers = iter("123")
    pages = read(reader, lambda _: a_page([(next(numbers), instant(1))]))
    assert isinstance(reader.error, ServiceError)
    assert reader.error.code == "AE-CURSOR-REPEATED"
    assert ids_of(pages) == ["1", "2"]
    assert not pages[-1].completes_window


@pytest.mark.parametrize("code", ["AE-400", "AE-403", "AE-500"])
def test_any_other_error_ends_the_window(code: str) -> None:
    """The pages before the error are still ready."""
    error = service_error(code)
    reader = WindowReader(WHOLE)
    reader.next_request()
    reader.accept(a_page(at_times([1, 2, 3])))
    reader.fail(error)
    assert (reader.is_read, reader.error) == (True, error)
    assert reader.ready_pages == 1


# Windows that are cut or given up


def test_the_first_page_is_held_back_until_the_next_is_requested() -> None:
    """Until then the window can be given up, and no event is delivered twice."""
    reader = WindowReader(WHOLE)
    for number, times in enumerate(([], [1, 2], [3])):
        reader.next_request()
        reader.accept(a_page([(f"{time}", instant(time)) for time in times], f"{number}", size=7))
        is_held_back = times == [1, 2]
        assert reader.can_begin_again == is_held_back
        assert reader.ready_pages == (0 if is_held_back else number + 1)
        assert (reader.pages_held, reader.bytes_held) == (number + 1, 7 * (number + 1))
        reader.next_request()
        assert reader.ready_pages == number + 1


def test_a_window_of_one_page_is_not_held_back() -> None:
    """Neither a complete window nor one that ends with an error can be given up."""
    for page in (a_page(at_times([1]), None), a_page(at_times([1]), malformed=AN_ERROR)):
        reader = WindowReader(WHOLE)
        reader.next_request()
        reader.accept(page)
        assert (reader.can_begin_again, reader.ready_pages) == (False, 1)


@pytest.mark.parametrize("start", [None, instant(7)])
def test_a_cut_divides_a_window_without_a_gap(start: Instant | None) -> None:
    """The first part ends where the rest begins, and the rest ends where the window ended."""
    reader = WindowReader(Window(start, WHOLE.end, instant(500)))
    rest = reader.cut(instant(100))
    assert reader.window == Window(start, WHOLE.end, instant(100))
    assert reader.next_request().window == reader.window
    assert rest.window == Window(instant(100), WHOLE.end, instant(500))
    assert rest.next_request().window == rest.window
    assert rest.cut(instant(300)).window == Window(instant(300), WHOLE.end, instant(500))
    assert WindowReader(Window(start, WHOLE.end)).cut(instant(9)).window == Window(
        instant(9), WHOLE.end
    )


@given(times, st.integers(1, 9), st.data())
def test_windows_always_tile_the_range(
    moments: list[float], page_size: int, data: st.DataObject
) -> None:
    """However windows are cut and given up, no instant is lost or belongs to two of them."""
    service = OneWindow(at_times(moments), page_size)
    whole = Window(instant(data.draw(st.integers(0, 300))), instant(END))
    readers = [WindowReader(whole)]
    taken: list[WindowPage] = []
    for _ in range(data.draw(st.integers(0, 40))):
        place = data.draw(st.integers(0, len(readers) - 1))
        reader = readers[place]
        if reader.is_read:
            continue
        if not reader.is_requested and data.draw(st.booleans()):
            at = instant(data.draw(st.integers(0, 4 * int(END))) / 4)
            if (reader.window.start or at) < at < (reader.window.until or LATEST):
                readers.insert(place + 1, reader.cut(at))
        elif reader.can_begin_again and data.draw(st.booleans()):
            readers[place] = WindowReader(reader.window)
        else:
            reader.accept(service.respond(reader.next_request()))
        if reader.ready_pages and data.draw(st.booleans()):
            taken.append(reader.take_page())
        check_tiles([reader.window for reader in readers], whole)
    for reader in readers:
        taken += [reader.take_page() for _ in range(reader.ready_pages)]
        taken += read(reader, service.respond)
    inside = [event[0] for event in service.events if whole.holds(event[1])]
    assert sorted(ids_of(taken)) == inside


def check_tiles(windows: list[Window], whole: Window) -> None:
    assert windows[0].start == whole.start
    assert windows[-1].until is None
    assert {window.end for window in windows} == {whole.end}
    for window, following in pairwise(windows):
        assert window.until == following.start


def test_events_that_were_not_requested_are_not_progress() -> None:
    """A service that ignores the range and invents events would be read without end."""

    def respond(request: WindowRequest) -> Page:
        number = int(request.cursor or 0) + 1
        return a_page([(f"{number}", instant(END + 2 + number))], f"{number}")

    reader = WindowReader(WHOLE)
    read(reader, respond, MAX_EMPTY_PAGES + 1)
    assert "AE-EMPTY-PAGES" in str(reader.error)
