"""Exactly how many more windows a run can afford."""

from collections.abc import Sequence
from math import floor

import pytest

from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.request_budget import RequestBudget
from tap_audit_events.extraction.planning.window_reader import WindowReader
from tests.extraction.watermarks import at

PAGE_SIZE = 8  # shares of a page are exact as floats
EVER = Window(None, at(10**6))


def a_reader(window: Window = EVER, *, has_more: bool = False) -> WindowReader:
    reader = WindowReader(window)
    reader.has_more = has_more
    return reader


def a_page(times: Sequence[int], *, is_last: bool = False) -> Page:
    ids = [str(time) for time in times]
    return Page(ids, [at(time) for time in times], [b""] * len(ids), None if is_last else "more")


FULL = a_page(range(PAGE_SIZE))


def counted(*pages: Page, times: int = 1, window: Window = EVER) -> RequestBudget:
    """A budget after these pages of one window, counted so many times."""
    budget = RequestBudget(PAGE_SIZE)
    for page in pages * times:
        budget.count(a_reader(window), page)
    return budget


def most_windows(budget: RequestBudget, *readers: WindowReader) -> int:
    """The most windows that can still be afforded; negative if there are too many."""
    affordable = [more for more in range(-50, 50) if budget.can_afford(more, readers)]
    assert affordable == list(range(-50, affordable[-1] + 1))
    return affordable[-1]


@pytest.mark.parametrize(
    ("pages", "open_windows", "known_to_have_more"),
    [
        (0, (4, 3, 2), 4),
        (1, (4, 3, 2), 4),
        (4, (5, 4, 3), 5),
        (39, (13, 12, 11), 14),
        (40, (14, 13, 12), 14),
        (43, (14, 13, 12), 15),
    ],
)
def test_a_quarter_of_the_pages_and_four_requests_are_spare(
    pages: int, open_windows: tuple[int, int, int], known_to_have_more: int
) -> None:
    """Each open window may waste a request, except for one if more events are known to follow."""
    budget = counted(FULL, times=pages)
    readers = [a_reader(), a_reader()]
    assert tuple(most_windows(budget, *readers[:count]) for count in range(3)) == open_windows
    assert most_windows(budget, a_reader(has_more=True)) == known_to_have_more
    assert most_windows(budget, a_reader(has_more=True), a_reader()) == known_to_have_more - 1
    assert most_windows(budget, *[a_reader(has_more=True)] * 2) == known_to_have_more - 1


def test_pages_that_are_requested_again_were_wasted() -> None:
    """Until they were read again, the spare share is computed from fewer pages."""
    budget = counted(FULL, times=40)
    budget.count_again(8)
    assert most_windows(budget) == 4
    budget.count_again(1)
    assert most_windows(budget) == 2
    for _ in range(9):
        budget.count(a_reader(), FULL)
    assert most_windows(budget) == 5
    for _ in range(11):
        budget.count(a_reader(), FULL)
    assert most_windows(budget) == 5 + 2


@pytest.mark.parametrize(
    ("page", "eighths"),
    [
        (FULL, 8),
        (a_page(range(7)), 8),
        (a_page([]), 8),
        (a_page(range(8), is_last=True), 8),
        (a_page(range(7), is_last=True), 7),
        (a_page([1], is_last=True), 1),
        (a_page([], is_last=True), 0),
    ],
)
def test_the_last_page_is_useful_as_far_as_it_is_full(page: Page, eighths: int) -> None:
    """Only a last page may waste a part; the others are as full as the service makes them."""
    budget = counted(page, times=40)
    pages = 5 * eighths
    assert most_windows(budget) == floor(pages / 4 + 4) - (40 - pages)


@pytest.mark.parametrize(
    ("window", "inside"),
    [
        (EVER, 4),
        (Window(at(100), at(10**6)), 3),
        (Window(at(101), at(10**6)), 2),
        (Window(None, at(10**6), until=at(200)), 3),
        (Window(None, at(10**6), until=at(201)), 4),
        (Window(at(100), at(10**6), until=at(200)), 2),
        (Window(at(300), at(10**6)), 0),
        (Window(None, at(10**6), until=at(99)), 0),
    ],
)
def test_events_of_other_windows_are_not_useful(window: Window, inside: int) -> None:
    """Requests are rounded to seconds, so a page may hold events of its neighbors."""
    for is_last, pages in ((True, 5 * inside), (False, 10 * inside)):
        page = a_page([199, 99, 200, 100], is_last=is_last)
        budget = counted(page, times=40, window=window)
        assert most_windows(budget) == floor(pages / 4 + 4) - (40 - pages)


@pytest.mark.parametrize("tenths", [[1] * 10, [2, 4, 3, 1]])
def test_parts_of_pages_add_up(tenths: list[int]) -> None:
    """Ten tenths are one page, although their sum is a little less, or more, as a float."""
    budget = RequestBudget(10)
    for events in tenths:
        budget.count(a_reader(), a_page(range(events), is_last=True))
    assert most_windows(budget) == 4 - (len(tenths) - 1)
    assert most_windows(budget, a_reader(has_more=True)) == 4 - (len(tenths) - 1)
