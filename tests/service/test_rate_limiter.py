"""The rate limiters of a run, one for each token, whatever thread sends the requests."""

import threading
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from tap_audit_events.service.rate_limiter import ClosedError, RateLimiter, RequestCounts

LONG = 3600.0


class SimulatedTime:
    """A clock that only waits advance."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float | None = None) -> bool:
        assert seconds is not None, "it would wait for another thread forever"
        self.now += seconds
        return False


@pytest.fixture
def clock() -> SimulatedTime:
    return SimulatedTime()


@pytest.fixture
def counts(clock: SimulatedTime, monkeypatch: pytest.MonkeyPatch) -> RequestCounts:
    """The counts of a run with at most eight requests in flight, in simulated time."""
    counts = RequestCounts(8)
    monkeypatch.setattr(counts.changed, "wait", clock.wait)
    return counts


@pytest.fixture
def limiter(counts: RequestCounts, clock: SimulatedTime) -> RateLimiter:
    return RateLimiter(counts, clock)


def start_threads(count: int, work: Callable[[], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_requests_than_the_limit_are_in_flight(concurrency: int) -> None:
    """Threads get their permits in turn; a request that fails returns its permit."""
    limiter = RateLimiter(RequestCounts(concurrency))
    all_inside = threading.Barrier(concurrency, timeout=10)
    for _ in range(10):  # successes raise the number in flight to the limit
        with limiter.permit() as permit:
            permit.succeeded = True

    def work() -> None:
        for number in range(40):
            try:
                with limiter.permit() as permit:
                    assert limiter.run.in_flight <= concurrency
                    if number == 0:
                        all_inside.wait()
                    if number % 7 == 6:
                        raise ValueError
                    permit.succeeded = True
            except ValueError:
                pass

    join(start_threads(2 * concurrency, work))
    assert limiter.run.sent == 10 + 2 * concurrency * 40
    assert limiter.run.in_flight == 0


@pytest.mark.parametrize("seconds", [0.25, 900])
def test_a_429_holds_every_request(
    limiter: RateLimiter, clock: SimulatedTime, seconds: float
) -> None:
    """No request starts until the longest wait is over, also if none is retried."""
    with limiter.permit() as refused, limiter.permit() as other:
        clock.now = 3.0
        limiter.rate_limited(refused, seconds)
        limiter.rate_limited(other, seconds / 2)
    assert limiter.is_held
    with limiter.permit() as permit:
        assert permit.started_at == 3.0 + seconds
    assert (limiter.run.sent, limiter.run.retries) == (3, 0)


def test_fewer_requests_are_in_flight_after_a_429(limiter: RateLimiter) -> None:
    """Four may be in flight before, and two afterwards."""
    with limiter.permit() as first, limiter.permit(), limiter.permit(), limiter.permit():
        limiter.rate_limited(first, 1.0)
    with (
        limiter.permit(),
        limiter.permit(),
        pytest.raises(AssertionError, match="another thread"),
        limiter.permit(),
    ):
        pass


def test_a_429_of_one_token_holds_no_other_token(
    counts: RequestCounts, clock: SimulatedTime
) -> None:
    one, other = (RateLimiter(counts, clock) for _ in range(2))
    with one.permit() as permit:
        one.rate_limited(permit, 30.0)
    assert (one.is_held, other.is_held) == (True, False)
    with other.permit():
        assert clock.now == 0.0
    with one.permit():
        assert clock.now == 30.0


def test_limiters_of_several_tokens_share_the_limit_of_the_run() -> None:
    """It does not matter which limiter gave the permits; each alone would give another one."""
    of_run = RequestCounts(3, on_wait := Mock())
    one, other = RateLimiter(of_run), RateLimiter(of_run)

    def send() -> None:
        with one.permit():
            pass

    with one.permit(), other.permit(), other.permit():
        waiting = start_threads(1, send)
        assert (of_run.in_flight, of_run.sent) == (3, 3)
    join(waiting)
    assert of_run.sent == 4
    on_wait.assert_not_called()  # nothing else could have been sent meanwhile


def test_a_pause_holds_one_request_only() -> None:
    """Other requests are sent meanwhile."""
    paused = threading.Event()
    limiter = RateLimiter(RequestCounts(2, paused.set))

    def pause() -> None:
        with pytest.raises(ClosedError):
            limiter.pause(LONG)

    threads = start_threads(1, pause)
    assert paused.wait(10)
    with limiter.permit():
        pass
    assert threads[0].is_alive()
    limiter.run.close()
    join(threads)


def test_closing_ends_every_wait() -> None:
    """Waits for a permit, waits after a 429 and pauses end, and nothing is sent afterwards."""
    limiter = RateLimiter(RequestCounts(2))

    def wait_for_a_permit() -> None:
        with pytest.raises(ClosedError), limiter.permit():
            raise AssertionError("a permit was given")

    def pause() -> None:
        with pytest.raises(ClosedError):
            limiter.pause(LONG)

    with limiter.permit() as permit:
        threads = start_threads(3, wait_for_a_permit)
        limiter.rate_limited(permit, LONG)
        threads += [*start_threads(3, wait_for_a_permit), *start_threads(2, pause)]
        limiter.run.close()
        join(threads)
    wait_for_a_permit()
    assert limiter.run.sent == 1


def test_a_run_has_totals_of_its_requests_and_waits(
    limiter: RateLimiter, clock: SimulatedTime
) -> None:
    """Requests that overlap count in full; a wait for a permit is not part of a request."""
    with limiter.permit() as refused:
        with limiter.permit():
            clock.now += 2.0
        clock.now += 1.0
        limiter.rate_limited(refused, 10.0)
    with limiter.permit():
        limiter.count_resend()
        limiter.count_resend()
        clock.now += 0.5
    limiter.pause(4.0)
    limiter.pause(3.0)
    assert limiter.run.request_seconds == 2.0 + 3.0 + 0.5
    assert limiter.run.retry_wait_seconds == 4.0 + 3.0
    assert (limiter.run.sent, limiter.run.retries) == (5, 4)
    assert clock.now == 20.5
