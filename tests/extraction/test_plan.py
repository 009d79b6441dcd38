"""Requests ahead, pages in order: what is asked for, what is handed out, and how long it takes."""

import gc
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import CursorRefusedError, ServiceError, service_error
from tap_audit_events.events.instants import EARLIEST, LATEST, Instant
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.plan import BYTES_AHEAD, PAGES_AHEAD, SPARE_REQUESTS, SPARE_SHARE
from tap_audit_events.extraction.window_reader import Permission, Reading
from tests.extraction.scheduling import (
    EVER,
    RANGE_SECONDS,
    Arranged,
    Play,
    Played,
    Request,
    instant,
    pages_needed,
)
from tests.extraction.shapes import SHAPES, Shape, drawn, even, old_tail, one_second

shapes = st.sampled_from(SHAPES)
seeds = st.integers(0, 10**6)
page_sizes = st.sampled_from([1, 2, 3, 10, 50])
concurrencies = st.sampled_from([2, 3, 4, 8, 16])
ONE_PAGE_BYTES = 20 * 1024 * 1024


def most_requests(count: int, page_size: int) -> float:
    return pages_needed(count, page_size) * (1 + SPARE_SHARE) + SPARE_REQUESTS


def evenly(count: int) -> list[Instant]:
    return [instant((number + 0.5) * RANGE_SECONDS / count) for number in range(count)]


def all_delivered(played: Played, count: int) -> None:
    assert played.error is None
    assert played.delivered == list(range(count))


def with_any_timing(play: Play, seed: int) -> Play:
    """Replies take from a moment to long, and pages are taken soon or late."""
    rng = random.Random(seed)
    laziness = rng.choice([0.0, 0.5, 0.95])
    play.reply_seconds = lambda: rng.choice([0.01, 0.5, 1.0, 1.0, 7.0])
    play.takes = lambda: rng.random() >= laziness
    return play


# What is handed out


@given(shapes, st.integers(0, 1500), page_sizes, concurrencies, seeds)
def test_every_event_comes_once_and_in_order_for_few_requests(
    shape: Shape, count: int, page_size: int, concurrency: int, seed: int
) -> None:
    """However events lie, replies come and pages are taken, and whatever is cut where."""
    count = min(count, 40 * page_size)
    instants = drawn(shape, count, seed)
    play = Play(instants, page_size=page_size, concurrency=concurrency)
    played = with_any_timing(play, seed).run()
    all_delivered(played, count)
    assert played.repeats == 0
    assert len(played.requests) <= most_requests(count, page_size)
    assert played.most_held <= PAGES_AHEAD * concurrency + 1


@given(shapes, st.integers(0, 400), st.floats(0, 1), st.floats(0, 1), seeds)
def test_a_range_is_read_from_its_start_to_its_end(
    shape: Shape, count: int, start: float, end: float, seed: int
) -> None:
    """Events outside of it are not handed out, also those of the same second."""
    instants = drawn(shape, count, seed)
    start, end = sorted([start, end])
    window = Window(instant(start * RANGE_SECONDS), instant(end * RANGE_SECONDS))
    played = with_any_timing(Play(instants, page_size=5, window=window), seed).run()
    assert played.error is None
    inside = [place for place, moment in enumerate(instants) if window.holds(moment)]
    assert played.delivered == inside
    assert played.repeats == 0


def test_few_events_are_one_request() -> None:
    """A first page without a cursor is the whole run, at any concurrency and from any start."""
    for count in (0, 3, 999, 1000):
        for window in (EVER, Window(instant(0), EVER.end)):
            instants = drawn(even, count, seed=1)
            played = Play(instants, page_size=1000, window=window).run()
            all_delivered(played, count)
            assert len(played.requests) == 1


# What is asked for


@pytest.mark.parametrize("shape", SHAPES)
def test_requests_stay_few_over_uneven_data(shape: Shape) -> None:
    """At most 1.25 times those of one after the other, and 3; from one page to very many."""
    for seed, pages in enumerate([1, 2, 3, 4, 5, 8, 12, 20, 50, 200] * 2):
        count = pages * 20 - seed
        played = Play(drawn(shape, count, seed), page_size=20).run()
        all_delivered(played, count)
        assert len(played.requests) <= 1.25 * pages + 3, (shape.__name__, seed)


