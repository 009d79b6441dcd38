"""How many pages a window should have, and where it is cut."""

from collections.abc import Sequence

import pytest

from tap_audit_events.events.instants import LATEST, Instant
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.window_reader import WindowReader
from tap_audit_events.extraction.planning.window_sizes import WindowSizes
from tests.extraction.planning.scheduling import instant
from tests.extraction.planning.test_window_reader import a_page, at_times

PAGE_SIZE = 50
END = instant(18_000)
FULL = [909 * number / (PAGE_SIZE - 1) for number in range(PAGE_SIZE)]
"""The times of a page of events at equal distances, up to second 909."""


class Sizes:
    """Window sizes, and a reader of the run's window from whose pages they learn."""

    def __init__(self, window: Window) -> None:
        self.sizes = WindowSizes(PAGE_SIZE)
        self.reader = WindowReader(window)

    def read(
        self, times: Sequence[float], *, is_last: bool = False, of: WindowReader | None = None
    ) -> None:
        """Accept a page with these times."""
        reader = of or self.reader
        self.accept(a_page(at_times(times), None if is_last else f"{reader.pages_read}"), reader)

    def accept(self, page: Page, reader: WindowReader) -> None:
        reader.next_request()
        self.sizes.learn(reader, page)
        reader.accept(page)

    def pages_left(self, window: Window) -> float:
        return self.sizes.pages_left(WindowReader(window))


def after_a_page(start: float | None = 0) -> Sizes:
    """A range of five hours of which one page was read."""
    sizes = Sizes(Window(None if start is None else instant(start), END))
    sizes.read(FULL)
    return sizes


def between(start: float, until: float) -> Window:
    return Window(instant(start), END, until=instant(until))


def test_a_range_with_only_empty_pages_so_far_is_not_cut() -> None:
    """The cut would be in the first seconds of the year 1."""
    sizes = Sizes(Window(None, END))
    sizes.read([])
    assert not sizes.sizes.can_cut(sizes.reader)
    sizes.read(FULL)
    assert sizes.sizes.can_cut(sizes.reader)


# How many pages


@pytest.mark.parametrize(
    ("window", "pages"),
    [
        (between(909, 909 * 3), 2),
        (between(909, 909 * 3.5), 2.5),
        (between(909, 18_000), 17_091 / 909),
        (Window(instant(909), END), 17_091 / 909),
        (between(909, 909), 0),
        (between(909, 5), 0),
    ],
)
def test_a_window_is_expected_to_be_as_dense_as_the_time_before(
    window: Window, pages: float
) -> None:
    """A window ends at the start of the next one, or else at the end of the range."""
    assert after_a_page().pages_left(window) == pytest.approx(pages)


def test_only_pages_after_the_newest_event_are_left_of_a_window_in_progress() -> None:
    """Pages that were read are not expected again."""
    sizes = after_a_page()
    assert sizes.sizes.pages_left(sizes.reader) == pytest.approx(17_091 / 909)
    sizes.read([909 + time for time in FULL])
    assert sizes.sizes.pages_left(sizes.reader) == pytest.approx(16_182 / 909)


def test_a_run_without_a_start_begins_with_its_oldest_event() -> None:
    """No events are expected before the oldest one, and later pages do not change that."""
    sizes = Sizes(Window(None, END))
    sizes.read([9_000 + time for time in FULL])
    sizes.read([9_909 + time for time in FULL])
    oldest, newest = 9_000 + FULL[0], 9_909 + FULL[-1]
    a_second = 2 * PAGE_SIZE / (newest - oldest)
    again = sizes.reader.begin_again()
    expected = (18_000 - oldest) * a_second / PAGE_SIZE
    assert sizes.sizes.pages_left(again) == pytest.approx(expected, rel=1e-3)


def test_the_last_page_of_a_window_counts_up_to_the_windows_end() -> None:
    """No event follows the page in its window, so the rest of the window is quiet."""
    sizes = after_a_page()
    reader = WindowReader(between(909, 909 * 4))
    sizes.read([909 + time for time in FULL[:25]], is_last=True, of=reader)
    a_page_takes = 909 * 4 / 1.5
    assert sizes.pages_left(between(4_000, 13_000)) == pytest.approx(9_000 / a_page_takes, rel=0.3)


