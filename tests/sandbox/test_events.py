"""The generated events: they depend on the seed, and are as varied as real ones."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tap_audit_events.sandbox import ACCESS_TOKEN, ORGANIZATION_ID, Service, generate
from tap_audit_events.sandbox.data.instants import instant_of

UNTIL = datetime(2024, 5, 31, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return generate(5000, 30, 1, UNTIL)


def test_the_same_arguments_give_the_same_events(events: list[dict[str, Any]]) -> None:
    """The events depend on the seed and the end, and on nothing outside of the arguments."""
    assert generate(5000, 30, 1, UNTIL) == events
    assert generate(5000, 30, 2, UNTIL) != events
    assert generate(5000, 30, 1, UNTIL + timedelta(days=1)) != events


@settings(max_examples=40)
@given(
    count=st.integers(0, 300),
    days=st.floats(1e-9, 4000),
    seed=st.integers(),
    until=st.datetimes(datetime(2015, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_events_lie_in_their_days_and_end_just_before_the_end(
    count: int, days: float, seed: int, until: datetime
) -> None:
    """There are as many as requested, oldest first; the newest is at most 2 ms before the end."""
    times = [
        datetime.fromisoformat(event["occurredAt"]) for event in generate(count, days, seed, until)
    ]
    assert len(times) == count
    assert times == sorted(times)
    first = until - max(timedelta(days=days), timedelta(milliseconds=2))
    assert all(first <= time < until for time in times)
    assert all(until - time <= timedelta(milliseconds=2) for time in times[-1:])


@pytest.mark.parametrize("size", [100, 1000])
def test_events_of_one_instant_lie_on_both_sides_of_page_boundaries(
    events: list[dict[str, Any]], size: int
) -> None:
    """This holds for pages in ascending and in descending order."""
    instants = [instant_of(event["occurredAt"]) for event in events]
    for order in (instants, instants[::-1]):
        assert any(order[place - 1] == order[place] for place in range(size, 5000, size))


def test_live_events_appear_at_their_rate_after_the_given_time() -> None:
    """Their number follows the clock: at 2 a second, there are 20 after 10 seconds."""
    now = [50.0]
    service = Service(live_events_per_second=2, live_from=UNTIL, clock=lambda: now[0])
    path = f"/v1/organizations/{ORGANIZATION_ID}/audit_events"

    def visible() -> int:
        service.respond("GET", path, b"", {"Authorization": f"Bearer {ACCESS_TOKEN}"})
        return service.event_count

    assert visible() == 0
    now[0] += 0.5
    assert visible() == 1
    now[0] += 9.5
    assert visible() == 20
    assert visible() == 20
    assert b"2024-05-31T12:00:10Z" in _newest(service)


def _newest(service: Service, size: int = 1) -> bytes:
    path = f"/v1/organizations/{ORGANIZATION_ID}/audit_events"
    headers = {"Authorization": f"Bearer {ACCESS_TOKEN}"}
    return service.respond("GET", path, b"pageSize=%d" % size, headers).body
