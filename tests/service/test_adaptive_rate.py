"""Runs against services with limits, in simulated time: their duration and their refusals."""

import heapq
import math
import random
from collections.abc import Callable
from typing import NamedTuple, Protocol

import pytest

from tap_audit_events.sandbox.service import RateLimit
from tap_audit_events.service.adaptive_rate import AdaptiveRate

WORKERS = 8


class Limit(Protocol):
    """A service's limit: 0 admits a request, and any other number is how long it has to wait."""

    def seconds_to_wait(self, now: float) -> float: ...


class NoLimit:
    """Admits every request."""

    def seconds_to_wait(self, now: float) -> float:
        return 0.0


class MinuteQuota:
    """Admits some requests in each minute; the run starts `begins_at` seconds into a minute."""

    def __init__(self, requests: int, *, begins_at: float = 0.0) -> None:
        self._requests, self._begins_at = requests, begins_at
        self._minute, self._admitted = -1.0, 0

    def seconds_to_wait(self, now: float) -> float:
        minute, second = divmod(now + self._begins_at, 60)
        if minute != self._minute:
            self._minute, self._admitted = minute, 0
        self._admitted += 1
        return 0.0 if self._admitted <= self._requests else 60 - second


class OtherJob:
    """A quota that another job uses up: some requests pass, and then all have to wait once."""

    def __init__(self, passes: int, wait_seconds: float) -> None:
        self._passes, self._wait_seconds = passes, wait_seconds
        self._refuses_until = math.inf

    def seconds_to_wait(self, now: float) -> float:
        if self._passes:
            self._passes -= 1
            return 0.0
        self._refuses_until = min(self._refuses_until, now + self._wait_seconds)
        return max(0.0, self._refuses_until - now)


class Until:
    """Applies a limit until a time, and none afterwards."""

    def __init__(self, seconds: float, limit: Limit) -> None:
        self._seconds, self._limit = seconds, limit

    def seconds_to_wait(self, now: float) -> float:
        return self._limit.seconds_to_wait(now) if now < self._seconds else 0.0


class Outcome(NamedTuple):
    """The times at which requests of a simulated run succeeded or were refused."""

    succeeded_at: list[float]
    refused_at: list[float]

    @property
    def seconds(self) -> float:
        return self.succeeded_at[-1]

    @property
    def refused_share(self) -> float:
        return len(self.refused_at) / (len(self.refused_at) + len(self.succeeded_at))


def simulate(limit: Limit, requests: int, *, response_seconds: float) -> Outcome:
    """In simulated time, send requests as fast as an adaptive rate permits, until all succeed.

    Response times vary by 30 %, and are the same at each call.
    """
    rate, now, left, sent = AdaptiveRate(WORKERS), 0.0, requests, 0
    outcome, chance = Outcome([], []), random.Random(1)
    in_flight: list[tuple[float, int, float, float]] = []
    while left or in_flight:
        may_send = left and len(in_flight) < int(rate.limit)
        wait = rate.seconds_to_wait(now) if may_send else math.inf
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
                seconds = float(math.ceil(refused_seconds))
                rate.rate_limited(now, started_at=started_at, seconds=seconds)
            else:
                outcome.succeeded_at.append(now)
            rate.end(started_at=started_at, succeeded=not refused_seconds)
        assert len(in_flight) <= WORKERS
        assert sent < 10 * requests, "most requests are refused"
    return outcome


def test_without_a_limit_nothing_waits() -> None:
    """The number in flight grows to all workers within a few responses."""
    outcome = simulate(NoLimit(), 800, response_seconds=1.0)
    assert not outcome.refused_at
    assert 100 <= outcome.seconds <= 104


@pytest.mark.parametrize("response_seconds", [0.01, 0.5])
@pytest.mark.parametrize(("passes", "wait_seconds"), [(0, 1), (0, 300), (3, 5), (12, 10), (30, 60)])
def test_an_early_refusal_costs_its_wait(
    passes: int, wait_seconds: int, response_seconds: float
) -> None:
    """If another job has used up the quota, the run takes longer by that wait, and not by more."""
    free = simulate(NoLimit(), 110, response_seconds=response_seconds)
    outcome = simulate(OtherJob(passes, wait_seconds), 110, response_seconds=response_seconds)
    extra = outcome.seconds - free.seconds
    assert wait_seconds - response_seconds <= extra <= wait_seconds + 6 * response_seconds
    assert 1 <= len(outcome.refused_at) <= WORKERS


@pytest.mark.parametrize("response_seconds", [0.001, 0.1])
@pytest.mark.parametrize("requests", [100, 400])
@pytest.mark.parametrize("per_second", [0.5, 2, 12, 30])
def test_a_limit_a_second_is_met(per_second: float, requests: int, response_seconds: float) -> None:
    """Few requests are refused, and most of the limit is used."""
    outcome = simulate(RateLimit(per_second), requests, response_seconds=response_seconds)
    assert outcome.refused_share <= 0.2
    assert requests / outcome.seconds >= 0.6 * per_second


@pytest.mark.parametrize("begins_at", [0, 30, 59])
def test_a_quota_a_minute_is_met(begins_at: float) -> None:
    """The quota is used up in each minute, with few refusals."""
    outcome = simulate(MinuteQuota(60, begins_at=begins_at), 200, response_seconds=0.1)
    assert outcome.refused_share <= 0.1
    assert outcome.seconds <= 4 * 60 - begins_at


@pytest.mark.parametrize(
    ("limit", "until"),
    [
        (lambda: RateLimit(1), 60),
        (lambda: RateLimit(12), 60),
        (lambda: MinuteQuota(5), 180),
    ],
)
def test_full_speed_returns_after_a_limit_ends(limit: Callable[[], Limit], until: float) -> None:
    """Within a minute, requests are again as fast as the service responds, and they stay so."""
    outcome = simulate(Until(until, limit()), 10_000, response_seconds=0.1)
    fast = [at for at in outcome.succeeded_at if at > until + 60]
    assert len(fast) / (outcome.seconds - until - 60) >= 0.95 * WORKERS / 0.1
