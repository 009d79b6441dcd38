"""The plan of a run: which requests it sends, how many, and which pages it delivers."""

import random
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tap_audit_events.events.instants import LATEST, Instant
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.plan import PAGES_HELD
from tests.extraction.planning.plan_cases import (
    all_delivered,
    concurrencies,
    most_requests,
    page_sizes,
    seeds,
    shapes,
)
from tests.extraction.planning.scheduling import (
    EVER,
    RANGE_SECONDS,
    Play,
    Sent,
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
    old_tail,
)

# What is delivered


def check_run(shape: Shape, count: int, page_size: int, concurrency: int, seed: int) -> None:
    """Check that each event is delivered once, in order, with few requests and bounded memory."""
    count = min(count, 40 * page_size)
    play = Play(drawn(shape, count, seed), page_size=page_size, concurrency=concurrency)
    played = with_any_timing(play, seed).run()
    all_delivered(played, count)
    assert len(played.requests) <= most_requests(count, page_size)
    assert max(played.in_flight) <= concurrency
    assert played.most_held <= PAGES_HELD + 1
    assert played.disordered == 0


@given(shapes, st.integers(0, 1500), page_sizes, concurrencies, seeds)
def test_every_event_is_delivered_once_and_in_order_with_few_requests(
    shape: Shape, count: int, page_size: int, concurrency: int, seed: int
) -> None:
    """This holds for any distribution of events and any timing of responses and of the target."""
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
    """The bound holds for any number of pages."""
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
@example([(0.0, 0.2, 99), (0.0, 720, 112), (1.0, 720, 122)], 50, 3, 115)
@example([(328292.67, 0.2, 65), (14643.76, 36_000, 184), (594.77, 720, 1)], 50, 8, 1)
def test_requests_stay_few_over_blocks_with_nothing_between(
    runs: list[tuple[float, float, int]], page_size: int, concurrency: int, seed: int
) -> None:
    """Many more pages were expected after a block than come."""
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
    assert len(played.requests) <= most_requests(len(instants), page_size)


@pytest.mark.parametrize("count", [1000, 5000])
def test_nothing_is_cut_after_the_last_instant(count: int) -> None:
    """Events at the end of the year 9999 are read by one cursor."""
    end = Window(None, Instant("9999-12-31T23:59:59.99"))
    played = Play([LATEST] * count, page_size=50, window=end).run()
    all_delivered(played, count)
    assert len(played.requests) <= most_requests(count, 50)


@pytest.mark.parametrize("pages", [2, 10, 200])
def test_an_empty_tail_is_cheap(pages: int) -> None:
    """If the events ended long ago, the rest of the range is cut into ever larger windows."""
    played = Play(drawn(old_tail, pages * 50, seed=pages)).run()
    all_delivered(played, pages * 50)
    empty = [request for request in played.requests if request.position == pages * 50]
    assert len(empty) <= 6 + pages / 8


@given(shapes, st.integers(200, 1500), concurrencies, seeds)
def test_the_windows_tile_the_range(shape: Shape, count: int, concurrency: int, seed: int) -> None:
    """However windows are cut and given up, each instant belongs to exactly one window."""
    play = Play(drawn(shape, count, seed), page_size=10, concurrency=concurrency)
    with_any_timing(play, seed)
    while not play.plan.is_done:
        play.step()
        windows = [reader.window for reader in play.plan._readers]
        for window, following in pairwise(windows):
            assert window.until == following.start
        assert not windows or windows[-1].until is None


# Windows that are given up


def test_a_window_that_is_given_up_delivers_nothing_twice() -> None:
    """Its first page is held back until that is decided."""
    played = Play(drawn(growing, 10_000, seed=0), page_size=100).run()
    all_delivered(played, 10_000)
    repeated = len(played.requests) - len({(each.start, each.offset) for each in played.requests})
    assert repeated > 0
    assert played.repeats == 0
