"""The plan of a run if responses fail: which requests still follow, and what is delivered."""

import random
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import (
    CursorRefusedError,
    ServiceError,
    service_error,
)
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.window import Window
from tests.extraction.planning.plan_cases import (
    all_delivered,
    concurrencies,
    page_sizes,
    seeds,
    shapes,
)
from tests.extraction.planning.scheduling import (
    RANGE_SECONDS,
    Play,
    Sent,
    evenly,
    instant,
    with_any_timing,
)
from tests.extraction.planning.shapes import Shape, drawn, even, one_second


def refused_cursor() -> ServiceError:
    return service_error("AE-CURSOR-REFUSED", details="cursorExpired")


@given(shapes, st.floats(0, 1), page_sizes, concurrencies, seeds)
def test_an_error_is_raised_after_the_events_before_it(
    shape: Shape, share: float, page_size: int, concurrency: int, seed: int
) -> None:
    """Every event before the fault is delivered; then its error is raised."""
    count = 30 * page_size
    broken = round(share * (count - 1))

    def fails(request: Sent) -> ServiceError | None:
        is_reached = request.position + page_size > broken
        return service_error("AE-403", details=f"{request.position}") if is_reached else None

    play = Play(drawn(shape, count, seed), page_size, concurrency, fails=fails)
    played = with_any_timing(play, seed).run()
    assert isinstance(played.error, ServiceError)
    raised_at = int(played.error.details)
    assert played.delivered == list(range(len(played.delivered)))
    assert raised_at <= len(played.delivered) <= broken


@pytest.mark.parametrize("place", [500, 2000, 7000])
def test_nothing_is_requested_after_a_fault(place: int) -> None:
    """Only windows before the fault are still read; those after it are left as they are."""
    failed: list[tuple[int, Sent]] = []

    def fails(request: Sent) -> ServiceError | None:
        if not failed and place <= request.position < place + 1000:
            failed.append((len(play.played.requests), request))
            return service_error("AE-403")
        return None

    play = Play(evenly(10_000), fails=fails)
    played = play.run()
    ((number, fault),) = failed
    assert isinstance(played.error, ServiceError)
    assert played.delivered == list(range(fault.position))
    later = played.requests[number:]
    after = [request.start for request in later if request.position >= fault.position]
    assert len(after) <= 7  # requests that were in flight
    assert len(set(after)) == len(after), "a window after the fault was continued"


# Refused cursors


@given(shapes, page_sizes, concurrencies, st.floats(0, 1), seeds)
def test_a_cursor_that_expired_once_loses_no_event(
    shape: Shape, page_size: int, concurrency: int, share: float, seed: int
) -> None:
    """The window is restarted at the point up to which it was read."""
    count = 20 * page_size
    refused: list[Sent] = []

    def fails(request: Sent) -> ServiceError | None:
        if not refused and request.offset and request.position >= share * count:
            refused.append(request)
            return refused_cursor()
        return None

    play = Play(drawn(shape, count, seed), page_size, concurrency, fails=fails)
    played = with_any_timing(play, seed).run()
    all_delivered(played, count)
    assert len(played.requests) <= 1.25 * 2 * 20 + 4  # within one second all pages are repeated


class NewestCursorOnly:
    """A service that refuses every cursor except the one that it sent last."""

    def __init__(self) -> None:
        self._newest: tuple[Instant | None, int] | None = None

    def __call__(self, request: Sent) -> ServiceError | None:
        if request.offset and self._newest != (request.start, request.offset):
            return refused_cursor()
        self._newest = (request.start, request.offset + self.page_size)
        return None

    page_size = 50


@given(shapes, page_sizes, concurrencies, seeds)
@example(one_second, 1, 3, 306)  # more than thirty pages in a row repeat those before a restart
def test_cursors_refused_because_of_other_windows_lose_no_event(
    shape: Shape, page_size: int, concurrency: int, seed: int
) -> None:
    """Windows are restarted or, if that does not help, read one at a time."""
    count = 20 * page_size
    fails = NewestCursorOnly()
    fails.page_size = page_size
    play = Play(drawn(shape, count, seed), page_size, concurrency, fails=fails)
    all_delivered(with_any_timing(play, seed).run(), count)


def crowded_second() -> list[Instant]:
    """A month of events, and twenty pages of them in the same second."""
    return sorted([*drawn(even, 4000, seed=2), *drawn(one_second, 1000, seed=1)])


def test_cursors_refused_in_parallel_lead_to_the_sequential_run() -> None:
    """If a window cannot be restarted, as within one second, the others wait for it."""
    played = Play(crowded_second(), fails=NewestCursorOnly()).run()
    all_delivered(played, 5000)
    assert max(played.in_flight) > 1
    last_parallel = max(place for place, count in enumerate(played.in_flight) if count > 1)
    assert len(played.in_flight) - last_parallel > 20  # the pages of that second


def in_crowded_second(instants: list[Instant]) -> Callable[[Sent], ServiceError | None]:
    """A service that refuses every cursor in the crowded second."""

    def fails(request: Sent) -> ServiceError | None:
        is_crowded = instants[min(request.position, len(instants) - 1)][8:10] == "16"
        return refused_cursor() if request.offset and is_crowded else None

    return fails


@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_a_cursor_refused_for_good_ends_the_run(concurrency: int) -> None:
    """If it is refused in the sequential run too, the run ends after the events before it."""
    instants = crowded_second()
    play = Play(instants, concurrency=concurrency, fails=in_crowded_second(instants))
    played = with_any_timing(play, random.Random(concurrency).randrange(99)).run()
    assert isinstance(played.error, CursorRefusedError)
    assert played.delivered == list(range(len(played.delivered)))
    assert 2000 < len(played.delivered) < 3000
    assert len(played.requests) < 120


def test_expired_cursors_leave_the_run_parallel() -> None:
    """The restarted windows are read next to the others."""
    refused: list[Sent] = []

    def fails(request: Sent) -> ServiceError | None:
        if request.offset and len(refused) < 3:
            refused.append(request)
            return refused_cursor()
        return None

    played = Play(evenly(10_000), fails=fails).run()
    all_delivered(played, 10_000)
    assert played.restarts == 3
    assert played.seconds <= 200 / 5


# Bounds that the service ignores


@pytest.mark.parametrize("ignores", ["start", "end", "start and end"])
@given(shape=shapes, page_size=page_sizes, concurrency=concurrencies, seed=seeds)
def test_a_service_that_ignores_bounds_changes_nothing(
    ignores: str, shape: Shape, page_size: int, concurrency: int, seed: int
) -> None:
    """Exactly the events of the range are delivered, whatever windows are cut or given up."""
    window = Window(instant(0.4 * RANGE_SECONDS), instant(0.7 * RANGE_SECONDS))
    count = 20 * page_size
    play = Play(drawn(shape, count, seed), page_size, concurrency, window, ignores=ignores)
    played = with_any_timing(play, seed).run()
    assert played.error is None
    inside = [place for place, moment in enumerate(play.instants) if window.holds(moment)]
    assert sorted(played.delivered) == inside
