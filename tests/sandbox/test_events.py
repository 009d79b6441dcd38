"""The generated events: they depend on the seed, and are as varied as real ones."""

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tap_audit_events.sandbox import ACCESS_TOKEN, ORGANIZATION_ID, Service, generate
from tap_audit_events.sandbox.data.instants import instant_of
from tests.sandbox.conftest import Sandbox

UNTIL = datetime(2024, 5, 31, 12, tzinfo=UTC)
REQUIRED = {"id", "occurredAt", "action", "actor", "context", "scope", "entity"}


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return generate(5000, 30, 1, UNTIL)


def hours(events: list[dict[str, Any]]) -> Counter[tuple[bool, bool]]:
    """Count the events by whether their hour is an office hour and their day a weekday."""
    times = [datetime.fromisoformat(event["occurredAt"]) for event in events]
    return Counter((8 <= time.hour < 18, time.weekday() < 5) for time in times)


def test_the_same_arguments_give_the_same_events(events: list[dict[str, Any]]) -> None:
    """The events depend on the seed and the end, and on nothing outside of the arguments."""
    assert generate(5000, 30, 1, UNTIL) == events
    assert generate(5000, 30, 2, UNTIL) != events
    assert generate(5000, 30, 1, UNTIL + timedelta(days=1)) != events


def test_generated_events_are_served_as_generate_lists_them(
    sandbox: Sandbox, events: list[dict[str, Any]]
) -> None:
    """Each field is the same, and each request id differs although events share their bodies."""
    client = sandbox()
    client.service.add_generated(5000, 30, 1, UNTIL)
    served: list[dict[str, Any]] = []
    cursor: str | None = None
    while not served or cursor is not None:
        page = client.get(order="asc", pageSize=1000, cursor=cursor).json()
        served += page["auditEvents"]
        cursor = page.get("nextCursor")
    assert served == events
    request_ids = [
        event["context"]["requestId"] for event in events if "requestId" in event["context"]
    ]
    assert len(set(request_ids)) == len(request_ids) > 4000


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


def test_events_are_complete(events: list[dict[str, Any]]) -> None:
    """interface.md 2: required fields are present, and ids are unique."""
    assert len({event["id"] for event in events}) == len(events)
    for event in events:
        assert set(event) == REQUIRED
        assert set(event["action"]) == {"type", "details"}
        assert isinstance(event["action"]["details"], dict)
        assert event["actor"]["id"]
        assert event["scope"]["organizationId"] == ORGANIZATION_ID
    actor_types = {event["actor"]["type"] for event in events}
    assert actor_types == {"user", "anonymous", "system", "unknown"}
    entity_types = {event["entity"].get("type") for event in events}
    assert entity_types == {"channel", "workspace", "organization", "user", None}


def test_optional_fields_are_sometimes_missing(events: list[dict[str, Any]]) -> None:
    """interface.md 2.3 to 2.6: an optional field is present in some events only."""
    optional = {
        "actor": ("name", "email"),
        "context": ("requestId", "sessionId", "requestIp"),
        "scope": ("workspaceId", "workspaceName", "channelId"),
        "entity": ("type", "subtype", "id", "name", "email"),
    }
    for part, fields in optional.items():
        for field in fields:
            assert {field in event[part] for event in events} == {True, False}, (part, field)


def test_times_have_up_to_6_digits(events: list[dict[str, Any]]) -> None:
    """All are in UTC, with a Z at the end; some fractions end with zeros."""
    texts = [event["occurredAt"] for event in events]
    pattern = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.(\d+))?Z"
    found = [re.fullmatch(pattern, text) for text in texts]
    assert {len(match[1] or "") if match else 9 for match in found} == {0, 3, 4, 5, 6}
    assert any(text.endswith("0Z") and "." in text for text in texts)


def test_office_hours_are_busy_and_weekends_quiet(events: list[dict[str, Any]]) -> None:
    """Most events lie in ten hours of five days."""
    counted = hours(events)
    assert counted[True, True] > len(events) * 0.7
    assert 0 < counted[True, False] + counted[False, False] < len(events) * 0.1
    assert counted[False, True] > 0


@pytest.mark.parametrize("size", [100, 1000])
def test_events_of_one_instant_lie_on_both_sides_of_page_boundaries(
    events: list[dict[str, Any]], size: int
) -> None:
    """This holds for pages in ascending and in descending order."""
    instants = [instant_of(event["occurredAt"]) for event in events]
    for order in (instants, instants[::-1]):
        assert any(order[place - 1] == order[place] for place in range(size, 5000, size))


def test_texts_contain_what_breaks_careless_programs(events: list[dict[str, Any]]) -> None:
    """They contain several scripts, emoji, quotes, backslashes and control characters."""
    texts = json.dumps(events, ensure_ascii=False)
    for text in ("é", "佐藤", "محمد", "👩🏽‍💻", '\\"', "\\\\", "\\n", "\\t", "\u2028"):
        assert text in texts


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
