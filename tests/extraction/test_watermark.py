"""What was delivered is not delivered again, and nothing else is dropped."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.instants import (
    EARLIEST,
    LATEST,
    Instant,
    later,
    parse_instant,
    whole_second,
)
from tap_audit_events.events.window import run_window
from tap_audit_events.extraction.id_groups import Group, digest_of, digests_of
from tap_audit_events.extraction.watermark import LONGEST_MEMORY_BEFORE, Watermark
from tap_audit_events.extraction.watermark_json import from_json, to_json

_START = parse_instant("2026-01-01T00:00:00Z")


def at(tenths: int) -> Instant:
    """An instant so many tenths of a second after the start."""
    whole, tenth = divmod(tenths, 10)
    moved = later(_START, seconds=whole)
    return Instant(f"{moved}.{tenth}") if tenth else moved


Event = tuple[str, Instant]

pages_of_events = st.lists(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 300)), max_size=60).map(
        lambda pairs: [(f"id-{number}", at(tenths)) for number, tenths in pairs]
    ),
    max_size=8,
)


def deliver(
    watermark: Watermark, page: Sequence[Event], *, moves_bookmark: bool = True
) -> list[str]:
    """Deliver what is fresh of a page, and say what that was."""
    ids, instants = [each[0] for each in page], [each[1] for each in page]
    fresh = watermark.fresh(ids, instants)
    watermark.deliver(
        [ids[position] for position in fresh],
        [instants[position] for position in fresh],
        moves_bookmark=moves_bookmark,
    )
    return [ids[position] for position in fresh]


def digests_in(watermark: Watermark) -> list[bytes]:
    """The digests that go into STATE."""
    return [each for group in watermark.groups for each in group.split()]


def next_run(watermark: Watermark, lookback: int, memory: int = 10**6) -> Watermark:
    """The watermark that the next run reads from STATE."""
    return from_json(to_json(watermark), lookback_seconds=lookback, longest_memory=memory)


def test_a_late_event_comes_once_even_if_the_state_is_full() -> None:
    """Its window may be requested again, although newer ids leave no room for it in STATE."""
    memory = LONGEST_MEMORY_BEFORE + 1000
    earlier = Watermark(lookback_seconds=10**4, longest_memory=memory)
    deliver(earlier, [(f"{n}", at(500 + n)) for n in range(memory)])
    watermark = next_run(earlier, lookback=10**4, memory=memory)
    late = ("late", at(500))
    assert deliver(watermark, [late]) == ["late"]
    assert deliver(watermark, [late, ("new", at(9000))]) == ["new"]
    assert deliver(watermark, [late]) == []
    assert len(digests_in(watermark)) <= memory


# Where what was read begins


Runs = list[tuple[int | None, list[int]]]


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 60), st.lists(st.integers(0, 60))), max_size=6)
)
def test_everything_from_covered_from_up_to_the_bookmark_was_read(runs: Runs) -> None:
    """Start dates that move between runs: a run reads from its start date or its bookmark on."""
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


@pytest.mark.parametrize(
    ("start", "brings", "expected"),
    [
        (None, True, at(50)),
        (60, True, at(50)),
        (100, True, at(50)),
        (101, True, at(101)),
        (101, False, at(50)),
        (None, False, at(50)),
    ],
)
def test_only_a_start_after_the_bookmark_that_brings_events_leaves_a_gap(
    start: int | None, brings: bool, expected: Instant
) -> None:
    """Otherwise the range that was read only grows."""
    watermark = Watermark(at(100), covered_from=at(50))
    watermark.start_at(None if start is None else at(start))
    assert watermark.covered_from == at(50)
    if brings:
        deliver(watermark, [("new", at(120))])
    assert watermark.covered_from == expected


@pytest.mark.parametrize("first", [None, 50])
@pytest.mark.parametrize("then", [None, 40, 60])
def test_a_run_that_fails_before_its_first_bookmark_has_passed_nothing(
    first: int | None, then: int | None
) -> None:
    """Its events came out of order: the next run begins again, at its own start date."""
    watermark = Watermark()
    watermark.start_at(None if first is None else at(first))
    deliver(watermark, [("b", at(80)), ("a", at(70))], moves_bookmark=False)
    again = next_run(watermark, lookback=1)
    assert again.bookmark == EARLIEST
    again.start_at(None if then is None else at(then))
    deliver(again, [("c", at(90))])
    assert again.covered_from == (EARLIEST if then is None else at(then))


def test_where_what_was_read_begins_may_be_unknown() -> None:
    """Until a run skips events: from then on it is known."""
    watermark = Watermark(at(100))
    watermark.start_at(at(90))
    deliver(watermark, [("a", at(110))])
    assert watermark.covered_from is None
    watermark.start_at(at(120))
    deliver(watermark, [("b", at(130))])
    assert watermark.covered_from == at(120)


# Within one run


@given(pages_of_events, st.integers(0, 40))
def test_within_the_lookback_each_id_is_delivered_once(
    pages: list[list[Event]], lookback: int
) -> None:
    """Of pages in any order, every id comes out once if the lookback covers them all."""
    watermark = Watermark(lookback_seconds=max(lookback, 31))
    delivered = [event_id for page in pages for event_id in deliver(watermark, page)]
    assert sorted(delivered) == sorted({event_id for page in pages for event_id, _ in page})


@given(pages_of_events, st.integers(0, 40), st.integers(1, 10))
def test_the_watermark_follows_a_plain_model(
    pages: list[list[Event]], lookback: int, memory: int
) -> None:
    """STATE holds every id since `ids_from`, and at most the memory besides the bookmark's ties."""
    watermark = Watermark(lookback_seconds=lookback, longest_memory=memory)
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
        _check_held(unlimited, history, memory=10**6)
        _check_held(watermark, history, memory=memory)
        assert newest >= watermark.ids_from >= floor
        assert watermark.forgot == (watermark.short_reach_seconds is not None)
        in_lookback = sum(instant >= floor for instant in history.values())
        assert watermark.forgot == (in_lookback > memory and watermark.ids_from > floor)


