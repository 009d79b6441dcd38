"""How requests adapt to rate limits, in simulated time."""

import heapq
import math
import random
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple, Protocol

import pytest

from tap_audit_events.sandbox.service import RateLimit
from tap_audit_events.service.adaptive_rate import AdaptiveRate

WORKERS = 8


class Limit(Protocol):
    """A service's limit: admits a request with 0, or says for how many seconds it is refused."""

    def seconds_to_wait(self, now: float) -> float: ...


class NoLimit:
    """Admits every request."""

    def seconds_to_wait(self, now: float) -> float:
        return 0.0


class MinuteQuota:
    """Admits so many requests in each minute of the clock, which begins late in a minute or not."""

    def __init__(self, requests: int, *, begins_at: float = 0.0) -> None:
        self._requests = requests
        self._begins_at = begins_at
        self._minute, self._admitted = -1, 0

    def seconds_to_wait(self, now: float) -> float:
        minute, second = divmod(now + self._begins_at, 60)
        if minute != self._minute:
            self._minute, self._admitted = int(minute), 0
        self._admitted += 1
        return 0.0 if self._admitted <= self._requests else 60 - second


class OtherJob:
    """Another job has nearly used up the quota: so many requests pass, then a wait, repeatedly."""

    def __init__(self, passes: int, wait_seconds: float, *, times: int = 1) -> None:
        self._passes, self._wait_seconds, self._times = passes, wait_seconds, times
        self._left, self._refuses_until = passes, -math.inf

    def seconds_to_wait(self, now: float) -> float:
        if now < self._refuses_until:
            return self._refuses_until - now
        if not self._times:
            return 0.0
        if self._left:
            self._left -= 1
            return 0.0
        self._times, self._left = self._times - 1, self._passes
        self._refuses_until = now + self._wait_seconds
        return self._wait_seconds


class Until:
    """One limit until a time, another one afterwards."""

    def __init__(self, seconds: float, before: Limit, after: Limit) -> None:
        self._seconds, self._before, self._after = seconds, before, after

    def seconds_to_wait(self, now: float) -> float:
        return (self._before if now < self._seconds else self._after).seconds_to_wait(now)


class Outcome(NamedTuple):
    """What became of the requests of a simulated run."""

    succeeded_at: list[float]
    refused_at: list[float]

    @property
    def seconds(self) -> float:
        return self.succeeded_at[-1]

    @property
    def refused_share(self) -> float:
        return len(self.refused_at) / (len(self.refused_at) + len(self.succeeded_at))

    def refused_share_after(self, successes: int) -> float:
        since = self.succeeded_at[successes - 1]
        refused = sum(at > since for at in self.refused_at)
        return refused / (refused + len(self.succeeded_at) - successes)


def in_whole_seconds(seconds: float) -> float:
    return float(math.ceil(seconds))


def simulate(
    limit: Limit,
    requests: int,
    *,
    response_seconds: float,
    workers: int = WORKERS,
    retry_after: Callable[[float], float] = in_whole_seconds,
) -> Outcome:
    """Send requests as fast as an adaptive rate lets them, in simulated time, until all succeed.

    Response times vary by 30 %, and are the same at each call.
    """
    rate, now, left, sent = AdaptiveRate(workers), 0.0, requests, 0
    outcome, chance = Outcome([], []), random.Random(1)
    in_flight: list[tuple[float, int, float, float]] = []
    while left or in_flight:
        wait = rate.seconds_to_wait(now) if left else math.inf
        if wait == 0:
            rate.start(now)
            sent, left = sent + 1, left - 1
            ends_at = now + response_seconds * chance.uniform(0.7, 1.3)
            heapq.heappush(in_flight, (ends_at, sent, now, limit.seconds_to_wait(now)))
        elif not in_flight or now + wait < in_flight[0][0]:
            now += wait
        else:
            now, _, started_at, refused_seconds = heapq.heappop(in_flight)
            if refused_seconds:
                left += 1
                outcome.refused_at.append(now)
                seconds = retry_after(refused_seconds)
                rate.rate_limited(now, started_at=started_at, seconds=seconds)
            else:
                outcome.succeeded_at.append(now)
            rate.end(started_at=started_at, succeeded=not refused_seconds)
        assert rate.in_flight == len(in_flight) <= workers
        assert sent < 10 * requests, "most requests are refused"
    return outcome


