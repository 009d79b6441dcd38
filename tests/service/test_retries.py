"""How often a request is retried, and how long it waits before each retry."""

import logging
from datetime import UTC, datetime

import backoff
import pytest

from tap_audit_events.errors.exceptions import RefusedError, RetryableError
from tap_audit_events.service.retries import (
    MAX_BACKOFF_SECONDS,
    MAX_RETRY_AFTER_SECONDS,
    Retries,
    retry_after_seconds,
)

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


@pytest.mark.parametrize("most", [0, 1, 3])
def test_after_the_last_retry_the_error_says_how_many_there_were(most: int) -> None:
    """There is no wait after the last retry."""
    retries = Retries(most, LOGGER)
    for _ in range(most):
        assert retries.seconds_before_next(an_error()) is not None
    error = an_error(MAX_RETRY_AFTER_SECONDS)
    assert retries.seconds_before_next(error) is None
    gave_up = f"; gave up after {most} retr{'y' if most == 1 else 'ies'}" if most else ""
    assert error.details == f"status 503{gave_up}"


# The header Retry-After

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("1.5", 1.5),
        ("9" * 400, float("inf")),
        ("9, 10, 0.5", 10.0),
    ],
)
def test_a_number_is_a_wait_in_seconds(header: str, seconds: float) -> None:
    assert retry_after_seconds(header, now=NOW) == seconds


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("Sat, 31 Jan 2026 12:00:07 GMT", 7.0),
        ("Saturday, 31-Jan-26 12:00:07 GMT", 7.0),
        ("Sat Jan 31 12:00:07 2026", 7.0),
        ("Sat, 31 Jan 2026 13:00:07 +0100", 7.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 251632439999.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
    ],
)
def test_each_form_of_an_http_date_is_read(header: str, seconds: float) -> None:
    """A date counts from the time of the response; one in the past needs no wait."""
    assert retry_after_seconds(header, now=NOW) == seconds


@pytest.mark.parametrize(
    "header",
    [
        None, "", "soon", "-1", "+5", "1e3", "5, soon", "5.", "5s", "nan", "inf", "\uff11\uff12",
        "Sat, 99 Jan 2026 12:00:07 GMT", "Sat, 31 Jan 2026 12:00:07 +99999999999999999999",
    ],
)  # fmt: skip
def test_anything_else_is_ignored(header: str | None) -> None:
    """For a header in neither form, the caller's own backoff decides."""
    assert retry_after_seconds(header, now=NOW) is None
