"""How fast a plan reads a history: a second is the time of one response."""

import random
from collections.abc import Sequence
from itertools import chain
from statistics import mean

import pytest

from tap_audit_events.events.instants import Instant
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.window_reader import Request
from tests.extraction.planning.plan_cases import all_delivered, most_requests
from tests.extraction.planning.scheduling import (
    EVER,
    RANGE_SECONDS,
    Play,
    Sent,
    evenly,
    instant,
    pages_needed,
)
from tests.extraction.planning.shapes import (
    Shape,
    bursts,
    drawn,
    even,
    growing,
    growing_steadily,
    office_hours,
)


def mean_seconds(histories: Sequence[Sequence[Instant]], concurrency: int) -> float:
    return mean(
        Play(each, page_size=100, concurrency=concurrency).run().seconds for each in histories
    )


@pytest.mark.parametrize(("concurrency", "times"), [(8, 5.7), (4, 3.3), (2, 1.7)])
def test_requests_in_flight_save_time(concurrency: int, times: float) -> None:
    """Two hundred pages of even events are read."""
    instants = evenly(200 * 100)
    assert Play(instants, page_size=100, concurrency=1).run().seconds == 200
    played = Play(instants, page_size=100, concurrency=concurrency).run()
    all_delivered(played, 200 * 100)
    assert times * played.seconds <= 200
    assert max(played.in_flight) == concurrency


def test_office_hours_take_hardly_longer_than_even_data() -> None:
    """Nights lead neither to empty windows nor to a window for which the others wait."""
    plays = [
        [Play(drawn(shape, 20_000, seed), page_size=100).run() for seed in range(3)]
        for shape in (office_hours, even)
    ]
    for played in chain(*plays):
        all_delivered(played, 20_000)
    by_office_hours, evenly_spread = [mean(played.seconds for played in each) for each in plays]
    assert by_office_hours <= 1.2 * evenly_spread


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_a_day_after_a_night_is_not_left_to_one_cursor(seed: int) -> None:
    """The first page covers hours with few events, and does not predict the day after them."""
    rng, opens, closes = random.Random(seed), 8 * 3600, 18 * 3600
    times = [
        day * 86_400 + rng.uniform(begin, end)
        for day in range(30)
        for count, begin, end in ((20, 0, opens), (3300, opens, closes), (40, closes, 86_400))
        for _ in range(count)
    ]
    played = Play(sorted(map(instant, times)), page_size=100).run()
    all_delivered(played, len(times))
    assert max(request.offset for request in played.requests) < 45 * 100
    assert played.seconds <= 1008 / 5.3


@pytest.mark.parametrize(("pages", "times_as_fast"), [(8, 1.2), (15, 1.5), (30, 2.4)])
def test_a_short_run_does_not_waste_its_windows(pages: int, times_as_fast: float) -> None:
    """Many workers do not use up the budget at once, which would leave the rest to one cursor."""
    events = pages * 100
    plays = [Play(drawn(office_hours, events, seed), page_size=100).run() for seed in range(10)]
    for played in plays:
        all_delivered(played, events)
    assert mean(played.seconds for played in plays) <= pages / times_as_fast


@pytest.mark.parametrize("concurrency", [16, 32])
@pytest.mark.parametrize("shape", [even, office_hours])
@pytest.mark.parametrize("pages", [30, 60, 100])
def test_more_workers_do_not_slow_a_run_down(pages: int, shape: Shape, concurrency: int) -> None:
    """Windows are not cut so small, for workers the budget cannot afford, that it is used up."""
    histories = [drawn(shape, pages * 100, seed) for seed in range(6)]
    assert mean_seconds(histories, concurrency) <= 1.3 * mean_seconds(histories, 8)


@pytest.mark.parametrize("concurrency", [16, 32])
def test_more_workers_do_not_slow_down_a_history_that_grows_steadily(concurrency: int) -> None:
    """Windows for fewer workers would turn out too large, as far more events follow later."""
    histories = [drawn(growing_steadily, 40_000, seed) for seed in range(2)]
    assert mean_seconds(histories, concurrency) <= mean_seconds(histories, 8)


