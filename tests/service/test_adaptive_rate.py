"""When a request is sent again."""

import heapq
import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.sandbox.service import RateLimit
from tap_audit_events.service.adaptive_rate import (
    Pace,
    http_date,
    pause_seconds,
    retry_after_seconds,
)

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


class MinuteQuota:
    """Admits so many requests in each minute of the clock."""

    def __init__(self, requests: int) -> None:
        self._requests = requests
        self._minute, self._admitted = -1, 0

    def seconds_to_wait(self, now: float) -> float:
        if self._minute != now // 60:
            self._minute, self._admitted = int(now // 60), 0
        self._admitted += 1
        return 0.0 if self._admitted <= self._requests else 60.0


def paced(
    limit: RateLimit | MinuteQuota, requests: int, reply_seconds: float, most: int = 8
) -> tuple[float, float]:
    """Send so many requests past a limit: how long it took, and which share was refused."""
    pace, now, sent, left = Pace(most), 0.0, 0, requests
    under_way: list[tuple[float, int, float, float]] = []
    while left or under_way:
        wait = pace.seconds_to_wait(now) if left else math.inf
        if wait == 0:
            pace.start(now)
            sent, left = sent + 1, left - 1
            refused_for = limit.seconds_to_wait(now)
            heapq.heappush(under_way, (now + reply_seconds, sent, now, refused_for))
        elif not under_way or now + wait < under_way[0][0]:
            now += wait
        else:
            now, _, started_at, refused_for = heapq.heappop(under_way)
            if refused_for:
                left += 1
                pace.hold(now, started_at=started_at, seconds=math.ceil(refused_for))
            pace.end(good=not refused_for)
        assert pace.under_way == len(under_way) <= most
    return now, 1 - requests / sent


@pytest.mark.parametrize("reply_seconds", [0.001, 0.1])
@pytest.mark.parametrize("requests", [100, 200, 500])
@pytest.mark.parametrize("per_second", [1, 2, 12, 30, 100])
def test_a_rate_limit_is_met(per_second: int, requests: int, reply_seconds: float) -> None:
    """At most a tenth is refused, and it takes little longer than the limit has it."""
    seconds, refused = paced(RateLimit(per_second), requests, reply_seconds)
    shortest = max((requests - 1) // per_second, requests * reply_seconds / 8)
    assert refused <= 0.1
    assert seconds <= 1.6 * shortest + 2


@pytest.mark.parametrize("requests", [100, 200, 500])
def test_a_quota_a_minute_is_met(requests: int) -> None:
    """Also where what was free at first is soon used up, and each refusal costs a minute."""
    seconds, refused = paced(MinuteQuota(60), requests, 0.1)
    assert refused <= 0.1
    assert seconds <= 1.75 * ((requests - 1) // 60) * 60


def test_without_a_limit_nothing_waits() -> None:
    """The number under way grows to the most within a few replies, and no reply is waited for."""
    seconds, refused = paced(RateLimit(10**6), 800, 1.0)
    assert refused == 0
    assert 100 <= seconds <= 102


@pytest.mark.parametrize(("most", "first"), [(1, 1), (2, 1), (8, 4), (32, 16)])
def test_the_number_at_a_time_begins_at_half(most: int, first: int) -> None:
    """At least one may start, and one more than may has to wait for an end."""
    pace = Pace(most)
    for _ in range(first):
        assert pace.seconds_to_wait(0) == 0
        pace.start(0)
    assert pace.seconds_to_wait(0) == math.inf


def reach_the_most(pace: Pace) -> None:
    for _ in range(100):
        pace.start(0)
        pace.end(good=True)


def test_a_refusal_halves_the_number_and_holds() -> None:
    """Those refused together count once; the longest of their waits is kept."""
    pace = Pace(8)
    reach_the_most(pace)
    for _ in range(8):
        pace.start(10.0)
    for seconds in (3, 5, 4):
        pace.hold(11.0, started_at=10.0, seconds=seconds)
        pace.end(good=False)
    assert pace.limit == 4
    for _ in range(5):
        pace.end(good=True)
    assert pace.seconds_to_wait(11.0) == 5
    assert pace.seconds_to_wait(16.0) == 0
    pace.start(16.0)
    pace.hold(17.0, started_at=16.0, seconds=1)
    assert pace.limit == 2


def test_the_number_grows_by_one_after_each_good_run() -> None:
    """Twenty good replies in a row; a failure among them starts the run again."""
    pace = Pace(8)
    reach_the_most(pace)
    pace.start(0)
    pace.hold(0, started_at=0, seconds=1)
    pace.end(good=False)
    limits = []
    for number in range(1, 62):
        pace.start(number * 60)
        pace.end(good=number != 10)
        limits.append(pace.limit)
    assert limits == [4] * 29 + [5] * 20 + [6] * 12


def test_the_very_first_request_may_be_refused() -> None:
    """Then there is nothing to judge by but how long that took, and the wait itself."""
    pace = Pace(8)
    pace.start(0)
    pace.hold(0.5, started_at=0, seconds=2)
    pace.end(good=False)
    assert pace.limit == 2
    assert pace.seconds_to_wait(0.5) == pytest.approx(2.5 * 1.1 - 0.5)
    assert pace.seconds_to_wait(2.8) == 0


def test_until_a_request_is_refused_each_good_reply_lets_one_more_start() -> None:
    """So that an export has as many under way as it can use."""
    pace = Pace(8)
    for limit in (5, 6, 7, 8, 8):
        pace.start(0)
        pace.end(good=True)
        assert pace.limit == limit