blocks = st.tuples(
    st.floats(0, RANGE_SECONDS / 2), st.sampled_from([0.2, 720, 36_000]), st.integers(1, 500)
)


@given(
    st.lists(blocks, min_size=1, max_size=4), st.sampled_from([20, 50, 100]), concurrencies, seeds
)
@example([(2253.997, 3600, 105), (149046.572, 36_000, 495)], 100, 8, 7)
@example([(328292.67, 0.2, 65), (14643.76, 36_000, 184), (594.77, 720, 1)], 50, 8, 1)
def test_requests_stay_few_whatever_lies_between(
    runs: list[tuple[float, float, int]], page_size: int, concurrency: int, seed: int
) -> None:
    """Blocks of events with nothing between them, and replies in any order."""
    instants = sorted(
        instant(start + seconds * number / count)
        for start, seconds, count in runs
        for number in range(count)
    )
    rng = random.Random(seed)
    play = Play(instants, page_size=page_size, concurrency=concurrency)
    play.reply_seconds = lambda: rng.choice([0.1, 1.0, 20.0])
    played = play.run()
    all_delivered(played, len(instants))
    assert len(played.requests) <= most_requests(len(instants), page_size)


def test_nothing_is_cut_where_time_ends() -> None:
    """No window is cut that starts where the one before it does."""
    end = Window(None, Instant("9999-12-31T23:59:59.99"))
    for count in (1000, 5000):
        played = Play([LATEST] * count, page_size=50, window=end).run()
        all_delivered(played, count)
        assert len(played.requests) <= most_requests(count, 50)


@given(shapes, st.integers(0, 300), page_sizes, seeds)
def test_one_at_a_time_is_the_sequential_run(
    shape: Shape, count: int, page_size: int, seed: int
) -> None:
    """With concurrency 1 each page is asked for by the cursor of the one before, nothing else."""
    play = Play(drawn(shape, count, seed), page_size=page_size, concurrency=1)
    played = with_any_timing(play, seed).run()
    all_delivered(played, count)
    assert played.requests == [
        Request(None, number * page_size, number)
        for number in range(pages_needed(count, page_size))
    ]
    assert set(played.under_way) == {1}


def test_an_empty_tail_is_cheap() -> None:
    """Events that ended long ago: the rest of the range is not cut into windows of nothing."""
    for pages in (2, 3, 5, 10, 40):
        played = Play(drawn(old_tail, pages * 50, seed=pages)).run()
        all_delivered(played, pages * 50)
        behind = [request for request in played.requests if request.position == pages * 50]
        assert len(behind) <= SPARE_REQUESTS


def test_a_window_that_turns_out_large_is_cut_again() -> None:
    """What begins thin and becomes a hundred times as dense is read in parallel all the same."""
    thin = [instant(number * 8640) for number in range(200)]
    dense = [instant(20 * 86400 + number * 86.4) for number in range(9800)]
    played = Play([*thin, *dense]).run()
    all_delivered(played, 10_000)
    starts = {request.start for request in played.requests if request.position > 300}
    assert len(starts) > 15
    assert played.seconds <= 200 / 2.5


def test_a_burst_is_no_window_of_hundreds_of_pages() -> None:
    """Where half of all events lie in one of thirty days, it is cut as finely as the rest."""
    rng = random.Random(5)
    times = [rng.random() * RANGE_SECONDS for _ in range(5000)]
    times += [12 * 86400 + rng.random() * 86400 for _ in range(5000)]
    played = Play(sorted(map(instant, times))).run()
    all_delivered(played, 10_000)
    assert max(request.number for request in played.requests) < 40
    assert played.seconds <= 200 / 2.5


# How much at a time, and how soon


