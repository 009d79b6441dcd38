"""What the tests of the plan draw, and what must hold at the end of each run."""

from hypothesis import strategies as st

from tests.extraction.planning.scheduling import Played, pages_needed
from tests.extraction.planning.shapes import SHAPES

shapes = st.sampled_from(SHAPES)
seeds = st.integers(0, 10**6)
page_sizes = st.sampled_from([1, 2, 3, 10, 50])
concurrencies = st.sampled_from([2, 3, 4, 8, 16])


def all_delivered(played: Played, count: int) -> None:
    assert played.error is None
    assert played.delivered == list(range(count))


def most_requests(count: int, page_size: int) -> float:
    """The bound, and one more: a second in which two windows meet is read twice."""
    return pages_needed(count, page_size) * 1.25 + 6 + 1
