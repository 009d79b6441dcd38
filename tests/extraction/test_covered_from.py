"""The time from which everything up to the bookmark was read."""

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


def test_the_start_of_the_covered_range_may_be_unknown() -> None:
    """The start is unknown until a run skips events."""
    watermark = Watermark(at(100))
    watermark.start_at(at(90))
    deliver(watermark, [("a", at(110))])
    assert watermark.covered_from is None
    watermark.start_at(at(120))
    deliver(watermark, [("b", at(130))])
    assert watermark.covered_from == at(120)
