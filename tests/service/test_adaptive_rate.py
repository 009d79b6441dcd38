"""How the rate of requests adapts to refusals, step by step."""

from itertools import pairwise

import pytest

from tap_audit_events.service.adaptive_rate import AdaptiveRate
from tests.service.simulated_limits import WORKERS

# The spacing


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
    """Its four successes count; those of requests that were sent before it do not."""
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


def test_a_period_begins_when_the_wait_ends() -> None:
    """This holds even if the next request is sent later: the service may count from then on."""
    rate = AdaptiveRate(4 * WORKERS)
    rate.start(0.0)
    rate.rate_limited(0.0, started_at=0.0, seconds=10)
    rate.end(started_at=0.0, succeeded=False)
    for _ in range(4):
        rate.start(13.0)
        rate.end(started_at=13.0, succeeded=True)
    rate.start(14.0)
    rate.rate_limited(14.5, started_at=14.0, seconds=6)
    rate.end(started_at=14.0, succeeded=False)
    rate.start(20.5)
    assert rate.seconds_to_wait(20.5) == pytest.approx(10 / 4 * 1.05)


@pytest.mark.parametrize(("successes", "spacing"), [(20, 0.0), (21, 0.2), (42, 0.1)])
def test_the_first_refusal_leads_to_a_narrow_spacing_or_none(
    successes: int, spacing: float
) -> None:
    """No spacing follows few successes: other jobs may have used most of the quota."""
    rate = AdaptiveRate(WORKERS)
    for _ in range(successes):
        rate.start(0.0)
        rate.end(started_at=0.0, succeeded=True)
    rate.start(1.0)
    rate.rate_limited(1.0, started_at=1.0, seconds=3)
    rate.end(started_at=1.0, succeeded=False)
    rate.start(4.0)
    assert rate.seconds_to_wait(4.0) == pytest.approx(spacing)


def test_the_spacing_is_kept_for_a_while_and_then_halves() -> None:
    """A spacing of 2.1 s is kept for 20 s, and then halves every 4 s."""
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
    """Each refusal widens it by a quarter, up to five seconds."""
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
def test_a_refusal_after_the_spacing_has_shrunk_widens_it_a_little(
    start: float, spacing: float
) -> None:
    """The spacing becomes a quarter wider, but not wider than the one that was kept before."""
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
    """The rate at 5 s, after one success in a period of two seconds: requests are 2.1 s apart."""
    rate = AdaptiveRate(1)
    for started_at, succeeded in [(0.0, False), (3.0, True), (3.0, False)]:
        rate.start(started_at)
        if not succeeded:
            seconds = 3.0 if started_at == 0 else 2.0
            rate.rate_limited(started_at, started_at=started_at, seconds=seconds)
        rate.end(started_at=started_at, succeeded=succeeded)
    return rate


# The number in flight


@pytest.mark.parametrize(("workers", "first"), [(1, 1), (2, 1), (3, 2), (8, 4), (32, 16)])
def test_the_number_in_flight_begins_at_half(workers: int, first: int) -> None:
    """At least one request may start."""
    assert int(AdaptiveRate(workers).limit) == first


def test_the_number_in_flight_grows_by_one_a_round() -> None:
    """A round is as many successes as may be in flight; the maximum is the number of workers."""
    rate = AdaptiveRate(6)
    limits = []
    for _ in range(20):
        rate.start(0)
        rate.end(started_at=0, succeeded=True)
        limits.append(int(rate.limit))
    assert limits == [3] * 3 + [4] * 4 + [5] * 6 + [6] * 7


def test_a_failed_request_does_not_raise_the_number_in_flight() -> None:
    rate = AdaptiveRate(8)
    for _ in range(100):
        rate.start(0)
        rate.end(started_at=0, succeeded=False)
    assert int(rate.limit) == 4


def test_requests_that_are_refused_together_slow_the_rate_once() -> None:
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
    assert int(rate.limit) == 4
    for _ in range(5):
        rate.end(started_at=10.0, succeeded=False)
    assert rate.seconds_to_wait(11.0) == 5
    assert rate.seconds_to_wait(16.0) == 0
    rate.start(16.0)
    rate.rate_limited(17.0, started_at=16.0, seconds=1)
    assert int(rate.limit) == 2
    assert rate.seconds_to_wait(17.0) == 1
