"""When a request is sent again."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.pacing import http_date, pause_seconds, retry_after_seconds

_NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("0", 0.0),
        ("3", 3.0),
        (" 120 ", 120.0),
        ("1.5", 1.5),
        ("9" * 400, float("inf")),
        ("0000000000000000000005", 5.0),
        ("Sat, 31 Jan 2026 12:00:07 GMT", 7.0),
        ("Saturday, 31-Jan-26 12:00:07 GMT", 7.0),
        ("Sat, 31 Jan 2026 11:59:00 GMT", 0.0),
        ("Sat, 99 Jan 2026 12:00:07 GMT", None),
        ("\uff11\uff12", None),
    ],
)
def test_retry_after_is_read_in_both_forms(header: str | None, seconds: float | None) -> None:
    """Seconds and HTTP dates are understood; what has passed is 0; anything else says nothing."""
    assert retry_after_seconds(header, now=_NOW) == seconds


@given(st.text(max_size=60))
def test_any_header_is_read_or_ignored(header: str) -> None:
    """No text makes reading it fail."""
    seconds = retry_after_seconds(header, now=_NOW)
    assert seconds is None or seconds >= 0


@given(st.integers(-(10**6), 10**6))
def test_an_http_date_is_counted_from_now(seconds: int) -> None:
    """A date is the seconds until it, at least 0."""
    header = format_datetime(_NOW + timedelta(seconds=seconds), usegmt=True)
    assert retry_after_seconds(header, now=_NOW) == max(0, seconds)
    assert http_date(header) == _NOW + timedelta(seconds=seconds)


def test_a_pause_is_at_least_what_was_asked() -> None:
    """Retry-After is a minimum; without it the backoff counts."""
    assert pause_seconds(None, 2.5) == 2.5
    assert pause_seconds(3.0, 2.5) == 3.0
    assert pause_seconds(0.0, 2.5) == 2.5