def test_a_used_up_budget_does_not_leave_the_rest_to_one_cursor() -> None:
    """The first windows end in a quiet evening and night, which waste the first requests."""
    times = [number * 20 for number in range(100)]
    times += [2000 + number * 100 for number in range(150)]
    times += [28_800 + number * 1440 for number in range(20)]
    times += [57_600 + number * 100 for number in range(10_000)]
    played = Play(list(map(instant, times)), page_size=100).run()
    all_delivered(played, len(times))
    assert played.seconds <= 103 / 2.8
    assert len(played.requests) <= most_requests(len(times), 100)


@pytest.mark.parametrize("concurrency", [8, 16, 32])
def test_a_used_up_budget_is_earned_back(concurrency: int) -> None:
    """Bursts use up the budget; one window at a time, each too small, would never earn it back."""
    events = drawn(bursts, 10_000, seed=6)
    played = Play(events, page_size=100, concurrency=concurrency).run()
    all_delivered(played, 10_000)
    assert played.seconds <= 75
    assert len(played.requests) <= most_requests(10_000, 100)


@pytest.mark.parametrize(("concurrency", "seconds"), [(4, 50), (8, 40)])
def test_a_first_weekend_does_not_make_the_first_windows_far_too_large(
    concurrency: int, seconds: float
) -> None:
    """The days that follow are twenty times as busy: one cursor would read two thirds of them."""
    quiet = [2 * 86_400 + number * 864 for number in range(200)]
    busy = [4 * 86_400 + number * 43.2 for number in range(10_000)]
    played = Play(list(map(instant, [*quiet, *busy])), page_size=100, concurrency=concurrency).run()
    all_delivered(played, 10_200)
    assert played.seconds <= seconds


def test_dense_parts_are_cut_again() -> None:
    """Events that suddenly become eighty times as dense are not left to a single cursor."""
    sparse = [instant(number * 864) for number in range(2000)]
    dense = [instant(25 * 86400 + number * 10.8) for number in range(8000)]
    played = Play([*sparse, *dense]).run()
    all_delivered(played, 10_000)
    starts = {request.start for request in played.requests if request.position > 2000}
    assert len(starts) > 3
    assert played.seconds <= 200 / 1.5


@pytest.mark.parametrize("seed", range(5))
def test_a_history_that_grows_is_read_in_parallel(seed: int) -> None:
    """At its start, fewer events are expected than arrive; the range is cut nevertheless."""
    events = drawn(growing, 10_000, seed)
    played = Play(events, page_size=100).run()
    all_delivered(played, 10_000)
    assert played.seconds < 100 / 2.5


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


class EmptyPagesFirst(Play):
    """The service sends three pages without events before the first page of a cut window."""

    def _respond(self, request: Request) -> tuple[Sent, Page]:
        cursor = request.cursor or ""
        sent, page = super()._respond(request._replace(cursor=cursor.strip("+") or None))
        if self.played.requests and cursor in ("", "+", "++"):
            return sent, Page(next_cursor=f"{cursor}+")
        return sent, page


def test_empty_pages_do_not_make_a_window_empty() -> None:
    """Windows stay as small as others, so that many are read in parallel."""
    played = EmptyPagesFirst(evenly(10_000)).run()
    all_delivered(played, 10_000)
    assert len(played.windows) > 25


def test_a_burst_is_cut() -> None:
    """A day with half of all events is not read as one window by one cursor."""
    longest, seconds = [], []
    for seed in range(8):
        rng = random.Random(seed)
        times = [rng.random() * RANGE_SECONDS for _ in range(5000)]
        times += [12 * 86400 + rng.random() * 86400 for _ in range(5000)]
        played = Play(sorted(map(instant, times))).run()
        all_delivered(played, 10_000)
        longest.append(max(request.offset for request in played.requests))
        seconds.append(played.seconds)
    assert mean(longest) < 90 * 50
    assert mean(seconds) <= 200 / 1.8
