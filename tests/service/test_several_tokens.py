"""Rate limiters of several tokens: they share the number of requests in flight of a run."""

from collections.abc import Callable
from contextlib import ExitStack
from math import inf
from unittest.mock import Mock

import pytest

from tap_audit_events.service.rate_limiter import RateLimiter, RunRequests
from tests.service.conftest import SimulatedTime
from tests.service.test_rate_limiter import join, start_threads


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, simulated_time: SimulatedTime) -> RunRequests:
    """The numbers of a run, which the limiters of several tokens share, in simulated time."""
    shared = RunRequests(8)
    monkeypatch.setattr(shared.changed, "wait", simulated_time.wait)
    return shared


def test_limiters_of_several_tokens_share_the_limit_of_the_run() -> None:
    """It does not matter which limiter gave the permits; each alone would give another one."""
    of_run = RunRequests(3, on_wait := Mock())
    one, other = RateLimiter(of_run), RateLimiter(of_run)

    def send() -> None:
        with one.permit():
            pass

    with one.permit(), other.permit(), other.permit():
        assert of_run.in_flight == of_run.limit
        waiting = start_threads(1, send)
        assert of_run.sent == 3
    join(waiting)
    assert of_run.sent == 4
    on_wait.assert_not_called()  # nothing else could have been sent meanwhile


def test_a_429_of_one_token_holds_no_other_token(
    shared: RunRequests, simulated_time: SimulatedTime
) -> None:
    """A request with the other token gets its permit at once."""
    one, other = (RateLimiter(shared, simulated_time) for _ in range(2))
    with one.permit() as permit:
        one.rate_limited(permit, 30.0)
    assert one.is_held
    assert not other.is_held
    with other.permit():
        assert simulated_time.now == 0.0
    with one.permit():
        assert simulated_time.now == 30.0


def test_a_429_without_a_retry_holds_the_token(
    shared: RunRequests, simulated_time: SimulatedTime
) -> None:
    """The request is not retried, but other requests with the token wait."""
    limiter = RateLimiter(shared, simulated_time)
    with limiter.permit() as permit:
        limiter.rate_limited(permit, 5.0)
    assert limiter.run.retries == 0
    assert limiter.is_held


def test_waits_are_counted_and_reported(
    monkeypatch: pytest.MonkeyPatch, simulated_time: SimulatedTime
) -> None:
    """Waits for a retry and for a token's rate count, as other requests can be sent meanwhile."""
    told: list[tuple[int, int]] = []
    seen: list[tuple[int, int, bool]] = []
    of_run = RunRequests(8, lambda: told.append((of_run.paused, of_run.waiting)))
    limiter = RateLimiter(of_run, simulated_time)

    def wait(seconds: float | None = None) -> bool:
        held_before = limiter.waiting > 0
        seen.append((of_run.paused, of_run.waiting, held_before))
        return simulated_time.wait(seconds)

    monkeypatch.setattr(of_run.changed, "wait", wait)
    limiter.pause(3.0)
    with limiter.permit() as permit:
        limiter.rate_limited(permit, 4.0)
    with limiter.permit():
        pass
    assert told == [(1, 0), (0, 1)]
    assert seen == [(1, 0, False), (0, 1, True)]
    assert (of_run.paused, of_run.waiting, limiter.waiting) == (0, 0, 0)


@pytest.mark.parametrize("seconds", [0.5, 4.0])
def test_each_request_that_waits_counts(
    seconds: float, monkeypatch: pytest.MonkeyPatch, simulated_time: SimulatedTime
) -> None:
    """Requests that begin to wait while another one waits count too, however short the wait is."""
    of_run = RunRequests(8)
    limiter = RateLimiter(of_run, simulated_time)
    seen: list[tuple[int, int, int]] = []

    def wait_with_another(begin: Callable[[], object]) -> Callable[[float], bool]:
        def wait(seconds: float) -> bool:
            seen.append((of_run.paused, of_run.waiting, limiter.waiting))
            if len(seen) == 1:
                begin()
            return simulated_time.wait(seconds)

        return wait

    def acquire() -> None:
        with limiter.permit():
            pass

    monkeypatch.setattr(of_run.changed, "wait", wait_with_another(lambda: limiter.pause(seconds)))
    limiter.pause(seconds)
    assert seen == [(1, 0, 0), (2, 0, 0)]

    seen.clear()
    monkeypatch.setattr(of_run.changed, "wait", wait_with_another(acquire))
    with limiter.permit() as permit:
        limiter.rate_limited(permit, seconds)
    acquire()
    assert seen == [(0, 1, 1), (0, 2, 2)]
    assert (of_run.paused, of_run.waiting, limiter.waiting) == (0, 0, 0)


def test_a_token_whose_requests_wait_for_each_other_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This holds even before the service limits its rate: other tokens' requests can be sent."""
    of_run = RunRequests(2)  # at first, only half may be in flight
    limiter = RateLimiter(of_run)
    first = ExitStack()
    first.enter_context(limiter.permit())
    held: list[bool] = []

    def wait(seconds: float | None = None) -> bool:
        held.append(limiter.is_held)
        first.close()
        return True

    monkeypatch.setattr(of_run.changed, "wait", wait)
    with limiter.permit():
        held.append(limiter.is_held)
    assert held == [True, False]


def test_a_request_that_waits_for_the_limit_of_the_run_alone_does_not_count_as_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No other request could be sent meanwhile."""
    run = RunRequests(1)
    one, other = RateLimiter(run), RateLimiter(run)
    held = ExitStack()
    held.enter_context(one.permit())
    waits: list[tuple[float, int, int]] = []

    def wait(seconds: float) -> None:
        waits.append((seconds, run.waiting, other.waiting))
        held.close()

    monkeypatch.setattr(other, "_wait", wait)
    with other.permit():
        assert waits == [(inf, 0, 0)]
