"""The range of a run, and what is requested for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.instants import (
    Instant,
    later,
    parse_instant,
    text_of,
    whole_second,
)
from tap_audit_events.events.window import Window, run_window
from tests.extraction.watermarks import at

instants = st.integers(0, 10**6).map(at)


@given(
    st.none() | instants, st.none() | instants, st.none() | instants, st.integers(0, 600), instants
)
def test_a_run_reads_from_its_start_to_its_end(
    start_date: Instant | None,
    end_date: Instant | None,
    bookmark: Instant | None,
    lookback: int,
    now: Instant,
) -> None:
    """It starts at the later of `start_date` and the lookback, and ends at `end_date` or now."""
    window = run_window(
        start_date=start_date,
        end_date=end_date,
        bookmark=bookmark,
        lookback_seconds=lookback,
        now=now,
    )
    end = min(whole_second(now), end_date or whole_second(now))
    starts = [start_date] if start_date else []
    if bookmark:
        starts.append(whole_second(later(bookmark, seconds=-lookback)))
    if starts and max(starts) > end:
        assert window is None
    else:
        assert window == Window(max(starts, default=None), end)


@given(instants, instants)
def test_a_request_covers_at_least_its_window_in_whole_seconds(
    start: Instant, end: Instant
) -> None:
    """Bounds are rounded outwards, so that no event is lost if the service rounds too."""
    start, end = later(start, seconds=1), later(end, seconds=1)  # after the start of the month
    window = Window(start, end)
    assert window.start_time is not None
    sent_start, sent_end = parse_instant(window.start_time), parse_instant(window.end_time)
    assert sent_start == whole_second(sent_start) <= start < later(sent_start, seconds=1)
    assert later(sent_end, seconds=-1) < end <= sent_end == whole_second(sent_end)


@pytest.mark.parametrize(
    ("start", "start_time"),
    [
        ("2017-01-01T00:00:00", "2016-12-31T23:59:59Z"),
        ("2017-01-01T00:00:00.5", "2016-12-31T23:59:59Z"),
        ("2017-01-01T00:00:01", "2017-01-01T00:00:01Z"),
        ("2017-01-02T00:00:00", "2017-01-02T00:00:00Z"),
        ("2017-01-01T10:00:00", "2017-01-01T10:00:00Z"),
        ("2015-07-01T00:00:00", "2015-06-30T23:59:59Z"),
        ("0001-01-01T00:00:00", "0001-01-01T00:00:00Z"),
    ],
)
def test_a_month_is_requested_with_the_leap_second_before_it(start: str, start_time: str) -> None:
    """A service may count 23:59:60 to the previous month; other events of that time are dropped."""
    window = Window(Instant(start), at(0))
    assert window.start_time == start_time
    assert window.rounded.holds(parse_instant(start_time))
    assert window.holds(Instant(start))


def test_an_instant_belongs_to_one_of_two_neighbors() -> None:
    """`until` is the first instant that belongs to the next window, whatever `end` is."""
    window, following = Window(at(100), at(900), until=at(205)), Window(at(205), at(900))
    times = (99, 100, 101, 204, 205, 206, 899, 900, 901)
    belongs = [(window.holds(at(time)), following.holds(at(time))) for time in times]
    before, first, second, after = (False, False), (True, False), (False, True), (False, False)
    assert belongs == [before, first, first, first, second, second, second, second, after]


@pytest.mark.parametrize(
    ("window", "covered"),
    [
        (Window(at(103), at(198)), (100, 200)),
        (Window(at(100), at(200)), (100, 200)),
        (Window(at(103), at(900), until=at(198)), (100, 200)),
        (Window(None, at(198)), (-(10**6), 200)),
        (Window(None, at(900), until=at(200)), (-(10**6), 200)),
    ],
)
def test_a_request_covers_whole_seconds(window: Window, covered: tuple[int, int]) -> None:
    """A response may hold events of the requested range, which includes its bounds."""
    first, last = covered
    times = (first - 1, first, first + 1, last - 1, last, last + 1)
    inside = [window.rounded.holds(at(time)) for time in times]
    assert inside == [window.start is None, True, True, True, True, False]
    assert window.end_time == text_of(at(last))


@pytest.mark.parametrize(
    ("window", "shown"),
    [
        (Window(at(3), at(50)), "from 2026-01-01T00:00:00.3Z to 2026-01-01T00:00:05Z"),
        (Window(at(3), at(50), at(40)), "from 2026-01-01T00:00:00.3Z to 2026-01-01T00:00:04Z"),
        (Window(None, at(50), at(40)), "up to 2026-01-01T00:00:04Z"),
    ],
)
def test_a_window_is_shown_with_its_bounds(window: Window, shown: str) -> None:
    """Errors and the log show it in this form."""
    assert str(window) == shown