def _check_held(watermark: Watermark, history: dict[str, Instant], *, memory: int) -> None:
    """Each id since `ids_from` is held, and no more than the memory allows."""
    held = digests_in(watermark)
    assert len(held) == len(set(held))
    since = {digest_of(i) for i, instant in history.items() if instant >= watermark.ids_from}
    assert since <= set(held) <= set(map(digest_of, history))
    ties = sum(instant == watermark.bookmark for instant in history.values())
    assert len(held) <= max(memory, ties)
    assert watermark.groups == sorted(watermark.groups, key=lambda group: group.until)


def test_the_bookmark_never_moves_back() -> None:
    """A late event is delivered and held, and leaves the bookmark where it is."""
    watermark = Watermark(at(100), [Group(at(100), digests_of(["new"]))], lookback_seconds=60)
    assert deliver(watermark, [("late", at(50))]) == ["late"]
    assert watermark.bookmark == at(100)
    assert deliver(watermark, [("late", at(50)), ("new", at(100))]) == []
    watermark.settle(at(70))
    assert watermark.bookmark == at(100)


def test_a_page_that_repeats_an_id_delivers_it_once() -> None:
    """The same id twice in one page is one event."""
    assert deliver(Watermark(), [("a", at(0)), ("b", at(0)), ("a", at(0))]) == ["a", "b"]


def test_expired_ids_are_dropped_and_those_of_the_running_second_never() -> None:
    """Without a lookback the ids since the whole second before the bookmark are held."""
    watermark = Watermark(lookback_seconds=0)
    deliver(watermark, [("a", at(0)), ("b", at(9)), ("c", at(10)), ("d", at(25))])
    assert digests_in(watermark) == [digest_of(each) for each in ["c", "d"]]
    assert watermark.ids_from == at(10)


@pytest.mark.parametrize(("until", "is_held"), [(9, False), (10, True), (11, True)])
def test_a_group_expires_when_its_instant_leaves_the_lookback(until: int, is_held: bool) -> None:
    """A group that ends at the very start of the lookback is still held."""
    group = Group(at(until), digests_of(["a"]))
    watermark = Watermark(at(5), [group], lookback_seconds=2)
    deliver(watermark, [("b", at(30))])
    assert (digest_of("a") in digests_in(watermark)) == is_held


