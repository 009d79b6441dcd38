"""How many requests in flight gain time."""

import pytest

from tap_audit_events.extraction.planning.concurrency import ConcurrencyEstimator

PARSE_SECONDS = 0.004


def learned(
    *,
    wait_seconds: float,
    deliver_seconds: float = 0.0,
    pages: int = 40,
    estimator: ConcurrencyEstimator | None = None,
) -> ConcurrencyEstimator:
    """An estimator that has seen pages which all took the same time."""
    estimator = estimator or ConcurrencyEstimator()
    for _ in range(pages):
        estimator.received(wait_seconds + PARSE_SECONDS, PARSE_SECONDS)
        estimator.delivered(deliver_seconds)
    return estimator


def test_the_first_request_is_alone() -> None:
    """Nothing is known yet, and its response may be the whole run."""
    estimator = ConcurrencyEstimator()
    assert estimator.most_in_flight == 1
    estimator.delivered(0.001)
    assert estimator.most_in_flight == 1


@pytest.mark.parametrize(
    ("wait_seconds", "most"),
    [(0, 1), (0.0019, 1), (0.0021, 2), (0.0059, 2), (0.0061, 3), (0.1001, 26), (1.001, 251)],
)
def test_as_many_requests_gain_time_as_fit_into_a_response(wait_seconds: float, most: int) -> None:
    """One request is enough against a near service; many gain time against a far one."""
    assert learned(wait_seconds=wait_seconds).most_in_flight == most


@pytest.mark.parametrize(("wait_seconds", "most"), [(0.002, 1), (0.0101, 1), (0.1001, 26)])
def test_after_a_quick_first_response_the_second_request_is_alone(
    wait_seconds: float, most: int
) -> None:
    """So a run of a few pages from a near service sends no request for windows."""
    assert learned(wait_seconds=wait_seconds, pages=1).most_in_flight == most


@pytest.mark.parametrize(
    ("deliver_seconds", "most"),
    [(0.0, 26), (0.001, 21), (0.004, 14), (0.096, 2), (0.2, 1), (5.0, 1)],
)
def test_a_slow_target_lowers_the_estimate(deliver_seconds: float, most: int) -> None:
    """Pages that the target cannot take yet need not be requested."""
    estimator = learned(wait_seconds=0.1001, deliver_seconds=deliver_seconds)
    assert estimator.most_in_flight == most


@pytest.mark.parametrize(("before", "after", "most"), [(0.001, 0.1001, 26), (0.1001, 0.001, 1)])
def test_the_newest_responses_count(before: float, after: float, most: int) -> None:
    """Within sixteen responses, the estimate follows a service that becomes slower or faster."""
    estimator = learned(wait_seconds=before)
    learned(wait_seconds=after, pages=16, estimator=estimator)
    assert estimator.most_in_flight == most


@pytest.mark.parametrize(("seconds", "processor_seconds"), [(0.0, 0.0), (0.0, 1.0), (1e9, 0.0)])
def test_clocks_may_say_anything(seconds: float, processor_seconds: float) -> None:
    """At least one request may be in flight, whatever the clocks say."""
    estimator = ConcurrencyEstimator()
    estimator.received(seconds, processor_seconds)
    estimator.delivered(0.0)
    assert estimator.most_in_flight >= 1
