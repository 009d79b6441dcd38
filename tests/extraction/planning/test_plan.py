"""The plan of a run: which requests it sends, how many, and which pages it delivers."""

import random
from itertools import chain, pairwise
from statistics import mean

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tap_audit_events.events.instants import LATEST, Instant
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning import window_reader
from tap_audit_events.extraction.planning.plan import (
    PAGES_HELD,
)
from tap_audit_events.extraction.planning.request_budget import SPARE_REQUESTS, SPARE_SHARE
from tap_audit_events.extraction.planning.window_reader import Request
from tests.extraction.planning.plan_cases import (
    all_delivered,
    concurrencies,
    page_sizes,
    seeds,
    shapes,
)
from tests.extraction.planning.scheduling import (
    EVER,
    RANGE_SECONDS,
    Play,
    Sent,
    evenly,
    instant,
    pages_needed,
    with_any_timing,
)
from tests.extraction.planning.shapes import (
    SHAPES,
    Shape,
    drawn,
    even,
    growing,
    office_hours,
    old_tail,
)


def most_requests(count: int, page_size: int) -> float:
    return pages_needed(count, page_size) * 1.25 + 3


EXCESS = 2
"""Requests beyond that bound, at most, if many pages were expected and few came."""


# What is delivered


def check_run(shape: Shape, count: int, page_size: int, concurrency: int, seed: int) -> None:
    """Check that each event is delivered once, in order, with few requests and bounded memory."""
    count = min(count, 40 * page_size)
    play = Play(drawn(shape, count, seed), page_size=page_size, concurrency=concurrency)
    played = with_any_timing(play, seed).run()
    all_delivered(played, count)
    assert len(played.requests) <= most_requests(count, page_size) + EXCESS
    assert max(played.in_flight) <= concurrency
    assert played.most_held <= PAGES_HELD + 1
    assert played.disordered == 0


@given(shapes, st.integers(0, 1500), page_sizes, concurrencies, seeds)
def test_every_event_is_delivered_once_and_in_order_with_few_requests(
    shape: Shape, count: int, page_size: int, concurrency: int, seed: int
) -> None:
    """This holds for any distribution of events and any timing of responses and of the target."""
    check_run(shape, count, page_size, concurrency, seed)


@pytest.mark.long
@settings(max_examples=1000)
@given(shapes, st.integers(0, 2000), page_sizes, concurrencies, seeds)
def test_every_event_is_delivered_once_in_a_thousand_runs(
    shape: Shape, count: int, page_size: int, concurrency: int, seed: int
) -> None:
    """The same property holds in many more examples."""
    check_run(shape, count, page_size, concurrency, seed)


@given(shapes, st.integers(0, 400), st.floats(0, 1), st.floats(0, 1), seeds)
def test_a_range_is_read_from_its_start_to_its_end(
    shape: Shape, count: int, start: float, end: float, seed: int
) -> None:
    """Events outside of the range are not delivered, even if they share a second with it."""
    instants = drawn(shape, count, seed)
    start, end = sorted([start, end])
    window = Window(instant(start * RANGE_SECONDS), instant(end * RANGE_SECONDS))
    played = with_any_timing(Play(instants, page_size=5, window=window), seed).run()
    assert played.error is None
    inside = [place for place, moment in enumerate(instants) if window.holds(moment)]
    assert played.delivered == inside


@pytest.mark.parametrize("count", [0, 3, 999, 1000])
@pytest.mark.parametrize("window", [EVER, Window(instant(0), EVER.end)])
def test_events_of_one_page_take_one_request(count: int, window: Window) -> None:
    """If the first page has no cursor, the run is done."""
    played = Play(drawn(even, count, seed=1), page_size=1000, window=window).run()
    all_delivered(played, count)
    assert played.requests == [Sent(window.start, window.end, 0, 0)]


@given(shapes, st.integers(0, 300), page_sizes, seeds)
def test_concurrency_1_is_the_sequential_run(
    shape: Shape, count: int, page_size: int, seed: int
) -> None:
    """Each page is requested with the cursor of the one before, and nothing else is requested."""
    play = Play(drawn(shape, count, seed), page_size=page_size, concurrency=1)
    played = with_any_timing(play, seed).run()
    all_delivered(played, count)
    places = [number * page_size for number in range(pages_needed(count, page_size))]
    assert played.requests == [Sent(None, EVER.end, place, place) for place in places]
    assert set(played.in_flight) == {1}
    assert played.repeats == 0


# How many requests


@pytest.mark.parametrize("shape", SHAPES)
def test_requests_stay_few_over_uneven_data(shape: Shape) -> None:
    """At most 1.25 times the pages of a sequential run, plus 3, for any number of pages."""
    for seed, pages in enumerate([1, 2, 3, 4, 5, 8, 12, 20, 50, 200]):
        count = pages * 20 - seed
        played = Play(drawn(shape, count, seed), page_size=20).run()
        all_delivered(played, count)
        assert len(played.requests) <= most_requests(count, 20), (shape.__name__, seed)


blocks = st.tuples(
    st.floats(0, RANGE_SECONDS / 2), st.sampled_from([0.2, 720, 36_000]), st.integers(1, 500)
)