def test_the_last_page_of_a_range_counts_up_to_its_end() -> None:
    """If no other window follows, the rest of the range is quiet."""
    sizes = after_a_page()
    sizes.read([], is_last=True, of=WindowReader(Window(instant(909), END)))
    assert sizes.pages_left(between(909, 18_000)) < 0.2 * 17_091 / 909


def test_an_empty_page_before_others_changes_no_expectation() -> None:
    """A service that divides events into pages before it filters them may send many empty pages."""
    sizes = after_a_page()
    for _ in range(3):
        sizes.read([])
    assert sizes.pages_left(between(909, 18_000)) == pytest.approx(17_091 / 909)


@pytest.mark.parametrize("start", [None, 0])
def test_time_before_the_oldest_event_does_not_count_as_quiet(start: float | None) -> None:
    """The organization may not have existed then, or the service may have deleted older events."""
    sizes = Sizes(Window(None if start is None else instant(start), END))
    sizes.read([9_000 + time for time in FULL])
    assert sizes.pages_left(between(0, 18_000)) == pytest.approx(9_000 / 909)


# Where to cut


@pytest.mark.parametrize(
    ("position", "until", "can_cut"),
    [
        (909, 913, False),
        (909, 913.000001, True),
        (909, 914, True),
        (909.9, 913, False),
        (909.9, 913.5, True),
        (909, 800, True),
    ],
)
def test_a_window_of_a_few_seconds_is_not_cut(position: float, until: float, can_cut: bool) -> None:
    """More than four seconds must remain, counted from the whole second that was reached."""
    sizes = after_a_page()
    reader = WindowReader(between(0, until))
    sizes.read([position], of=reader)
    assert sizes.sizes.can_cut(reader) is can_cut


def test_the_last_window_can_be_cut_up_to_the_end_of_the_range() -> None:
    """The end of the range takes the place of the next window's start."""
    sizes = after_a_page()
    assert sizes.sizes.can_cut(WindowReader(Window(instant(17_995), END)))
    assert not sizes.sizes.can_cut(WindowReader(Window(instant(17_996), END)))


@pytest.mark.parametrize(
    ("pages", "events"),
    [(8, 400 - 40), (2, 100 - 20), (0.5, 25 - 10), (0.32, 16 - 8), (0.1, 2.5), (0.02, 0.5)],
)
def test_a_cut_is_a_little_earlier_than_the_pages_are_full(pages: float, events: float) -> None:
    """Twice the square root of the events is left out, at most half of them; then 2 s are added."""
    sizes = after_a_page()
    at = sizes.sizes.cut(sizes.reader, pages)
    assert at == instant(909 + 2 + int(events * 18.18))


@pytest.mark.parametrize(
    ("start", "until", "is_cut"),
    [(909, 7_454, False), (909, 7_455, False), (909, 7_456, True), (909.9, 7_456, True)],
)
def test_a_window_with_fewer_pages_is_not_cut(start: float, until: float, is_cut: bool) -> None:
    """A cut must be at a whole second inside the window."""
    at = after_a_page().sizes.cut(WindowReader(between(start, until)), 8)
    assert at == (instant(7_455) if is_cut else None)


def test_nothing_is_cut_at_the_end_of_the_year_9999() -> None:
    """No whole second follows the last one of that year."""
    sizes = Sizes(Window(instant(0), Instant(f"{LATEST}.99")))
    sizes.read(FULL)
    assert sizes.sizes.cut(WindowReader(Window(LATEST, Instant(f"{LATEST}.99"))), 8) is None


def test_a_window_is_not_cut_if_its_pages_would_reach_beyond_the_year_9999() -> None:
    """After two events in nine thousand years, thousands of pages would take far longer."""
    sizes = Sizes(Window(Instant("0001-01-01T00:00:00"), LATEST))
    times = map(Instant, ["0001-01-01T00:00:00", "9000-01-01T00:00:00"])
    sizes.accept(a_page(list(zip("12", times, strict=True))), sizes.reader)
    assert sizes.sizes.cut(sizes.reader, 8 * 1024) is None
