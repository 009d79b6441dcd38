"""Where a window continues after a refused cursor, and what a cut leaves to whom."""

import pytest

from tap_audit_events.errors.exceptions import CursorRefusedError
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.window_reader import WindowReader
from tests.extraction.scheduling import instant
from tests.extraction.test_window_reader import a_page, at_times

END, UNTIL = instant(1000), instant(500)
REFUSED = CursorRefusedError("AE-CURSOR-REFUSED")
PAGES: list[list[float]] = [[1, 2.5], [3.5, 3.5, 4], [4.5, 6], [7, 9]]


def read_pages(count: int, start: Instant | None = None) -> WindowReader:
    """A reader of a window of which so many pages have come; then a cursor is refused."""
    reader = WindowReader(Window(start, END, UNTIL))
    for number, times in enumerate(PAGES[:count]):
        reader.next_request()
        reader.accept(a_page(at_times(times), f"cursor {number}"))
    reader.next_request()
    return reader


@pytest.mark.parametrize(("count", "start"), [(1, 2.5), (2, 3.5), (3, 4.5), (4, 7)])
def test_a_refused_cursor_restarts_at_the_newest_page(count: int, start: float) -> None:
    """At its start, as an event out of order may follow; of a single page, at its newest."""
    reader = read_pages(count)
    reader.fail(REFUSED)
    assert (reader.is_in_flight, reader.is_read, reader.error) == (False, False, None)
    assert (reader.restarts, reader.is_alone) == (1, False)
    window, cursor = reader.next_request()[1:]
    assert (window, cursor) == (Window(instant(start), END, UNTIL), None)


def test_the_second_restart_is_at_the_newest_instant_and_the_third_ends_it() -> None:
    """If the page that is requested again brings nothing new."""
    reader = read_pages(3)
    starts = []
    for _ in range(3):
        reader.fail(REFUSED)
        if reader.error is None:
            starts.append(reader.next_request().window.start)
            reader.accept(a_page(at_times([6]), "again"))
            reader.next_request()
    assert starts == [instant(4.5), instant(6)]
    assert (reader.error, reader.is_read, reader.restarts) == (REFUSED, True, 2)


@pytest.mark.parametrize(
    ("count", "refusals", "start"),
    [(1, 0, 1), (2, 0, 3.5), (4, 0, 7), (4, 1, 7), (1, 2, 2.5), (4, 2, 9), (4, 3, 9)],
)
def test_a_window_is_restarted_alone_at_its_newest_page(
    count: int, refusals: int, start: float
) -> None:
    """Even after a final error: cursors may be refused because of other windows."""
    reader = read_pages(count)
    for _ in range(refusals):
        reader.fail(REFUSED)
        reader.accept(a_page([], "again"))
    reader.restart_alone()
    assert (reader.is_alone, reader.is_read, reader.error) == (True, False, None)
    assert reader.next_request()[1:] == (Window(instant(start), END, UNTIL), None)
    reader.accept(a_page(at_times([9, 9.5]), None))
    assert reader.is_read


def test_a_window_without_pages_has_nothing_to_restart_from() -> None:
    """It is alone from then on, and its error stays."""
    reader = read_pages(0)
    reader.fail(REFUSED)
    reader.restart_alone()
    assert (reader.is_alone, reader.error, reader.is_read, reader.restarts) == (
        *(True, REFUSED, True),
        0,
    )


def test_a_window_out_of_order_is_not_restarted_alone() -> None:
    """Events before its newest page may still be missing."""
    reader = read_pages(1)
    reader.accept(a_page(at_times([0.5]), "cursor"))
    reader.next_request()
    reader.fail(REFUSED)
    reader.restart_alone()
    assert (reader.is_alone, reader.error, reader.is_read) == (True, REFUSED, True)


@pytest.mark.parametrize("start", [None, instant(7)])
def test_a_cut_shares_a_window_out_without_a_gap(start: Instant | None) -> None:
    """The first part ends where the rest begins, and the rest where the window did."""
    reader = WindowReader(Window(start, END, UNTIL))
    rest = reader.cut(instant(100))
    assert reader.window == Window(start, END, instant(100))
    assert reader.next_request().window == reader.window
    assert rest.window == Window(instant(100), END, UNTIL)
    assert rest.next_request().window == rest.window
    assert rest.cut(instant(300)).window == Window(instant(300), END, UNTIL)
    assert WindowReader(Window(start, END)).cut(instant(9)).window == Window(instant(9), END)
