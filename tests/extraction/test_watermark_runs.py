"""From run to run, each event that a run can reach is delivered once."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.instants import EARLIEST, LATEST
from tap_audit_events.events.window import run_window
from tap_audit_events.extraction.watermark import Watermark
from tests.extraction.watermarks import Event, at, check_held, deliver, next_run


def test_a_shorter_lookback_in_one_run_limits_the_reach_of_the_next() -> None:
    """The older ids were dropped, so the next run starts later and `reach_seconds` says so."""
    first = Watermark(lookback_seconds=300)
    deliver(first, [("a", at(0)), ("b", at(1000))])
    short = next_run(first, lookback=0)
    short.settle(LATEST)
    assert short.reach_seconds == 1
    last = next_run(short, lookback=300)
    assert last.ids_from == at(990)
    assert (last.forgot, last.reach_seconds) == (False, 1.0)
    deliver(last, [("c", at(9000))])
    assert last.reach_seconds == 300


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


@given(shown_events(), any_runs, st.integers(1, 8))
def test_a_small_memory_repeats_nothing_and_loses_nothing_in_reach(
    shown: list[Shown], runs: list[Settings], memory: int
) -> None:
    """If events in order have more ids than the memory holds, only the reach shrinks."""
    watermark, everything = Watermark(), []
    times = dict(each.event for each in shown)
    for number, run in enumerate(runs):
        visible = [each.event for each in shown if each.first_run <= number <= each.last_run]
        in_order = Settings(run.lookback, run.end, run.page_size, True, run.stops_after)
        watermark, delivered, due = play(watermark, in_order, visible, memory=memory)
        everything += delivered
        assert set(due) <= set(everything)
        assert len(everything) == len(set(everything))
        check_held(watermark, {each: times[each] for each in everything}, memory=memory)


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
