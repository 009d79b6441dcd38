"""Events that were delivered are not delivered again, and no others are dropped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.instants import EARLIEST, LATEST, Instant, later, whole_second
from tap_audit_events.extraction.id_groups import digest_of
from tap_audit_events.extraction.watermark import Watermark
from tests.extraction.watermarks import (
    Event,
    at,
    check_held,
    deliver,
    digests_in,
    next_run,
    pages_of_events,
    with_memory,
)

# Within one run


@given(pages_of_events, st.integers(0, 40), st.integers(1, 10))
def test_the_watermark_follows_a_plain_model(
    pages: list[list[Event]], lookback: int, memory: int
) -> None:
    """STATE holds each id since `ids_from`, but no more than the memory or the bookmark's ties."""
    watermark = with_memory(memory, lookback_seconds=lookback)
    unlimited = Watermark(lookback_seconds=lookback)
    history: dict[str, Instant] = {}
    for page in pages:
        for event_id, instant in page:
            history.setdefault(event_id, instant)
        deliver(watermark, page)
        deliver(unlimited, page)
        if not history:
            continue
        newest = max(history.values())
        floor = whole_second(later(newest, seconds=-max(lookback, 1)))
        assert watermark.bookmark == unlimited.bookmark == newest
        assert (unlimited.ids_from, unlimited.forgot) == (floor, False)
        check_held(unlimited, history, memory=10**6)
        check_held(watermark, history, memory=memory)
        assert newest >= watermark.ids_from >= floor
        assert watermark.forgot == (watermark.ids_from > watermark.lookback_start)
        in_lookback = sum(instant >= floor for instant in history.values())
        assert watermark.forgot == (in_lookback > memory and watermark.ids_from > floor)


def test_memory_in_a_run_is_bounded() -> None:
    """However many pages lie within the lookback, the oldest ids are dropped."""
    watermark = with_memory(7_000, lookback_seconds=10**6)
    for page in range(30):
        deliver(watermark, [(f"{page}-{i}", at(10 * page + i // 100)) for i in range(1000)])
        assert len(watermark._held) == len(watermark._ids) <= 8_000
    assert len(digests_in(watermark)) <= 7_000
    assert watermark.ids_from > at(220)


# A memory that is full


def test_ids_beyond_the_memory_are_forgotten_and_their_time_is_not_read_again() -> None:
    """`ids_from` rises just above the newest forgotten instant, and `reach_seconds` shrinks."""
    watermark = with_memory(3, lookback_seconds=60)
    deliver(watermark, [("a", at(0)), ("b", at(1)), ("c", at(2))])
    assert (watermark.forgot, watermark.reach_seconds) == (False, 60.2)
    deliver(watermark, [("d", at(3)), ("e", at(4))])
    assert digests_in(watermark) == [digest_of(each) for each in "cde"]
    assert at(1) < watermark.ids_from < at(2)
    assert watermark.forgot
    assert watermark.reach_seconds == pytest.approx(0.3, abs=1e-5)


def test_ids_of_the_bookmarks_instant_are_always_kept() -> None:
    """The next run has to read that instant again, for ties that appear later."""
    watermark = with_memory(3, lookback_seconds=60)
    deliver(watermark, [("old", at(0)), *((f"tie-{n}", at(5)) for n in range(50))])
    assert len(digests_in(watermark)) == 50
    assert watermark.ids_from <= at(5)
    again = next_run(watermark, lookback=60, memory=3)
    assert deliver(again, [("tie-0", at(5)), ("tie-49", at(5)), ("new", at(5))]) == ["new"]


def test_ids_from_does_not_rise_above_a_bookmark_that_had_to_stay() -> None:
    """The newest ids after the bookmark are kept, up to the memory; others may be repeated."""
    watermark = with_memory(3, at(10), lookback_seconds=60)
    page = [(f"id-{n}", at(20 + n)) for n in reversed(range(6))]
    deliver(watermark, page, moves_bookmark=False)
    assert (watermark.bookmark, watermark.ids_from) == (at(10), at(10))
    assert digests_in(watermark) == [digest_of(each) for each in ["id-3", "id-4", "id-5"]]
    watermark.settle(LATEST)
    assert watermark.bookmark == at(25)
    assert at(22) < watermark.ids_from < at(23)


def test_within_a_run_an_event_of_a_bookmark_that_had_to_stay_is_recognized(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of too many ids, those of events after the bookmark are dropped first."""
    monkeypatch.setattr("tap_audit_events.extraction.watermark.IDS_HELD_BEFORE_LOOKBACK", 2)
    watermark = with_memory(2)
    deliver(watermark, [("tie", at(10))])
    for time in (50, 40, 30, 20):
        deliver(watermark, [(f"{time}", at(time))], moves_bookmark=False)
    assert deliver(watermark, [("tie", at(10))]) == []


def test_an_event_is_recognized_if_it_is_repeated_with_more_digits() -> None:
    """A service may show newer events with another precision than older ones."""
    watermark = Watermark(lookback_seconds=60)
    deliver(watermark, [("a", Instant(f"{at(50)}.123"))])
    again = next_run(watermark, lookback=60)
    assert deliver(again, [("a", Instant(f"{at(50)}.123456")), ("b", at(52))]) == ["b"]


@pytest.mark.parametrize("others", [["b"], ["b", "b"]])
def test_events_after_those_of_earlier_runs_are_not_compared_by_digest(others: list[str]) -> None:
    """Two ids may have the same digest, so only events of the earlier runs' time are compared."""
    watermark = Watermark(lookback_seconds=60)
    deliver(watermark, [("a", at(50))])
    again = next_run(watermark, lookback=60)
    assert deliver(again, [(each, at(61)) for each in [*others, "a"]]) == ["b", "a"]


# A bookmark that had to stay


def test_a_bookmark_that_had_to_stay_is_settled_by_a_run_that_finds_nothing_new() -> None:
    """The ids in STATE show how far the failed run read, even if its bookmark was the year 0001."""
    failed = Watermark(lookback_seconds=60)
    page = [("b", at(20)), ("a", at(10))]
    deliver(failed, page, moves_bookmark=False)
    assert failed.bookmark == EARLIEST
    again = next_run(failed, lookback=60)
    assert again.bookmark == EARLIEST
    assert deliver(again, page, moves_bookmark=False) == []
    again.settle(LATEST)
    assert again.bookmark == at(20)
    assert len(digests_in(again)) == 2