@pytest.mark.parametrize("seed", range(3))
def test_office_hours_are_foreseen(seed: int) -> None:
    """Nights between them cost neither windows of nothing nor windows that hold up others."""
    rng = random.Random(seed)
    hours = [rng.randrange(30) * 86400 + 8 * 3600 + rng.random() * 36_000 for _ in range(20_000)]
    played = Play(sorted(map(instant, hours)), page_size=100).run()
    all_delivered(played, 20_000)
    assert played.seconds <= 200 / 6
    assert len(played.requests) <= 230


def test_a_window_that_was_read_is_gone() -> None:
    """Nothing keeps it, or its last page, until Python looks for what nobody uses."""
    gc.collect()
    gc.disable()
    try:
        before, pages_before = living(Reading), living(Page)
        play = Play(evenly(20_000), page_size=20)
        all_delivered(play.run(), 20_000)
        assert len({request.start for request in play.played.requests}) > 100
        assert living(Reading) == before
        assert living(Page) <= pages_before + 1  # the one that was taken last
    finally:
        gc.enable()


def living(kind: type) -> int:
    return sum(type(each) is kind for each in gc.get_objects())


def test_eight_at_a_time_are_six_and_a_half_times_as_fast() -> None:
    """On 200 even pages, counted in replies; four are three and a half times."""
    instants = evenly(200 * 100)
    sequential = Play(instants, page_size=100, concurrency=1).run()
    assert sequential.seconds == 200
    for concurrency, times in ((8, 6.5), (4, 3.5)):
        parallel = Play(instants, page_size=100, concurrency=concurrency).run()
        all_delivered(parallel, 200 * 100)
        assert sequential.seconds >= times * parallel.seconds
        assert max(parallel.under_way) == concurrency


@pytest.mark.parametrize("seed", range(3))
def test_room_is_kept_for_pages_that_are_waited_for(seed: int) -> None:
    """Where there is ever more to read, windows ahead do not fill it while others wait for it."""
    rng = random.Random(seed)
    times = [RANGE_SECONDS * rng.random() ** 0.25 for _ in range(20_000)]
    played = Play(sorted(map(instant, times)), page_size=100).run()
    all_delivered(played, 20_000)
    assert played.seconds <= 200 / 6


