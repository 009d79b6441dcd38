"""One window: its requests, what ends it early, and how it is cut."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hypothesis import example, given
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import CursorRefusedError, ServiceError, service_error
from tap_audit_events.events.instants import Instant
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


def test_events_that_were_not_requested_are_not_progress() -> None:
    """A service that ignores the range and invents events would be read without end."""

    def respond(request: WindowRequest) -> Page:
        number = int(request.cursor or 0) + 1
        return a_page([(f"{number}", instant(END + 2 + number))], f"{number}")

    reader = WindowReader(WHOLE)
    read(reader, respond, MAX_EMPTY_PAGES + 1)
    assert "AE-EMPTY-PAGES" in str(reader.error)