def test_the_last_pages_are_known_again_though_the_lookback_is_over() -> None:
    """The last five pages of 1,000 are recognized. Older ones are forgotten."""
    watermark = Watermark(lookback_seconds=1)
    pages = [[(f"{n}-{i}", at(100 * n + i // 20)) for i in range(1000)] for n in range(12)]
    for page in pages:
        assert len(deliver(watermark, page)) == 1000
    assert [len(deliver(watermark, page)) for page in pages[-5:]] == [0] * 5
    assert len(deliver(watermark, pages[0])) == 1000
    wide = Watermark(lookback_seconds=300)
    assert [len(deliver(wide, page)) for page in [*pages, *pages]] == [1000] * 12 + [0] * 12
    assert len(digests_in(wide)) == 12_000


def test_memory_in_a_run_is_bounded() -> None:
    """However many pages lie within the lookback, the ids of old ones are dropped."""
    watermark = Watermark(lookback_seconds=10**6, longest_memory=7_000)
    for page in range(30):
        deliver(watermark, [(f"{page}-{i}", at(10 * page + i // 100)) for i in range(1000)])
        assert len(watermark._held) == len(watermark._ids) <= 8_000
    assert len(digests_in(watermark)) <= 7_000
    assert watermark.ids_from > at(220)


def test_a_page_that_is_dropped_at_the_start_of_the_lookback_counts_as_forgotten() -> None:
    """Its instant is the first of the lookback, so the next run must start after it."""
    watermark = Watermark(lookback_seconds=60, longest_memory=5_000)
    for page in range(6):
        deliver(watermark, [(f"{page}-{n}", at(120 * page)) for n in range(1000)])
    assert watermark.lookback_start == at(0)
    assert len(digests_in(watermark)) == 5_000
    assert at(0) < watermark.ids_from <= at(120)
    assert watermark.forgot


def test_of_pages_out_of_order_the_oldest_are_dropped() -> None:
    """What is older goes first, not what came first."""
    watermark = Watermark(lookback_seconds=10**6, longest_memory=5_000)
    for page in reversed(range(12)):
        events = [(f"{page}-{n}", at(10 * page)) for n in range(1000)]
        deliver(watermark, events, moves_bookmark=False)
    watermark.settle(LATEST)
    assert watermark.bookmark == at(110)
    assert [group.until for group in watermark.groups] == [at(10 * page) for page in range(7, 12)]
    assert at(60) < watermark.ids_from <= at(70)


# A memory that is full


def test_beyond_the_memory_the_oldest_are_forgotten_and_not_read_again() -> None:
    """`ids_from` rises just above the newest instant that was forgotten, and the reach is told."""
    watermark = Watermark(lookback_seconds=60, longest_memory=3)
    deliver(watermark, [("a", at(0)), ("b", at(1)), ("c", at(2))])
    assert (watermark.forgot, watermark.short_reach_seconds) == (False, None)
    deliver(watermark, [("d", at(3)), ("e", at(4))])
    assert digests_in(watermark) == [digest_of(each) for each in "cde"]
    assert at(1) < watermark.ids_from < at(2)
    assert watermark.forgot
    assert watermark.short_reach_seconds == pytest.approx(0.3, abs=1e-5)


def test_an_instant_is_forgotten_as_a_whole() -> None:
    """If one id of an instant is forgotten, the next run must not read that instant."""
    watermark = Watermark(lookback_seconds=60, longest_memory=3)
    deliver(watermark, [("a", at(0)), ("b", at(1)), ("c", at(1)), ("d", at(2)), ("e", at(3))])
    assert digests_in(watermark) == [digest_of(each) for each in "de"]
    assert at(1) < watermark.ids_from <= at(2)


def test_ids_of_the_bookmarks_instant_are_always_kept() -> None:
    """The next run has to read that instant again, for ties that appear later."""
    watermark = Watermark(lookback_seconds=60, longest_memory=3)
    deliver(watermark, [("old", at(0)), *((f"tie-{n}", at(5)) for n in range(50))])
    assert len(digests_in(watermark)) == 50
    assert watermark.ids_from <= at(5)
    again = next_run(watermark, lookback=60, memory=3)
    assert deliver(again, [("tie-0", at(5)), ("tie-49", at(5)), ("new", at(5))]) == ["new"]


def test_ids_of_the_bookmarks_instant_are_kept_over_many_pages() -> None:
    """They are kept during the run as well, and do not keep ids that lie after them."""
    watermark = Watermark(lookback_seconds=60, longest_memory=3)
    for page in range(9):
        deliver(watermark, [(f"{page}-{n}", at(5)) for n in range(1000)])
    assert [group.count for group in watermark.groups] == [9000]
    for page in range(9, 20):
        events = [(f"{page}-{n}", at(10 * page)) for n in range(1000)]
        deliver(watermark, events, moves_bookmark=False)
    assert len(watermark._held) <= 9000 + 1000
    assert watermark.groups[0] == Group(at(5), watermark.groups[0].digests)
    assert watermark.groups[0].count == 9000
    assert watermark.ids_from == at(5)


def test_ids_from_does_not_rise_above_a_bookmark_that_had_to_stay() -> None:
    """Ids after it are kept as far as the memory goes; beyond it repeats are possible."""
    watermark = Watermark(at(10), lookback_seconds=60, longest_memory=3)
    page = [(f"id-{n}", at(20 + n)) for n in reversed(range(6))]
    deliver(watermark, page, moves_bookmark=False)
    assert (watermark.bookmark, watermark.ids_from) == (at(10), at(10))
    assert digests_in(watermark) == [digest_of(each) for each in ["id-3", "id-4", "id-5"]]
    watermark.settle(LATEST)
    assert watermark.bookmark == at(25)
    assert at(22) < watermark.ids_from < at(23)


# A bookmark that had to stay


def test_a_bookmark_that_had_to_stay_is_settled_by_a_run_that_finds_nothing_new() -> None:
    """The ids from STATE tell how far the earlier run came, even from the year 0001 on."""
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


def test_a_run_that_ends_early_settles_no_more_than_it_read() -> None:
    """Events after its end may still be missing."""
    failed = Watermark(lookback_seconds=60)
    deliver(failed, [("c", at(30)), ("a", at(10)), ("b", at(20))], moves_bookmark=False)
    failed.settle(at(25))
    assert failed.bookmark == at(20)
    again = next_run(failed, lookback=60)
    deliver(again, [("a", at(10))])
    again.settle(at(25))
    assert again.bookmark == at(20)
    again.settle(at(30))
    assert again.bookmark == at(30)


def test_ids_after_the_bookmark_do_not_carry_it_along() -> None:
    """What a failed run delivered in disorder does not say that all before it was delivered."""
    failed = Watermark(at(5), lookback_seconds=60)
    deliver(failed, [("z", at(90)), ("y", at(80))], moves_bookmark=False)
    again = next_run(failed, lookback=60)
    deliver(again, [("a", at(10))])
    assert again.bookmark == at(10)
    assert deliver(again, [("y", at(80)), ("z", at(90))]) == []


def test_nothing_delivered_settles_nothing() -> None:
    """A range without events leaves no bookmark."""
    watermark = Watermark()
    watermark.settle(LATEST)
    assert (watermark.bookmark, watermark.groups, watermark.ids_from) == (None, [], EARLIEST)


# From run to run


def test_a_lookback_that_was_shorter_for_one_run_is_told() -> None:
    """The ids from before are gone, so the next run does not read there again, and can say so."""
    first = Watermark(lookback_seconds=300)
    deliver(first, [("a", at(0)), ("b", at(1000))])
    short = next_run(first, lookback=0)
    short.settle(LATEST)
    assert short.short_reach_seconds is None
    last = next_run(short, lookback=300)
    assert last.ids_from == at(990)
    assert (last.forgot, last.short_reach_seconds) == (False, 1.0)
    deliver(last, [("c", at(9000))])
    assert last.short_reach_seconds is None


def test_groups_stay_few_and_small_over_many_runs() -> None:
    """A few ids a run, and hundreds of runs: a few hundred groups, and hardly an expired id."""
    watermark = Watermark(lookback_seconds=400)
    for number in range(600):
        watermark = next_run(watermark, lookback=400)
        deliver(watermark, [(f"{number}-{n}", at(10 * number)) for n in range(2)])
    groups = watermark.groups
    assert 200 <= len(groups) <= 512
    assert 2 * 401 <= sum(group.count for group in groups) <= 2 * 401 + 4
    assert max(group.count for group in groups) <= 4


@pytest.mark.parametrize("bookmark", [300, 301, 302, 597, 599])
def test_no_group_joins_the_bookmarks_instant_with_others(bookmark: int) -> None:
    """Its ids are kept however many there are; others are not kept for their sake."""
    watermark = Watermark(at(bookmark), lookback_seconds=60)
    events = [(f"id-{tenths}", at(tenths)) for tenths in range(600)]
    deliver(watermark, events, moves_bookmark=False)
    groups = watermark.groups
    assert max(group.count for group in groups) == 3
    (own,) = [group for group in groups if group.until == at(bookmark)]
    assert own.digests == digest_of(f"id-{bookmark}")
    assert sum(group.count for group in groups if group.until < at(bookmark)) == bookmark


@dataclass(frozen=True)
class Shown:
    """An event, and from which run to which run the service shows it."""

    event: Event
    first_run: int
    last_run: int


@dataclass(frozen=True)
class Settings:
    """What may differ from run to run, and how the run goes."""

    lookback: int
    end: int
    page_size: int
    in_order: bool
    stops_after: int


@st.composite
def shown_events(draw: st.DrawFn) -> list[Shown]:
    times = draw(st.lists(st.integers(0, 400), max_size=60))
    return [
        Shown((f"id-{number}", at(time)), draw(st.integers(0, 5)), draw(st.integers(0, 9)))
        for number, time in enumerate(times)
    ]


any_runs = st.lists(
    st.builds(
        Settings,
        lookback=st.sampled_from([0, 1, 5, 20, 60]),
        end=st.integers(0, 450),
        page_size=st.integers(1, 9),
        in_order=st.booleans(),
        stops_after=st.sampled_from([0, 1, 3, 99, 99, 99]),
    ),
    min_size=2,
    max_size=10,
)


def play(
    watermark: Watermark, run: Settings, visible: Sequence[Event], *, memory: int
) -> tuple[Watermark, list[str], list[str]]:
    """One run: the watermark after it, what it delivered, and what it had to deliver."""
    watermark = next_run(watermark, run.lookback, memory)
    window = run_window(
        start_date=None,
        end_date=at(run.end),
        bookmark=watermark.bookmark,
        lookback_seconds=run.lookback,
        now=at(500),
        ids_from=watermark.ids_from,
    )
    if window is None:
        return watermark, [], []
    events = [event for event in visible if window.holds(event[1])]
    events.sort(key=lambda event: event[1], reverse=not run.in_order)
    pages = [events[n : n + run.page_size] for n in range(0, len(events), run.page_size)]
    delivered = []
    for page in pages[: run.stops_after]:
        delivered += deliver(watermark, page, moves_bookmark=run.in_order)
    if len(pages) > run.stops_after:
        return watermark, delivered, []
    watermark.settle(window.end)
    return watermark, delivered, [event_id for event_id, _ in events]


@given(shown_events(), any_runs)
def test_any_runs_deliver_what_they_can_reach_once(
    shown: list[Shown], runs: list[Settings]
) -> None:
    """Any lookbacks, ends, stops and disorder: a run delivers all of its range, nothing twice."""
    watermark, everything = Watermark(), []
    for number, run in enumerate(runs):
        visible = [each.event for each in shown if each.first_run <= number <= each.last_run]
        watermark, delivered, due = play(watermark, run, visible, memory=10**6)
        everything += delivered
        assert set(due) <= set(everything)
        assert len(everything) == len(set(everything))


@given(shown_events(), any_runs, st.integers(1, 8))
def test_a_small_memory_repeats_nothing_and_loses_nothing_in_reach(
    shown: list[Shown], runs: list[Settings], memory: int
) -> None:
    """The same in order, with more ids than the memory holds: only the reach shrinks."""
    watermark, everything = Watermark(), []
    times = dict(each.event for each in shown)
    for number, run in enumerate(runs):
        visible = [each.event for each in shown if each.first_run <= number <= each.last_run]
        in_order = Settings(run.lookback, run.end, run.page_size, True, run.stops_after)
        watermark, delivered, due = play(watermark, in_order, visible, memory=memory)
        everything += delivered
        assert set(due) <= set(everything)
        assert len(everything) == len(set(everything))
        _check_held(watermark, {each: times[each] for each in everything}, memory=memory)


@given(shown_events(), any_runs, st.integers(1, 8))
def test_a_small_memory_and_disorder_lose_nothing(
    shown: list[Shown], runs: list[Settings], memory: int
) -> None:
    """Some events may be repeated after a run that failed in disorder, but all are delivered."""
    watermark, everything = Watermark(), set[str]()
    for number, run in enumerate(runs):
        visible = [each.event for each in shown if each.first_run <= number <= each.last_run]
        watermark, delivered, due = play(watermark, run, visible, memory=memory)
        everything.update(delivered)
        assert everything.issuperset(due)
        assert watermark.ids_from <= (watermark.bookmark or EARLIEST)
