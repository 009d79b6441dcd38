"""Exactly which ids the watermark holds, and how many."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tap_audit_events.events.instants import EARLIEST
from tap_audit_events.extraction import watermark as module
from tap_audit_events.extraction.id_groups import Group, Known, digest_of
from tap_audit_events.extraction.watermark import IDS_HELD_BEFORE_LOOKBACK, Watermark
from tests.extraction.watermarks import (
    at,
    deliver,
    digests_in,
    digests_of,
    next_run,
    to_json,
    with_memory,
)

BOOKMARK = 1000
LOOKBACK = 60


def delivered_at(times: dict[int, int], memory: int = 10**6) -> Watermark:
    """A watermark after so many events at each time, then one at the bookmark."""
    watermark = with_memory(memory, lookback_seconds=LOOKBACK)
    for time, count in times.items():
        deliver(watermark, [(f"{time}-{n}", at(time)) for n in range(count)])
    deliver(watermark, [("newest", at(BOOKMARK))])
    return watermark


@pytest.mark.parametrize(
    ("time", "is_in_lookback"), [(399, False), (400, True), (401, True), (999, True)]
)
def test_the_first_instant_of_the_lookback_belongs_to_it(time: int, is_in_lookback: bool) -> None:
    """Ids of the lookback are held up to the memory, but only a few thousand older ones."""
    watermark = delivered_at({time: 6000})
    assert len(watermark._held) == (6001 if is_in_lookback else IDS_HELD_BEFORE_LOOKBACK)
    assert len(digests_in(watermark)) == (6001 if is_in_lookback else 1)
    assert len(deliver(watermark, [(f"{time}-0", at(time))])) == (not is_in_lookback)
    assert not watermark.forgot
    assert watermark.ids_from == at(400)
    assert watermark.reach_seconds == LOOKBACK


@pytest.mark.parametrize(("memory", "forgot"), [(6000, True), (6001, False), (6002, False)])
def test_the_memory_holds_exactly_as_many_ids_as_it_says(memory: int, forgot: bool) -> None:
    """With one id more, the oldest instant is forgotten, and the next run starts after it."""
    watermark = delivered_at({400: 1000, 500: 5000}, memory)
    assert watermark.forgot == forgot
    assert len(digests_in(watermark)) == (5001 if forgot else 6001)
    assert (at(400) < watermark.ids_from < at(401)) == forgot
    assert (watermark.ids_from == at(400)) != forgot
    assert watermark.reach_seconds == pytest.approx(60 if forgot else LOOKBACK, abs=1e-3)


def test_ids_before_ids_from_do_not_count_as_forgotten() -> None:
    """An earlier run with a shorter lookback dropped them already; they need no memory."""
    watermark = with_memory(2, at(950), ids_from=at(900), lookback_seconds=LOOKBACK)
    deliver(watermark, [("late", at(500)), ("later", at(600)), ("newest", at(BOOKMARK))])
    assert not watermark.forgot
    assert watermark.ids_from == at(900)


@pytest.mark.parametrize("until", [398, 399, 400, 401, 402])
def test_a_group_of_ids_expires_with_its_own_instant(until: int) -> None:
    """An id leaves STATE when its group's instant leaves the lookback, whatever other groups do."""
    groups = [Group(at(until), digests_of(["a", "b"])), Group(at(900), digests_of(["c"]))]
    watermark = Watermark(at(950), groups, ids_from=at(0), lookback_seconds=LOOKBACK)
    deliver(watermark, [("newest", at(BOOKMARK))])
    kept = [group.until for group in watermark.groups]
    assert kept == [at(until)] * (until >= 400) + [at(900), at(BOOKMARK)]
    again = Watermark(at(BOOKMARK), watermark.groups, lookback_seconds=LOOKBACK)
    page = [("a", at(until)), ("b", at(until - 1)), ("c", at(890)), ("newest", at(BOOKMARK))]
    assert deliver(again, page) == ([] if until >= 400 else ["a", "b"])


def test_an_id_of_a_group_is_recognized_up_to_a_second_after_the_groups_instant() -> None:
    """A later event with the same id counts as new."""
    for time, is_known in ((899, True), (900, True), (910, True), (911, False)):
        watermark = Watermark(at(950), [Group(at(900), digests_of(["a"]))], lookback_seconds=60)
        assert deliver(watermark, [("a", at(time))]) == ([] if is_known else ["a"])


def test_ids_that_are_not_unicode_text_have_digests_of_their_own() -> None:
    """A lone surrogate is part of an id like any other character."""
    assert len({digest_of(each) for each in ("\ud800", "\ud801", "\ufffd", "?")}) == 4