# A refusal that says little about the rate


@pytest.mark.parametrize("response_seconds", [0.01, 0.5])
@pytest.mark.parametrize(
    ("passes", "wait_seconds"),
    [(0, 1), (0, 10), (0, 300), (1, 60), (3, 5), (5, 30), (12, 10), (30, 60)],
)
def test_an_early_refusal_costs_its_wait(
    passes: int, wait_seconds: int, response_seconds: float
) -> None:
    """If another job used up the quota, the run takes as long as without, plus the wait."""
    free = simulate(NoLimit(), 110, response_seconds=response_seconds)
    outcome = simulate(OtherJob(passes, wait_seconds), 110, response_seconds=response_seconds)
    extra = outcome.seconds - free.seconds
    assert wait_seconds - response_seconds <= extra <= wait_seconds + 6 * response_seconds
    assert 1 <= len(outcome.refused_at) <= WORKERS


@pytest.mark.parametrize(("wait_seconds", "times"), [(1, 5), (2, 15), (10, 6), (60, 3)])
def test_repeated_refusals_before_the_first_success_cost_their_waits(
    wait_seconds: int, times: int
) -> None:
    """However often it happens, nothing is known about the rate."""
    free = simulate(NoLimit(), 110, response_seconds=0.1)
    outcome = simulate(OtherJob(0, wait_seconds, times=times), 110, response_seconds=0.1)
    extra = outcome.seconds - free.seconds - wait_seconds * times
    assert 0 <= extra <= 0.2 * times + 1
    assert len(outcome.refused_at) <= times + 5


@pytest.mark.parametrize("passes", [0, 1, 5])
def test_after_an_early_refusal_requests_are_not_spaced(passes: int) -> None:
    """As many as may be in flight start at once when the wait is over."""
    rate = AdaptiveRate(WORKERS)
    for _ in range(passes):
        rate.start(0.0)
        rate.end(started_at=0.0, succeeded=True)
    rate.start(0.1)
    rate.rate_limited(0.2, started_at=0.1, seconds=10)
    rate.end(started_at=0.1, succeeded=False)
    assert rate.seconds_to_wait(0.2) == 10
    assert rate.seconds_to_wait(10.1) == pytest.approx(0.1)
    rate.start(10.2)
    assert rate.seconds_to_wait(10.2) == 0


def test_the_spacing_is_measured_in_the_period_that_the_refusal_ends() -> None:
    """Not by what succeeded before: one request is late, and four end in the next period."""
    rate = AdaptiveRate(WORKERS)
    for _ in range(3):
        rate.start(0.0)
        rate.end(started_at=0.0, succeeded=True)
    rate.start(0.5)
    rate.start(0.5)
    rate.rate_limited(1.0, started_at=0.5, seconds=9)
    rate.end(started_at=0.5, succeeded=False)
    rate.end(started_at=0.5, succeeded=True)
    for at in (10.0, 10.0, 11.0, 11.0):
        rate.start(at)
        rate.end(started_at=at, succeeded=True)
    rate.start(12.0)
    rate.rate_limited(12.5, started_at=12.0, seconds=4)
    rate.end(started_at=12.0, succeeded=False)
    rate.start(16.5)
    assert rate.seconds_to_wait(16.5) == pytest.approx(6 / 4 * 1.05)


# A limit that stays


