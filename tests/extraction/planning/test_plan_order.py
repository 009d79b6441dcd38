"""Events out of order: none is lost, whatever windows are requested."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extraction.planning.plan_cases import concurrencies, page_sizes, seeds, shapes
from tests.extraction.planning.scheduling import Arranged, Play, with_any_timing
from tests.extraction.planning.shapes import SHAPES, Shape, drawn


def reversed_windows(positions: Sequence[int]) -> Sequence[int]:
    return positions[::-1]


def shuffled_windows(positions: Sequence[int]) -> Sequence[int]:
    return random.Random(len(positions)).sample(positions, len(positions))


def reversed_pages(positions: Sequence[int]) -> Sequence[int]:
    """The pages in order, each with its newest event first."""
    starts = range(0, len(positions), 10)
    return [each for start in starts for each in positions[start : start + 10][::-1]]


@pytest.mark.parametrize("arranged", [reversed_windows, shuffled_windows, reversed_pages])
@given(shape=shapes, page_size=page_sizes, concurrency=concurrencies, seed=seeds)
def test_windows_in_no_order_are_delivered_completely(
    arranged: Arranged, shape: Shape, page_size: int, concurrency: int, seed: int
) -> None:
    """The service's time filter finds every event of a window, and its cursor leads to the end."""
    count = 20 * page_size
    play = Play(drawn(shape, count, seed), page_size, concurrency, arranged=arranged)
    played = with_any_timing(play, seed).run()
    assert played.error is None
    assert sorted(played.delivered) == list(range(count))


@given(shapes, st.floats(0, 1), page_sizes, concurrencies, seeds)
def test_disorder_may_begin_anywhere(
    shape: Shape, share: float, page_size: int, concurrency: int, seed: int
) -> None:
    """The events from a certain one on are sent newest first, and none is lost."""
    count = 20 * page_size
    place = round(share * count)

    def arranged(positions: Sequence[int]) -> Sequence[int]:
        before = [position for position in positions if position < place]
        return [*before, *positions[len(before) :][::-1]]

    play = Play(drawn(shape, count, seed), page_size, concurrency, arranged=arranged)
    played = with_any_timing(play, seed).run()
    assert played.error is None
    assert sorted(played.delivered) == list(range(count))


@dataclass
class Displaced:
    """A service that sends one event so many places later than its time."""

    event: int
    places: int

    def __call__(self, positions: Sequence[int]) -> Sequence[int]:
        if self.event not in positions:
            return positions
        arranged = list(positions)
        index = arranged.index(self.event)
        del arranged[index]
        arranged.insert(index + self.places, self.event)
        return arranged


PAGE_SIZE = 20


def check_displaced(shape: Shape, seed: int, most_pages: int) -> None:
    """Check a run of 4 to 100 pages with one event up to so many pages later than its time."""
    rng = random.Random(seed)
    count = rng.choice([4, 20, 100]) * PAGE_SIZE
    displaced = Displaced(rng.randrange(count), rng.randint(1, most_pages * PAGE_SIZE))
    play = Play(drawn(shape, count, seed), PAGE_SIZE, 8, arranged=displaced)
    played = with_any_timing(play, seed).run() if seed % 2 else play.run()
    assert played.error is None
    assert sorted(played.delivered) == list(range(count)), displaced


@pytest.mark.parametrize(
    "most_pages", [100, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 4))]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_event_out_of_order_is_not_lost(shape: Shape, most_pages: int) -> None:
    """The event may be any number of pages late, whatever windows are cut or given up meanwhile."""
    for seed in range(12):
        check_displaced(shape, seed, most_pages)
