"""The wait that a Retry-After header requests."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.service.retries import (
    retry_after_seconds,
)

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("00", 0.0),
        ("0.0", 0.0),
        ("1", 1.0),
        (" 120 ", 120.0),
        ("\t7", 7.0),
        ("0000000000000000000005", 5.0),
        ("0.25", 0.25),
        ("1.5", 1.5),
        ("899.999", 899.999),
        ("900", 900.0),
        ("901", 901.0),
        ("86400", 86400.0),
        ("99999999999999999999", 1e20),
        ("9" * 400, float("inf")),
        ("20, 20", 20.0),
        ("9, 10, 0.5", 10.0),
        ("5,10", 10.0),
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
        ("Sat, 31 Jan 2026 12:15:00 GMT", 900.0),
        ("Sun, 01 Feb 2026 12:00:00 GMT", 86400.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 251632439999.0),
        ("Sat, 31 Jan 2026 12:00:00 GMT", 0.0),
        ("Sat, 31 Jan 2026 11:59:59 GMT", 0.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
    ],
)
def test_each_form_of_an_http_date_is_read(header: str, seconds: float) -> None:
    """A date counts from the time of the response; one in the past needs no wait."""
    assert retry_after_seconds(header, now=NOW) == seconds


@pytest.mark.parametrize(
    "header",
    [
        None, "", "  ", "soon", "-1", "-5", "-0", "-0.5", "+5", "1e3", "1_000",
        "5, soon", "5, ", ", 5",
        ".5", "5.", "5s", "0x10", "nan", "inf", "-inf", "\uff11\uff12", "\u0663",
        "Sat, 99 Jan 2026 12:00:07 GMT", "Sat, 31 Jan 2026 25:00:07 GMT", "tomorrow",
        "Sat, 31 Jan 2026 12:00:07 +99999999999999999999",
        "Sat, 31 Jan 99999999999999999999 12:00:07 GMT",
    ],
)  # fmt: skip
def test_anything_else_is_ignored(header: str | None) -> None:
    """For a header in neither form, the caller's own backoff decides."""
    assert retry_after_seconds(header, now=NOW) is None


@given(st.text(max_size=60))
def test_any_header_is_read_or_ignored(header: str) -> None:
    """Reading a header never fails."""
    seconds = retry_after_seconds(header, now=NOW)
    assert seconds is None or seconds >= 0
