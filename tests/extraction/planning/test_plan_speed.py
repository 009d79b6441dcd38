"""How fast a plan reads a history: a second is the time of one response."""

from statistics import mean

import pytest

from tap_audit_events.events.window import Window
from tests.extraction.planning.plan_cases import all_delivered, most_requests
from tests.extraction.planning.scheduling import (
    EVER,
    RANGE_SECONDS,
    Play,
    evenly,
    instant,
    pages_needed,
)
from tests.extraction.planning.shapes import (
    Shape,
    bursts,
    drawn,
    growing,
    growing_steadily,
    office_hours,
)


@pytest.mark.parametrize(("concurrency", "times"), [(8, 5), (4, 3), (2, 1.5)])
def test_requests_in_flight_save_time(concurrency: int, times: float) -> None:
    """Two hundred pages of even events are read."""
    instants = evenly(200 * 100)
    assert Play(instants, page_size=100, concurrency=1).run().seconds == 200
    played = Play(instants, page_size=100, concurrency=concurrency).run()
    all_delivered(played, 200 * 100)
    assert times * played.seconds <= 200
    assert max(played.in_flight) == concurrency


@pytest.mark.parametrize("concurrency", [8, 32])
@pytest.mark.parametrize(
    ("shape", "pages", "times"),
    [
        (office_hours, 15, 1.3),
        (office_hours, 30, 1.8),
        (office_hours, 200, 4.0),
        (growing_steadily, 200, 4.0),
        (growing, 60, 2.0),
        (bursts, 200, 2.0),
    ],
)
def test_uneven_histories_are_read_in_parallel(
    shape: Shape, pages: int, times: float, concurrency: int
) -> None:
    """Neither nights, bursts nor growth leave most of a history to one cursor."""
    seconds = []
    for seed in range(4):
        events = drawn(shape, pages * 100, seed)
        played = Play(events, page_size=100, concurrency=concurrency).run()
        all_delivered(played, pages * 100)
        seconds.append(played.seconds)
    assert mean(seconds) <= pages / times


def test_a_used_up_budget_does_not_leave_the_rest_to_one_cursor() -> None:
    """The first windows end in a quiet evening and night, which waste the first requests."""
    times = [number * 20 for number in range(100)]
    times += [2000 + number * 100 for number in range(150)]
    times += [28_800 + number * 1440 for number in range(20)]
    times += [57_600 + number * 100 for number in range(10_000)]
    played = Play(list(map(instant, times)), page_size=100).run()
    all_delivered(played, len(times))
    assert played.seconds <= 103 / 2
    assert len(played.requests) <= most_requests(len(times), 100)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_history_that_begins_long_after_the_range_is_read_in_parallel(share: float) -> None:
    """`start_date` may lie long before the oldest event."""
    events = 5000
    first = share * RANGE_SECONDS
    times = [first + (RANGE_SECONDS - first) * number / events for number in range(events)]
    play = Play(list(map(instant, times)), window=Window(instant(0), EVER.end))
    played = play.run()
    assert played.seconds < pages_needed(events, play.page_size) / 3
    assert len(played.requests) <= most_requests(events, play.page_size)
