"""One rate limiter for every thread that sends requests."""

import threading
import time
from collections.abc import Callable

import pytest

from tap_audit_events.service.rate_limiter import ClosedError, RateLimiter, RequestCounts
from tests.service.conftest import SimulatedTime

LONG = 3600.0


@pytest.fixture
def limiter(simulated_time: SimulatedTime, monkeypatch: pytest.MonkeyPatch) -> RateLimiter:
    """A limiter that permits at most eight requests in flight, in simulated time."""
    limiter = RateLimiter(RequestCounts(8), simulated_time)
    monkeypatch.setattr(limiter._changed, "wait", simulated_time.wait)
    return limiter


def start_threads(count: int, work: Callable[[], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()


def pause_until_closed(limiter: RateLimiter) -> None:
    with pytest.raises(ClosedError):
        limiter.pause(LONG)


def wait_for_a_retry(limiter: RateLimiter) -> None:
    """Wait until a thread has begun its pause."""
    end = time.monotonic() + 10
    while not limiter.run.retries:
        assert time.monotonic() < end
        time.sleep(0.001)


class Inside:
    """Counts how many threads are inside its block at a time."""

    def __init__(self) -> None:
        self.now = self.most = self.total = 0
        self._lock = threading.Lock()
        self._reached = threading.Event()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.total += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1

    def wait_for(self, count: int) -> None:
        """Wait until `count` threads have been inside at a time."""
        if self.most >= count:
            self._reached.set()
        self._reached.wait(10)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_requests_than_the_limit_are_in_flight(concurrency: int) -> None:
    """Ten threads all get their permits in turn; a request that fails returns its permit."""
    limiter, inside = RateLimiter(RequestCounts(concurrency)), Inside()
    for _ in range(10):  # successes raise the number in flight to the limit
        with limiter.permit() as permit:
            permit.succeeded = True

    def work() -> None:
        for number in range(40):
            try:
                with limiter.permit() as permit, inside:
                    inside.wait_for(concurrency)
                    if number % 7 == 0:
                        raise ValueError
                    permit.succeeded = True
            except ValueError:
                pass

    join(start_threads(10, work))
    assert inside.total == limiter.run.sent - 10 == 400
    assert inside.most == concurrency
    assert limiter.run.retries == 0


@pytest.mark.parametrize("seconds", [0.25, 1, 10, 900])
def test_a_429_holds_every_request(
    limiter: RateLimiter, simulated_time: SimulatedTime, seconds: float
) -> None:
    """No request starts until the wait is over."""
    with limiter.permit() as refused, limiter.permit() as other:
        simulated_time.now = 3.0
        limiter.rate_limited(refused, seconds)
        other.succeeded = True
    for _ in range(5):
        with limiter.permit() as permit:
            permit.succeeded = True
            assert permit.started_at >= 3.0 + seconds
    assert simulated_time.waits[0] == seconds
    assert (limiter.run.sent, limiter.run.retries) == (7, 0)


def test_the_longest_of_several_waits_counts(
    limiter: RateLimiter, simulated_time: SimulatedTime
) -> None:
    """Requests that are refused together may be given different waits."""
    with limiter.permit() as first, limiter.permit() as second, limiter.permit() as third:
        for permit, seconds in ((first, 2.0), (second, 5.0), (third, 3.0)):
            limiter.rate_limited(permit, seconds)
    with limiter.permit() as permit:
        assert permit.started_at == 5.0


def test_fewer_requests_are_in_flight_after_a_429(
    limiter: RateLimiter, simulated_time: SimulatedTime, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_429_holds_every_thread() -> None:
    """By a real clock, no thread starts a request before the wait is over."""
    limiter = RateLimiter(RequestCounts(8))
    started: list[float] = []
    is_held = threading.Event()

    def work() -> None:
        is_held.wait(timeout=10)
        with limiter.permit() as permit:
            started.append(time.monotonic())
            permit.succeeded = True

    threads = start_threads(8, work)
    with limiter.permit() as permit:
        free_at = time.monotonic() + 0.1
        limiter.rate_limited(permit, 0.1)
        is_held.set()
    join(threads)
    assert len(started) == 8
    assert min(started) >= free_at


@pytest.mark.parametrize("seconds", [0.0, 0.5, 60.0])
def test_a_pause_lasts_as_long_as_it_says(
    limiter: RateLimiter, simulated_time: SimulatedTime, seconds: float
) -> None:
    limiter.pause(seconds)
    assert simulated_time.now == seconds
    run = limiter.run
    assert (run.sent, run.retries, run.retry_wait_seconds) == (0, 1, seconds)


def test_a_pause_is_not_cut_short_by_other_requests(
    limiter: RateLimiter, simulated_time: SimulatedTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that is woken early waits for the rest."""

    def wake_early(seconds: float) -> bool:
        return simulated_time.wait(min(seconds, 4.0))

    monkeypatch.setattr(limiter._changed, "wait", wake_early)
    limiter.pause(10.0)
    assert simulated_time.waits == [4.0, 4.0, 2.0]


def test_a_pause_holds_one_request_only() -> None:
    """Other requests are sent meanwhile."""
    limiter = RateLimiter(RequestCounts(2))
    paused = start_threads(1, lambda: pause_until_closed(limiter))
    wait_for_a_retry(limiter)
    with limiter.permit() as permit:
        permit.succeeded = True
    assert paused[0].is_alive()
    limiter.run.close()
    join(paused)


def test_a_pause_keeps_no_permit_from_another_thread() -> None:
    """A thread that pauses does not consume the wake-up of a thread that waits for a permit."""
    limiter = RateLimiter(RequestCounts(1))
    paused = start_threads(1, lambda: pause_until_closed(limiter))
    wait_for_a_retry(limiter)

    def work() -> None:
        for _ in range(20):
            with limiter.permit() as permit:
                time.sleep(0.0005)
                permit.succeeded = True

    join(start_threads(6, work))
    assert limiter.run.sent == 120
    limiter.run.close()
    join(paused)


def test_closing_ends_every_wait() -> None:
    """Waits for a permit, waits after a 429 and pauses end, and nothing is sent afterwards."""
    limiter, ended = RateLimiter(RequestCounts(2)), Inside()

    def wait_for_a_permit() -> None:
        with pytest.raises(ClosedError), limiter.permit():
            raise AssertionError("a permit was given")
        with ended:
            pass

    def pause() -> None:
        pause_until_closed(limiter)
        with ended:
            pass

    with limiter.permit() as permit:
        waiting_for_an_end = start_threads(3, wait_for_a_permit)
        limiter.rate_limited(permit, LONG)
        threads = [*start_threads(3, wait_for_a_permit), *start_threads(2, pause)]
        limiter.run.close()
        join([*waiting_for_an_end, *threads])
    assert ended.total == 8
    assert limiter.run.sent == 1


def test_nothing_starts_after_closing(limiter: RateLimiter) -> None:
    """This holds even if there would be nothing to wait for."""
    limiter.run.close()
    with pytest.raises(ClosedError), limiter.permit():
        raise AssertionError("a permit was given")
    with pytest.raises(ClosedError):
        limiter.pause(0.0)
    assert limiter.run.sent == 0


def test_a_run_has_totals_of_its_requests_and_waits(
    limiter: RateLimiter, simulated_time: SimulatedTime
) -> None:
    """Requests that overlap count in full; a wait for a permit is not part of a request."""
    with limiter.permit() as refused:
        with limiter.permit():
            simulated_time.now += 2.0
        simulated_time.now += 1.0
        limiter.rate_limited(refused, 10.0)
    with limiter.permit():
        limiter.count_resend()
        limiter.count_resend()
        simulated_time.now += 0.5
    limiter.pause(4.0)
    limiter.pause(3.0)
    assert limiter.run.request_seconds == 2.0 + 3.0 + 0.5
    assert limiter.run.retry_wait_seconds == 4.0 + 3.0
    assert (limiter.run.sent, limiter.run.retries) == (5, 4)
    assert limiter.run.in_flight == 0
    assert simulated_time.now == 20.5