@given(
    st.lists(blocks, min_size=1, max_size=4), st.sampled_from([20, 50, 100]), concurrencies, seeds
)
@example([(2253.997, 3600, 105), (149046.572, 36_000, 495)], 100, 8, 7)
@example([(328292.67, 0.2, 65), (14643.76, 36_000, 184), (594.77, 720, 1)], 50, 8, 1)
def test_requests_stay_few_over_blocks_with_nothing_between(
    runs: list[tuple[float, float, int]], page_size: int, concurrency: int, seed: int
) -> None:
    """Dense blocks between empty ranges need two requests more at most.

    Then many more pages were expected after a block than came.
    """
    instants = sorted(
        instant(start + seconds * number / count)
        for start, seconds, count in runs
        for number in range(count)
    )
    rng = random.Random(seed)
    play = Play(instants, page_size=page_size, concurrency=concurrency)
    play.response_seconds = lambda: rng.choice([0.1, 1.0, 20.0])
    played = play.run()
    all_delivered(played, len(instants))
    assert len(played.requests) <= most_requests(len(instants), page_size) + EXCESS


@pytest.mark.parametrize("count", [1000, 5000])
def test_nothing_is_cut_after_the_last_instant(count: int) -> None:
    """Events at the end of the year 9999 are read by one cursor."""
    end = Window(None, Instant("9999-12-31T23:59:59.99"))
    played = Play([LATEST] * count, page_size=50, window=end).run()
    all_delivered(played, count)
    assert len(played.requests) <= most_requests(count, 50)


@pytest.mark.parametrize(("pages", "most"), [(2, 3), (3, 3), (5, 3), (10, 4), (40, 10), (200, 24)])
def test_an_empty_tail_is_cheap(pages: int, most: int) -> None:
    """If the events ended long ago, the rest of the range is cut into ever larger windows."""
    played = Play(drawn(old_tail, pages * 50, seed=pages)).run()
    all_delivered(played, pages * 50)
    empty = [request for request in played.requests if request.position == pages * 50]
    assert len(empty) <= most


@given(shapes, st.integers(200, 1500), concurrencies, seeds)
def test_the_windows_tile_the_range(shape: Shape, count: int, concurrency: int, seed: int) -> None:
    """However windows are cut and given up, each instant belongs to exactly one window."""
    play = Play(drawn(shape, count, seed), page_size=10, concurrency=concurrency)
    with_any_timing(play, seed)
    while not play.plan.is_done:
        play.step()
        windows = [reader.window for reader in play.plan._readers]
        for window, following in pairwise(windows):
            is_given_up = window.start == following.start
            assert is_given_up or window.until == following.start
        assert not windows or windows[-1].until is None


# How fast


@pytest.mark.parametrize(("concurrency", "times"), [(8, 5.7), (4, 3.3), (2, 1.7)])
def test_requests_in_flight_save_time(concurrency: int, times: float) -> None:
    """Two hundred pages of even events are read; a second is the time of one response."""
    instants = evenly(200 * 100)
    assert Play(instants, page_size=100, concurrency=1).run().seconds == 200
    played = Play(instants, page_size=100, concurrency=concurrency).run()
    all_delivered(played, 200 * 100)
    assert times * played.seconds <= 200
    assert max(played.in_flight) == concurrency


@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_the_windows_that_were_requested_are_counted(concurrency: int) -> None:
    """A window counts from its first request on."""
    play = Play(evenly(1000), concurrency=concurrency)
    played = play.run()
    assert play.plan.windows == sum(request.offset == 0 for request in played.requests)
    assert (play.plan.windows > 1) == (concurrency > 1)


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


@pytest.mark.parametrize(("pages", "times_as_fast"), [(8, 0.95), (15, 1.2), (30, 2)])
def test_a_short_run_does_not_waste_its_windows(pages: int, times_as_fast: float) -> None:
    """Many workers do not use up the budget at once, which would leave the rest to one cursor."""
    events = pages * 100
    plays = [Play(drawn(office_hours, events, seed), page_size=100).run() for seed in range(10)]
    for played in plays:
        all_delivered(played, events)
    assert mean(played.seconds for played in plays) <= pages / times_as_fast


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


def test_the_bound_of_requests_is_as_documented() -> None:
    """The bound is a quarter more requests than a sequential run needs, and three."""
    assert (SPARE_SHARE, SPARE_REQUESTS) == (0.25, 3)


# Windows that are given up


@pytest.mark.parametrize(("most", "repeats"), [(49, 0), (50, 50)])
def test_a_window_is_given_up_only_if_its_delivered_events_are_remembered(
    most: int, repeats: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it is requested again, and the watermark remembers only so many events."""
    monkeypatch.setattr(window_reader, "MAX_TAKEN_EVENTS", most)
    play = Play(evenly(4000))
    play.step()
    first = play.plan.next_page()
    assert first is not None
    play._take(first)
    played = play.run()
    all_delivered(played, 4000)
    assert played.repeats == repeats


def test_a_window_that_cannot_be_cut_is_not_given_up() -> None:
    """All of its pages would be requested again for nothing."""
    window = Window(instant(0), instant(2))
    played = Play([instant(number / 500) for number in range(1000)], window=window).run()
    all_delivered(played, 1000)
    assert len(played.requests) == pages_needed(1000, 50)
