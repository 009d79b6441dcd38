"""How often a request is retried, and how long it waits before each retry."""

import logging

import backoff
import pytest

from tap_audit_events.errors.exceptions import RefusedError, RetryableError
from tap_audit_events.service.retries import MAX_BACKOFF_SECONDS, MAX_RETRY_AFTER_SECONDS, Retries

LOGGER = logging.getLogger("retries")


def an_error(retry_after_seconds: float | None = None) -> RetryableError:
    error = RetryableError("AE-500", details="status 503")
    error.retry_after_seconds = retry_after_seconds
    return error


def waits(most: int, retry_after_seconds: float | None = None) -> list[float]:
    retries = Retries(most, LOGGER)
    seconds = [retries.seconds_before_next(an_error(retry_after_seconds)) for _ in range(most)]
    return [each for each in seconds if each is not None]


def test_the_longest_waits_double_up_to_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backoff is exponential."""
    monkeypatch.setattr(backoff, "full_jitter", lambda seconds: seconds)
    assert waits(9) == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert MAX_BACKOFF_SECONDS == 60


@pytest.mark.parametrize("seconds", [0.5, 10.0, 100.0, MAX_RETRY_AFTER_SECONDS])
def test_retry_after_is_a_minimum(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backoff may be longer, and continues to grow."""
    monkeypatch.setattr(backoff, "full_jitter", lambda longest: longest)
    expected = [max(seconds, longest) for longest in (1, 2, 4, 8)]
    assert waits(4, seconds) == expected


@pytest.mark.parametrize("most", [0, 8])
@pytest.mark.parametrize("seconds", [MAX_RETRY_AFTER_SECONDS + 1, 1e9, float("inf")])
def test_a_wait_that_is_too_long_ends_the_run(seconds: float, most: int) -> None:
    """This holds for the first wait, too, and even if no retry is left."""
    with pytest.raises(RefusedError, match=r"AE-RETRY-AFTER.*status 503"):
        Retries(most, LOGGER).seconds_before_next(an_error(seconds))
