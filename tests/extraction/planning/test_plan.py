"""The plan of a run: which requests it sends, how many, and which pages it delivers."""

import random
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tap_audit_events.events.instants import LATEST, Instant
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning import window_reader
from tap_audit_events.extraction.planning.plan import PAGES_HELD
from tap_audit_events.extraction.planning.request_budget import SPARE_REQUESTS, SPARE_SHARE
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
    old_tail,
)

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
    """At most 1.25 times the pages of a sequential run, plus 4, for any number of pages."""
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


@pytest.mark.parametrize(("pages", "most"), [(2, 3), (3, 3), (5, 4), (10, 4), (40, 11), (200, 24)])
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


@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_the_windows_that_were_requested_are_counted(concurrency: int) -> None:
    """A window counts from its first request on."""
    play = Play(evenly(1000), concurrency=concurrency)
    played = play.run()
    assert play.plan.windows == sum(request.offset == 0 for request in played.requests)
    assert (play.plan.windows > 1) == (concurrency > 1)


def test_the_bound_of_requests_is_as_documented() -> None:
    """The bound is a quarter more requests than a sequential run needs, and four."""
    assert (SPARE_SHARE, SPARE_REQUESTS) == (0.25, 4)


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