class Asks:
    """Counts the pages that are asked for ahead."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> bool:
        self.count += 1
        return True


def test_pages_of_cut_windows_are_asked_for_ahead() -> None:
    """Nearly all but the first of each, and none that is not wanted."""
    asks = Asks()
    played = Play(evenly(20_000), page_size=100, can_ask_ahead=asks).run()
    all_delivered(played, 20_000)
    windows = len({request.start for request in played.requests})
    assert asks.count >= 0.9 * (len(played.requests) - windows)
    without = Play(evenly(20_000), page_size=100, can_ask_ahead=lambda: False).run()
    assert len(played.requests) <= len(without.requests) + 3


def test_a_page_is_wanted_up_to_where_the_next_window_starts() -> None:
    """What lies there is read by that one; in the last window every page is wanted."""
    until = instant(7)
    cut, last = Permission(is_given=True, until=until), Permission(is_given=True)
    assert [cut(instant(second)) for second in (6, 7, 8)] == [True, False, False]
    assert [cut(None), last(None), last(until)] == [False, True, True]
    assert not Permission(until=until)(instant(6))


@pytest.mark.parametrize("told", [lambda _: EARLIEST, lambda _: None])
def test_a_time_that_is_not_the_newest_asks_for_nothing_ahead(
    told: Callable[[Instant], Instant | None],
) -> None:
    """As where events hold older ones: the first page shows it, so nothing is asked for in vain."""
    played = Play(evenly(20_000), page_size=100, told=told).run()
    all_delivered(played, 20_000)
    plainly = Play(evenly(20_000), page_size=100, can_ask_ahead=lambda: False).run()
    assert played.requests == plainly.requests


def test_what_is_read_ahead_is_bounded_in_pages() -> None:
    """Where pages are taken slowly, so many wait for each request at a time, and no more."""
    for concurrency in (2, 4, 8):
        play = Play(evenly(10_000), page_size=20, concurrency=concurrency, page_bytes=1000)
        play.reply_seconds = lambda: 0.0
        play.takes = lambda: False
        played = play.run()
        all_delivered(played, 10_000)
        assert PAGES_AHEAD * concurrency - 1 <= played.most_held <= PAGES_AHEAD * concurrency + 1


def test_what_is_read_ahead_is_bounded_in_bytes() -> None:
    """Large pages are held until they are too many bytes, but for those under way by then."""
    rng = random.Random(3)
    play = Play(evenly(2000), page_size=20, page_bytes=ONE_PAGE_BYTES)
    play.takes = lambda: rng.random() < 0.05
    played = play.run()
    all_delivered(played, 2000)
    assert BYTES_AHEAD <= played.most_bytes < BYTES_AHEAD + 8 * ONE_PAGE_BYTES
    assert max(played.under_way) > 1


# What goes wrong


def fault_from(position: int) -> ServiceError:
    return service_error("AE-403", details=f"at {position}")


@given(shapes, st.floats(0, 1), page_sizes, concurrencies, seeds)
def test_a_fault_ahead_waits_its_turn(
    shape: Shape, share: float, page_size: int, concurrency: int, seed: int
) -> None:
    """Everything before it is handed out, then it is raised; nothing behind it is asked for."""
    count = 30 * page_size
    broken = round(share * (count - 1))

    def fails(request: Request) -> ServiceError | None:
        is_reached = request.position + page_size > broken
        return fault_from(request.position) if is_reached else None

    play = Play(drawn(shape, count, seed), page_size, concurrency, fails=fails)
    played = with_any_timing(play, seed).run()
    refused = [request.position for request in played.requests if fails(request)]
    assert isinstance(played.error, ServiceError)
    assert played.error.details == f"at {min(refused)}"
    assert played.delivered == list(range(min(refused)))


@pytest.mark.parametrize("place", [500, 2000, 7000])
def test_behind_a_fault_nothing_is_asked_any_more(place: int) -> None:
    """Once it is known, what is asked for lies before it; windows behind are left as they are."""
    instants = evenly(10_000)
    failed: list[tuple[int, Request]] = []

    def fails(request: Request) -> ServiceError | None:
        if not failed and place <= request.position < place + 1000:
            failed.append((len(play.played.requests), request))
            return fault_from(request.position)
        return None

    play = Play(instants, fails=fails)
    played = play.run()
    ((number, fault),) = failed
    assert isinstance(played.error, ServiceError)
    assert played.delivered == list(range(fault.position))
    later = played.requests[number:]
    behind = [request.start for request in later if request.position >= fault.position]
    assert len(behind) <= 7  # were under way by then
    assert len(set(behind)) == len(behind), "a window behind was read on"


def test_behind_a_malformed_page_nothing_is_asked_for_ahead() -> None:
    """As behind any other fault; what was under way by then still comes."""
    may_ask: list[bool] = []

    class Broken(Play):
        def _page(self, positions: Sequence[int], is_last: bool, is_next_asked: bool) -> Page:
            page = super()._page(positions, is_last, is_next_asked)
            readings = list(self._export._readings)
            broken = [place for place, reading in enumerate(readings) if reading.error]
            if broken:
                behind = readings[broken[0] + 1 :]
                may_ask.extend(reading.asks_ahead.is_given for reading in behind)
                return page
            return replace(page, malformed=fault_from(0)) if positions[0] > 1000 else page

    played = Broken(evenly(10_000)).run()
    assert isinstance(played.error, ServiceError)
    assert set(may_ask) == {False}


class NewestCursorOnly:
    """A service that refuses every cursor but the one it gave last."""

    def __init__(self) -> None:
        self._newest: tuple[Instant | None, int] | None = None

    def __call__(self, request: Request) -> ServiceError | None:
        if request.number and self._newest != (request.start, request.number):
            return service_error("AE-CURSOR-REFUSED", details="cursorExpired")
        self._newest = (request.start, request.number + 1)
        return None


@given(shapes, page_sizes, concurrencies, seeds)
def test_cursors_that_are_refused_because_of_other_windows_lose_nothing(
    shape: Shape, page_size: int, concurrency: int, seed: int
) -> None:
    """Windows are started again or read one at a time, whichever it takes; all events come."""
    count = 20 * page_size
    instants = drawn(shape, count, seed)
    play = Play(instants, page_size, concurrency, fails=NewestCursorOnly())
    all_delivered(with_any_timing(play, seed).run(), count)


def test_a_refused_cursor_in_parallel_leads_to_one_at_a_time() -> None:
    """Where a window cannot be started again, as inside one second, the others wait for it."""
    instants = sorted([*drawn(even, 4000, seed=2), *drawn(one_second, 1000, seed=1)])
    played = Play(instants, fails=NewestCursorOnly()).run()
    all_delivered(played, 5000)
    assert max(played.under_way) == 8
    last_beside_others = max(i for i, count in enumerate(played.under_way) if count > 1)
    assert len(played.under_way) - last_beside_others > 20  # the pages of that second


def test_a_cursor_that_is_refused_for_good_ends_the_run() -> None:
    """One at a time it is refused as well: everything before is handed out, then it is raised."""
    instants = sorted([*drawn(even, 4000, seed=2), *drawn(one_second, 1000, seed=1)])

    def fails(request: Request) -> ServiceError | None:
        is_crowded = int(instants[request.position][8:10]) == 16
        is_refused = request.number and is_crowded
        return service_error("AE-CURSOR-REFUSED", details="no") if is_refused else None

    played = Play(instants, fails=fails).run()
    assert isinstance(played.error, CursorRefusedError)
    assert played.delivered == list(range(len(played.delivered)))
    assert 1000 < len(played.delivered) < 3000
    assert len(played.requests) < 120


def backwards_from(place: int) -> Arranged:
    """Pages that start there or later are sent newest first."""
    return lambda positions: positions[::-1] if positions.start >= place else positions


@given(shapes, st.floats(0, 1), page_sizes, concurrencies, seeds)
def test_pages_out_of_order_lose_nothing(
    shape: Shape, share: float, page_size: int, concurrency: int, seed: int
) -> None:
    """Wherever disorder begins, all events are handed out."""
    count = 20 * page_size
    arranged = backwards_from(round(share * count))
    play = Play(drawn(shape, count, seed), page_size, concurrency, arranged=arranged)
    played = with_any_timing(play, seed).run()
    assert played.error is None
    assert sorted(played.delivered) == list(range(count))


def test_disorder_leads_to_one_at_a_time() -> None:
    """Once it is seen, the windows behind are left and the rest is one request after the other."""
    seen_at: list[int] = []
    arranged = backwards_from(5000)

    def noting(positions: range) -> Sequence[int]:
        if positions.start >= 5000 and not seen_at:
            seen_at.append(len(play.played.under_way))
        return arranged(positions)

    play = Play(evenly(10_000), arranged=noting, can_ask_ahead=lambda: False)
    played = play.run()
    assert played.error is None
    assert sorted(played.delivered) == list(range(10_000))
    assert max(played.under_way) == 8
    (sent_by_then,) = seen_at
    assert set(played.under_way[sent_by_then:]) == {1}
    assert played.disordered > 50


@pytest.mark.parametrize("place", [1000, 3000, 5000])
def test_nothing_is_asked_for_ahead_beside_disorder(place: int) -> None:
    """Neither in the windows that are left, nor in those before, which are read by themselves."""
    under_way: list[Reading] = []
    may_ask: list[bool] = []

    def arranged(positions: range) -> Sequence[int]:
        if place not in positions or under_way:
            return positions
        under_way.extend(play._export._readings)
        return positions[::-1]

    def fails(_: Request) -> None:
        may_ask.extend(each.asks_ahead.is_given for each in under_way if not each.is_alone)

    play = Play(evenly(10_000), arranged=arranged, fails=fails)
    played = play.run()
    assert sorted(played.delivered) == list(range(10_000))
    assert set(may_ask) == {False}