def test_delivering_moves_the_bookmark_by_default() -> None:
    watermark = Watermark()
    watermark.deliver(["a"], [at(3)])
    assert watermark.bookmark == at(3)


def test_a_snapshot_does_not_change() -> None:
    """A snapshot may be written as JSON after more events were delivered."""
    watermark = delivered_at({990: 2})
    snapshot, expected = watermark.snapshot(), to_json(watermark)
    deliver(watermark, [("later", at(BOOKMARK + 1)), ("late", at(BOOKMARK - 1))])
    assert to_json(snapshot) == expected != to_json(watermark)


@pytest.mark.parametrize("others", [299, 300])
def test_the_ids_of_the_bookmark_are_a_group_of_their_own(others: int) -> None:
    """They are always kept, and others would be kept with them."""
    watermark = delivered_at({600 + number: 1 for number in range(others)})
    assert len(watermark.groups[0].split()) == 2
    assert watermark.groups[-1].split() == [digest_of("newest")]


@pytest.mark.parametrize(("ties", "newest"), [(6001, 1), (1, 6001), (6001, 6001)])
def test_the_newest_events_of_a_window_out_of_order_are_remembered(ties: int, newest: int) -> None:
    """All ids of the newest instant are held, as the bookmark moves there when the window ends."""
    watermark = with_memory(6000, lookback_seconds=LOOKBACK)
    deliver(watermark, [(f"tie-{n}", at(BOOKMARK)) for n in range(ties)])
    page = [(f"newest-{n}", at(BOOKMARK + 1)) for n in range(newest)]
    deliver(watermark, page, moves_bookmark=False)
    watermark.settle(at(BOOKMARK + 1))
    assert watermark.bookmark == at(BOOKMARK + 1)
    assert deliver(next_run(watermark, LOOKBACK, memory=6000), page) == []


# What is held during a run, compared with a plain model


MEMORY, MEMORY_BEFORE = 6, 3


def plainly_trimmed(held: Sequence[Known], watermark: Watermark) -> list[Known]:
    """The ids that should be held: the oldest are dropped one by one while there are too many."""
    start, bookmark = watermark.lookback_start, watermark.bookmark or EARLIEST
    in_lookback = sum(instant >= start for instant, _ in held)
    surplus = len(held) - max(MEMORY_BEFORE, min(in_lookback, MEMORY))
    own = sum(isinstance(each, str) for _, each in held)
    newest = max(instant for instant, _ in held)
    kept: list[Known] = []
    for position, known in enumerate(held):
        is_own = isinstance(known[1], str)
        is_one_of_few = is_own and own <= MEMORY_BEFORE and known[0] != bookmark
        if surplus <= 0 or is_one_of_few or known[0] == newest:
            return [*kept, *held[position:]]
        if known[0] == bookmark:
            kept.append(known)
        else:
            surplus -= 1
            own -= is_own
    return kept


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(1, 3)), max_size=3),
    st.lists(
        st.tuples(st.lists(st.integers(0, 40), min_size=1, max_size=7), st.booleans()), max_size=6
    ),
    st.integers(1, 3),
)
@example([(0, 2), (8, 1)], [([5, 5, 40], True)], 1)  # two ids of an earlier run, one of this run
@example([], [([5] * 5, True), ([6, 7], False)], 1)  # drops all but the bookmark's and the newest
def test_the_oldest_ids_are_dropped_one_by_one(
    earlier: list[tuple[int, int]], pages: list[tuple[list[int], bool]], lookback: int
) -> None:
    """Ids of the bookmark and of the newest instant are kept, and so are a few of the run's own."""
    groups = [
        Group(at(time), digests_of(f"{time}-{n}" for n in range(count)))
        for time, count in sorted(earlier)
    ]
    bookmark = groups[-1].until if groups else None
    watermark = with_memory(MEMORY, bookmark, groups, ids_from=at(0), lookback_seconds=lookback)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "IDS_HELD_BEFORE_LOOKBACK", MEMORY_BEFORE)
        for number, (times, moves_bookmark) in enumerate(pages):
            added = [(at(time), f"{number}-{i}") for i, time in enumerate(times)]
            before: list[Known] = [*watermark._held, *added]
            watermark.deliver(
                [each for _, each in added],
                [instant for instant, _ in added],
                moves_bookmark=moves_bookmark,
            )
            held = sorted(before, key=lambda known: known[0])
            assert watermark._held == plainly_trimmed(held, watermark)
            assert watermark._ids == {each for _, each in watermark._held if isinstance(each, str)}
