"""Rate limiters of several tokens: they share the number of requests in flight of a run."""

from unittest.mock import Mock

import pytest

from tap_audit_events.service.rate_limiter import RateLimiter, RequestCounts
from tests.service.conftest import SimulatedTime
from tests.service.test_rate_limiter import join, start_threads


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, simulated_time: SimulatedTime) -> RequestCounts:
    """The numbers of a run, which the limiters of several tokens share, in simulated time."""
    shared = RequestCounts(8)
    monkeypatch.setattr(shared.changed, "wait", simulated_time.wait)
    return shared


def test_limiters_of_several_tokens_share_the_limit_of_the_run() -> None:
    """It does not matter which limiter gave the permits; each alone would give another one."""
    of_run = RequestCounts(3, on_wait := Mock())
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
    shared: RequestCounts, simulated_time: SimulatedTime
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
    shared: RequestCounts, simulated_time: SimulatedTime
) -> None:
    """The request is not retried, but other requests with the token wait."""
    limiter = RateLimiter(shared, simulated_time)
    with limiter.permit() as permit:
        limiter.rate_limited(permit, 5.0)
    assert limiter.run.retries == 0
    assert limiter.is_held
