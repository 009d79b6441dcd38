"""Runs against services with limits: how long they take, and how many requests are refused."""

import random
import statistics
from collections.abc import Callable

import pytest

from tap_audit_events.sandbox.service import RateLimit
from tests.service.simulated_limits import (
    WORKERS,
    ByChance,
    Limit,
    MinuteQuota,
    NoLimit,
    OtherJob,
    Until,
    simulate,
)

# A refusal that says little about the rate


@pytest.mark.parametrize("response_seconds", [0.01, 0.5])
@pytest.mark.parametrize(
    ("passes", "wait_seconds"),
    [(0, 1), (0, 10), (0, 300), (1, 60), (3, 5), (5, 30), (12, 10), (30, 60)],
)
def test_an_early_refusal_costs_its_wait(
    passes: int, wait_seconds: int, response_seconds: float
) -> None:
    """If another job has used up the quota, the run takes longer by that wait, and not by more."""
    free = simulate(NoLimit(), 110, response_seconds=response_seconds)
    outcome = simulate(OtherJob(passes, wait_seconds), 110, response_seconds=response_seconds)
    extra = outcome.seconds - free.seconds
    assert wait_seconds - response_seconds <= extra <= wait_seconds + 6 * response_seconds
    assert 1 <= len(outcome.refused_at) <= WORKERS


@pytest.mark.parametrize(("wait_seconds", "times"), [(1, 5), (2, 15), (10, 6), (60, 3)])
def test_repeated_refusals_before_the_first_success_cost_their_waits(
    wait_seconds: int, times: int
) -> None:
    """However many there are, they say nothing about the rate."""
    free = simulate(NoLimit(), 110, response_seconds=0.1)
    outcome = simulate(OtherJob(0, wait_seconds, times=times), 110, response_seconds=0.1)
    extra = outcome.seconds - free.seconds - wait_seconds * times
    assert 0 <= extra <= 0.2 * times + 1
    assert len(outcome.refused_at) <= times + 5


# A limit that stays


@pytest.mark.parametrize("response_seconds", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("requests", [60, 100, 200, 400])
def test_a_limit_of_twelve_a_second_is_met(requests: int, response_seconds: float) -> None:
    """At most a tenth of the requests is refused, and at least 70 % of the limit is used."""
    outcome = simulate(RateLimit(12), requests, response_seconds=response_seconds)
    assert outcome.refused_share <= 0.1
    assert requests / outcome.seconds >= 0.7 * 12


@pytest.mark.parametrize("workers", [1, 2, 4, 32])
def test_a_limit_is_met_with_any_number_of_workers(workers: int) -> None:
    """With more workers, more requests are refused only when the limit is first reached."""
    outcome = simulate(RateLimit(12), 400, response_seconds=0.02, workers=workers)
    assert outcome.refused_share <= 0.06
    assert 400 / outcome.seconds >= 0.7 * 12


@pytest.mark.parametrize("response_seconds", [0.001, 0.1])
@pytest.mark.parametrize("requests", [100, 300])
@pytest.mark.parametrize("per_second", [0.5, 1, 2, 4, 30])
def test_other_rates_are_met(per_second: float, requests: int, response_seconds: float) -> None:
    """After a few dozen requests, few are refused; at least 60 % of the limit is used."""
    outcome = simulate(RateLimit(per_second), requests, response_seconds=response_seconds)
    assert outcome.refused_share <= 0.2
    assert outcome.refused_share_after(36) <= 0.15
    assert requests / outcome.seconds >= 0.6 * per_second


@pytest.mark.parametrize("begins_at", [0, 30, 59])
@pytest.mark.parametrize("requests", [100, 200, 500])
def test_a_quota_a_minute_is_met(requests: int, begins_at: float) -> None:
    """The quota is used up in each minute, with few refusals."""
    limit = MinuteQuota(60, begins_at=begins_at)
    outcome = simulate(limit, requests, response_seconds=0.1)
    assert outcome.refused_share <= 0.1
    assert outcome.seconds <= (requests - 1) // 60 * 60 - begins_at + 60


def test_a_limit_without_retry_after_is_met() -> None:
    """Without that header, a refused request waits for a random time of at most a second."""
    chance = random.Random(1)
    outcome = simulate(
        RateLimit(12), 400, response_seconds=0.1, retry_after=lambda _: chance.uniform(0, 1)
    )
    assert outcome.refused_share <= 0.1
    assert 400 / outcome.seconds >= 0.7 * 12


def test_a_service_slower_than_the_longest_spacing_gets_one_request_a_wait() -> None:
    """The spacing is at most five seconds; only the service can demand longer waits."""
    outcome = simulate(RateLimit(0.05), 20, response_seconds=0.1)
    assert 20 * 19 <= outcome.seconds <= 20 * 20
    assert outcome.refused_share <= 0.6


# No limit, but refusals


@pytest.mark.parametrize(("share", "most_times"), [(0.002, 1.1), (0.005, 1.25), (0.01, 1.6)])
def test_a_few_refusals_by_chance_cost_little_more_than_their_waits(
    share: float, most_times: float
) -> None:
    """A gateway may now and then refuse a request that the service would have admitted."""
    free = simulate(NoLimit(), 2000, response_seconds=0.1, workers=4)
    times = []
    for seed in range(20):
        outcome = simulate(ByChance(share, seed), 2000, response_seconds=0.1, workers=4)
        times.append((outcome.seconds - len(outcome.refused_at)) / free.seconds)
    assert statistics.median(times) <= most_times


# A limit that ends


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
def test_full_speed_returns_after_a_limit_ends(
    limit_until: Callable[[], Limit], until: float, most_seconds: float
) -> None:
    """Within a minute, requests are again as fast as the service responds, and they stay so."""
    limit = Until(until, limit_until(), NoLimit())
    outcome = simulate(limit, 10_000, response_seconds=0.1)
    assert all(at <= until + 0.2 for at in outcome.refused_at)
    fast_since = until + most_seconds
    fast = [at for at in outcome.succeeded_at if at > fast_since]
    assert len(fast) / (outcome.seconds - fast_since) >= 0.95 * WORKERS / 0.1


def test_a_share_of_a_limit_grows_when_the_other_job_ends() -> None:
    """While another job uses six requests a second, the run gets six, and afterwards twelve."""
    limit = Until(60, RateLimit(6), RateLimit(12))
    outcome = simulate(limit, 1400, response_seconds=0.1)
    late = [at for at in outcome.succeeded_at if at > 90]
    assert len(late) / (outcome.seconds - 90) >= 0.75 * 12
    assert outcome.refused_share <= 0.03


# No limit


def test_without_a_limit_nothing_waits() -> None:
    """The number in flight grows to all workers within a few responses."""
    outcome = simulate(NoLimit(), 800, response_seconds=1.0)
    assert not outcome.refused_at
    assert 100 <= outcome.seconds <= 104
