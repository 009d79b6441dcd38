"""What was delivered is not delivered again, and nothing else is dropped."""

from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.instants import Instant, later, parse_instant, whole_second
from tap_audit_events.extraction.watermark import Watermark

_START = parse_instant("2026-01-01T00:00:00Z")


def at(tenths: int) -> Instant:
    """An instant so many tenths of a second after the start."""
    whole, tenth = divmod(tenths, 10)
    moved = later(_START, seconds=whole)
    return Instant(f"{moved}.{tenth}") if tenth else moved


events = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 300)), max_size=60).map(
    lambda pairs: [(f"id-{number}", at(tenths)) for number, tenths in pairs]
)


def deliver(watermark: Watermark, page: list[tuple[str, Instant]]) -> list[str]:
    """Deliver what is fresh of a page, and say what that was."""
    ids, instants = [each[0] for each in page], [each[1] for each in page]
    fresh = watermark.fresh(ids)
    watermark.deliver([ids[position] for position in fresh], [instants[p] for p in fresh])
    return [ids[position] for position in fresh]


@given(st.lists(events, max_size=8), st.integers(0, 40))
def test_within_the_lookback_each_id_is_delivered_once(
    pages: list[list[tuple[str, Instant]]], lookback: int
) -> None:
    """Of pages in any order, every id comes out once as long as the lookback covers them all."""
    watermark = Watermark(lookback_seconds=max(lookback, 31))
    delivered = [event_id for page in pages for event_id in deliver(watermark, page)]
    assert sorted(delivered) == sorted({event_id for page in pages for event_id, _ in page})


@given(st.lists(events, max_size=8), st.integers(0, 40), st.integers(1, 10))
def test_the_watermark_follows_a_plain_model(
    pages: list[list[tuple[str, Instant]]], lookback: int, memory: int
) -> None:
    """Each id is fresh once; STATE holds what was delivered since the next run's start, capped."""
    watermark = Watermark(lookback_seconds=lookback, longest_memory=memory)
    unlimited = Watermark(lookback_seconds=lookback)
    history: dict[str, Instant] = {}
    for page in pages:
        first_times = dict(reversed(page))
        new = [event_id for event_id in first_times if event_id not in history]
        assert sorted(deliver(unlimited, page)) == sorted(new)
        history |= {event_id: first_times[event_id] for event_id in new}
        deliver(watermark, page)
        assert len(watermark.ids) <= memory
    if history:
        newest = max(history.values())
        floor = whole_second(later(newest, seconds=-max(lookback, 1)))
        assert unlimited.bookmark == newest
        assert set(unlimited.ids) == {i for i, instant in history.items() if instant >= floor}


def test_the_bookmark_never_moves_back() -> None:
    """A late event is delivered and held, and leaves the bookmark where it is."""
    watermark = Watermark(at(100), ["new"], lookback_seconds=60)
    assert deliver(watermark, [("late", at(50))]) == ["late"]
    assert watermark.bookmark == at(100)
    assert deliver(watermark, [("late", at(50)), ("new", at(100))]) == []


def test_a_page_that_repeats_an_id_delivers_it_once() -> None:
    """The same id twice in one page is one event."""
    assert deliver(Watermark(), [("a", at(0)), ("b", at(0)), ("a", at(0))]) == ["a", "b"]


def test_expired_ids_are_dropped_and_those_of_the_running_second_never() -> None:
    """Without a lookback the ids since the whole second before the bookmark are held."""
    watermark = Watermark(lookback_seconds=0)
    deliver(watermark, [("a", at(0)), ("b", at(9)), ("c", at(10)), ("d", at(25))])
    assert watermark.ids == ["c", "d"]


def test_the_last_pages_are_known_again_though_the_lookback_is_over() -> None:
    """A service may repeat a page; a page from long before is forgotten, and never within it."""
    watermark = Watermark(lookback_seconds=1)
    pages = [[(f"{n}-{i}", at(100 * n + i // 20)) for i in range(1000)] for n in range(6)]
    for page in pages:
        assert len(deliver(watermark, page)) == 1000
    assert deliver(watermark, pages[4]) == deliver(watermark, pages[5]) == []
    assert len(deliver(watermark, pages[0])) == 1000
    wide = Watermark(lookback_seconds=60)
    assert [len(deliver(wide, page)) for page in [*pages, *pages]] == [1000] * 6 + [0] * 6
    assert len(wide.ids) == 6000


def test_over_the_cap_the_oldest_are_forgotten_and_it_says_so() -> None:
    """A memory that is full makes repeats possible, never losses."""
    watermark = Watermark(lookback_seconds=60, longest_memory=3)
    deliver(watermark, [("a", at(0)), ("b", at(1)), ("c", at(2))])
    assert [watermark.forgot] == [False]
    deliver(watermark, [("d", at(3)), ("e", at(4))])
    assert watermark.ids == ["c", "d", "e"]
    assert deliver(watermark, [("a", at(0)), ("e", at(4))]) == ["a"]
    assert [watermark.forgot] == [True]