@pytest.mark.parametrize("response_seconds", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("requests", [60, 100, 200, 400])
def test_twelve_a_second_are_met(requests: int, response_seconds: float) -> None:
    """At most a tenth is refused, and 70 % of what is allowed is used."""
    outcome = simulate(RateLimit(12), requests, response_seconds=response_seconds)
    assert outcome.refused_share <= 0.1
    assert requests / outcome.seconds >= 0.7 * 12


@pytest.mark.parametrize("workers", [1, 2, 4, 32])
def test_a_limit_is_met_with_any_number_of_workers(workers: int) -> None:
    """Only those that were in flight when the limit was first met are refused with more."""
    outcome = simulate(RateLimit(12), 400, response_seconds=0.02, workers=workers)
    assert outcome.refused_share <= 0.06
    assert 400 / outcome.seconds >= 0.7 * 12


@pytest.mark.parametrize("response_seconds", [0.001, 0.1])
@pytest.mark.parametrize("requests", [100, 300])
@pytest.mark.parametrize("per_second", [0.5, 1, 2, 4, 30])
def test_other_rates_are_met(per_second: float, requests: int, response_seconds: float) -> None:
    """After the first dozens of requests few are refused; most of what is allowed is used."""
    outcome = simulate(RateLimit(per_second), requests, response_seconds=response_seconds)
    assert outcome.refused_share <= 0.2
    assert outcome.refused_share_after(36) <= 0.15
    assert requests / outcome.seconds >= 0.6 * per_second


@pytest.mark.parametrize("begins_at", [0, 30, 59])
@pytest.mark.parametrize("requests", [100, 200, 500])
def test_a_quota_a_minute_is_met(requests: int, begins_at: float) -> None:
    """It is used up in each minute, with few refusals."""
    limit = MinuteQuota(60, begins_at=begins_at)
    outcome = simulate(limit, requests, response_seconds=0.1)
    assert outcome.refused_share <= 0.1
    assert outcome.seconds <= (requests - 1) // 60 * 60 - begins_at + 60


def test_a_limit_without_retry_after_is_met() -> None:
    """Only short waits of their own space the requests then."""
    chance = random.Random(1)
    outcome = simulate(
        RateLimit(12), 400, response_seconds=0.1, retry_after=lambda _: chance.uniform(0, 1)
    )
    assert outcome.refused_share <= 0.1
    assert 400 / outcome.seconds >= 0.7 * 12


def test_a_service_slower_than_the_longest_spacing_is_asked_once_a_wait() -> None:
    """Requests never start further apart than five seconds, unless the service demands it."""
    outcome = simulate(RateLimit(0.05), 20, response_seconds=0.1)
    assert 20 * 19 <= outcome.seconds <= 20 * 20
    assert outcome.refused_share <= 0.6


# A limit that goes away


@pytest.mark.parametrize(
    ("limit_until", "until", "most_seconds"),
    [
        (lambda: RateLimit(1), 60, 40),
        (lambda: RateLimit(0.5), 600, 45),
        (lambda: RateLimit(12), 60, 30),
        (lambda: MinuteQuota(5), 180, 60),
        (lambda: OtherJob(1, 10, times=5), 70, 45),
        (lambda: OtherJob(5, 30, times=3), 116, 45),
        (lambda: OtherJob(0, 10, times=30), 300, 2),
    ],
)
def test_speed_comes_back_when_a_limit_goes(
    limit_until: Callable[[], Limit], until: float, most_seconds: float
) -> None:
    """Within a minute of its end, requests are as fast as the service responds, and stay so."""
    limit = Until(until, limit_until(), NoLimit())
    outcome = simulate(limit, 10_000, response_seconds=0.1)
    assert all(at <= until + 0.2 for at in outcome.refused_at)
    fast_since = until + most_seconds
    fast = [at for at in outcome.succeeded_at if at > fast_since]
    assert len(fast) / (outcome.seconds - fast_since) >= 0.95 * WORKERS / 0.1


def test_a_share_of_a_limit_grows_when_the_other_job_ends() -> None:
    """Six a second as long as another job uses the other six, then twelve."""
    limit = Until(60, RateLimit(6), RateLimit(12))
    outcome = simulate(limit, 1400, response_seconds=0.1)
    late = [at for at in outcome.succeeded_at if at > 90]
    assert len(late) / (outcome.seconds - 90) >= 0.75 * 12
    assert outcome.refused_share <= 0.03


def test_the_spacing_is_kept_for_a_while_and_then_halves() -> None:
    """One request a second: kept for 20 s, then halved every 4 s."""
    rate = rate_after_a_full_period()
    starts = [5.0]
    while starts[-1] < 60:
        rate.start(starts[-1])
        rate.end(started_at=starts[-1], succeeded=True)
        starts.append(starts[-1] + rate.seconds_to_wait(starts[-1]))
    for start, following in pairwise(starts):
        halvings = max(0.0, start - 25.0) / 4
        assert following - start == pytest.approx(2.1 * 0.5**halvings)
    assert rate.seconds_to_wait(starts[-1]) < 0.02


def test_a_refusal_while_the_spacing_is_kept_widens_it() -> None:
    """By a quarter, up to five seconds."""
    rate, now, waits = rate_after_a_full_period(), 5.0, []
    for _ in range(6):
        rate.start(now)
        rate.rate_limited(now, started_at=now, seconds=1)
        rate.end(started_at=now, succeeded=False)
        rate.start(now + 1)
        rate.end(started_at=now + 1, succeeded=True)
        waits.append(rate.seconds_to_wait(now + 1))
        now += 1 + waits[-1]
    assert waits == pytest.approx([2.1 * 1.25**n for n in range(1, 4)] + [5.0] * 3)


@pytest.mark.parametrize(
    ("start", "spacing"), [(26.0, 2.1), (29.0, 2.1 * 0.5 * 1.25), (41.0, 2.1 * 0.5**4 * 1.25)]
)
def test_a_refusal_after_the_spacing_has_shrunk_goes_back_a_little(
    start: float, spacing: float
) -> None:
    """A quarter wider than when it came, but no wider than what was kept without a refusal."""
    rate = rate_after_a_full_period()
    rate.start(start)
    rate.end(started_at=start, succeeded=True)
    refused = start + rate.seconds_to_wait(start)
    rate.start(refused)
    rate.rate_limited(refused, started_at=refused, seconds=1)
    rate.end(started_at=refused, succeeded=False)
    rate.start(refused + 1)
    rate.end(started_at=refused + 1, succeeded=True)
    assert rate.seconds_to_wait(refused + 1) == pytest.approx(spacing)


def rate_after_a_full_period() -> AdaptiveRate:
    """The rate at 5 s, after one success in a period of two seconds: 2.1 s apart."""
    rate = AdaptiveRate(1)
    for started_at, succeeded in [(0.0, False), (3.0, True), (3.0, False)]:
        rate.start(started_at)
        if not succeeded:
            seconds = 3.0 if started_at == 0 else 2.0
            rate.rate_limited(started_at, started_at=started_at, seconds=seconds)
        rate.end(started_at=started_at, succeeded=succeeded)
    return rate


# The number in flight


def test_without_a_limit_nothing_waits() -> None:
    """The number in flight grows to all workers within a few responses."""
    outcome = simulate(NoLimit(), 800, response_seconds=1.0)
    assert not outcome.refused_at
    assert 100 <= outcome.seconds <= 104


@pytest.mark.parametrize(("workers", "first"), [(1, 1), (2, 1), (3, 2), (8, 4), (32, 16)])
def test_the_number_in_flight_begins_at_half(workers: int, first: int) -> None:
    """At least one request may start, and one more has to wait for an end."""
    rate = AdaptiveRate(workers)
    for _ in range(first):
        assert rate.seconds_to_wait(0) == 0
        rate.start(0)
    assert rate.seconds_to_wait(0) == math.inf


def test_the_number_in_flight_grows_by_one_a_round() -> None:
    """A round is as many successes as may be in flight; the workers are the most."""
    rate = AdaptiveRate(6)
    limits = []
    for _ in range(20):
        rate.start(0)
        rate.end(started_at=0, succeeded=True)
        limits.append(rate.limit)
    assert limits == [3] * 3 + [4] * 4 + [5] * 6 + [6] * 7


def test_a_failed_request_does_not_grow_the_number_in_flight() -> None:
    rate = AdaptiveRate(8)
    for _ in range(100):
        rate.start(0)
        rate.end(started_at=0, succeeded=False)
    assert rate.limit == 4


def test_those_refused_together_slow_the_rate_once() -> None:
    """The number in flight is halved once, and the longest of the waits counts."""
    rate = AdaptiveRate(8)
    for _ in range(100):
        rate.start(0)
        rate.end(started_at=0, succeeded=True)
    for _ in range(8):
        rate.start(10.0)
    for seconds in (3, 5, 4):
        rate.rate_limited(11.0, started_at=10.0, seconds=seconds)
        rate.end(started_at=10.0, succeeded=False)
    assert rate.limit == 4
    for _ in range(5):
        rate.end(started_at=10.0, succeeded=False)
    assert rate.seconds_to_wait(11.0) == 5
    assert rate.seconds_to_wait(16.0) == 0
    rate.start(16.0)
    rate.rate_limited(17.0, started_at=16.0, seconds=1)
    assert rate.limit == 2
    assert rate.seconds_to_wait(17.0) == 1
