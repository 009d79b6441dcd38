"""The plan of a run: which pages it holds in memory, and when it sends a request."""

import gc
from itertools import islice

import pytest

from tap_audit_events.events.page import Page
from tap_audit_events.extraction.planning import plan
from tap_audit_events.extraction.planning.plan import PAGES_HELD, Plan
from tap_audit_events.extraction.planning.window_reader import WindowReader, WindowRequest
from tests.extraction.planning.plan_cases import all_delivered
from tests.extraction.planning.scheduling import EVER, Play, evenly

# What is held in memory


@pytest.mark.parametrize("concurrency", [2, 4, 8])
def test_pages_held_are_bounded_in_number(concurrency: int) -> None:
    """If the target is slow, pages are requested ahead up to the same bound, and no further."""
    play = Play(evenly(10_000), page_size=10, concurrency=concurrency, page_bytes=1000)
    play.response_seconds = lambda: 0.0
    play.takes = lambda: False
    played = play.run()
    all_delivered(played, 10_000)
    assert PAGES_HELD - 1 <= played.most_held <= PAGES_HELD + 1


def test_a_window_that_was_read_is_released() -> None:
    """Nothing keeps a window or its pages in memory after they were delivered."""
    gc.collect()
    gc.disable()
    try:
        before, pages_before = living(WindowReader), living(Page)
        play = Play(evenly(20_000), page_size=20)
        all_delivered(play.run(), 20_000)
        assert len(play.played.windows) > 100
        assert living(WindowReader) <= before
        assert living(Page) <= pages_before + 1  # the newest one
    finally:
        gc.enable()


def living(kind: type) -> int:
    return sum(type(each) is kind for each in gc.get_objects())


# When a request is sent


def test_the_first_request_is_sent_alone() -> None:
    """Its response may be the whole run."""
    plan = Plan(EVER, page_size=10)
    assert plan.next_request(8) is not None
    assert plan.next_request(8) is None


def requests_due(plan: Plan, workers: int) -> list[WindowRequest]:
    """The requests that so many workers send before anything else arrives."""
    return list(islice(iter(lambda: plan.next_request(workers), None), max(1, workers)))


def test_the_range_is_cut_if_two_requests_gain_time() -> None:
    """Otherwise the window is continued by its cursor."""
    cursors = {}
    for most in (0, 2):
        play = Play(evenly(20_000))
        first = play.plan.next_request(most)
        assert first is not None
        play.plan.accept(first, play._respond(first)[1])
        cursors[most] = [request.cursor for request in requests_due(play.plan, most)]
    assert cursors[0] == ["50"]
    assert set(cursors[2]) == {None}


def test_the_last_page_of_a_window_makes_room_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the only page that is held is taken, nothing is held, and the next window is begun."""
    monkeypatch.setattr(plan, "PAGES_HELD", 1)
    play = Play(evenly(1000), concurrency=4)
    for _ in range(50):
        for request in requests_due(play.plan, 4):
            play.plan.accept(request, play._respond(request)[1])
        play.plan.next_page()
    assert play.plan.is_done
    assert play.plan.windows > 2


def test_the_first_window_continues_if_no_room_is_left() -> None:
    """It must be read before the pages that fill the room can be taken."""
    play = Play(evenly(5000), concurrency=4)
    requests = in_flight_together(play)
    for request in requests:
        play.plan.accept(request, play._respond(request)[1])
    while play.plan.next_page() is not None:
        pass
    following = play.plan.next_request(4, has_room=False)
    assert following is not None
    assert following.reader is requests[0].reader
    assert play.plan.next_request(4, has_room=False) is None


def test_all_pages_that_can_be_taken_are_ready() -> None:
    """Those of several windows, if each is read to its end."""
    play = Play(evenly(5000), concurrency=4)
    for _ in range(20):
        for request in requests_due(play.plan, 4):
            play.plan.accept(request, play._respond(request)[1])
    ready = play.plan.ready_pages
    taken = 0
    while play.plan.next_page() is not None:
        taken += 1
    assert taken == ready > plan.WINDOW_PAGES


def in_flight_together(play: Play) -> list[WindowRequest]:
    """The requests of four windows, after the first page was taken."""
    while len(requests := requests_due(play.plan, 4)) < 4:
        for request in requests:
            play.plan.accept(request, play._respond(request)[1])
        while play.plan.next_page() is not None:
            pass
    return requests
