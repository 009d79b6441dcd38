"""The time from which everything up to the bookmark was read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.instants import EARLIEST
from tap_audit_events.extraction.watermark import Watermark
from tests.extraction.watermarks import at, deliver, next_run

Runs = list[tuple[int | None, list[int]]]


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 60), st.lists(st.integers(0, 60))), max_size=6)
)
def test_everything_from_covered_from_up_to_the_bookmark_was_read(runs: Runs) -> None:
    """The start date changes between runs; a run reads from the later of it and its bookmark."""
    watermark = Watermark()
    was_read: set[int] = set()
    for start, seconds in runs:
        start_date = None if start is None else at(10 * start)
        watermark.start_at(start_date)
        reached = watermark.bookmark
        begin = max(start or 0, next(s for s in range(61) if at(10 * s) >= (reached or EARLIEST)))
        brought = sorted(each for each in seconds if each >= begin)
        deliver(watermark, [(f"{each}", at(10 * each)) for each in brought])
        was_read.update(range(begin, brought[-1] + 1) if brought else ())
        watermark = next_run(watermark, lookback=1)
        if watermark.bookmark is None:
            continue
        covered_from = watermark.covered_from
        assert covered_from is not None
        for second in range(61):
            if covered_from <= at(10 * second) <= watermark.bookmark:
                assert second in was_read


@pytest.mark.parametrize("first", [None, 50])
@pytest.mark.parametrize("then", [None, 40])
def test_a_run_that_fails_before_its_first_bookmark_covers_nothing(
    first: int | None, then: int | None
) -> None:
    """Its events were out of order, so the next run begins again at its own start date."""
    watermark = Watermark()
    watermark.start_at(None if first is None else at(first))
    deliver(watermark, [("b", at(80)), ("a", at(70))], moves_bookmark=False)
    again = next_run(watermark, lookback=1)
    assert again.bookmark == EARLIEST
    again.start_at(None if then is None else at(then))
    deliver(again, [("c", at(90))])
    assert again.covered_from == (EARLIEST if then is None else at(then))


def test_the_start_of_the_covered_range_may_be_unknown() -> None:
    """The start is unknown until a run skips events."""
    watermark = Watermark(at(100))
    watermark.start_at(at(90))
    deliver(watermark, [("a", at(110))])
    assert watermark.covered_from is None
    watermark.start_at(at(120))
    deliver(watermark, [("b", at(130))])
    assert watermark.covered_from == at(120)
