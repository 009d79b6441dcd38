"""Requests exactly as interface.md 4.1 describes them."""

from datetime import UTC, datetime, timedelta

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.conftest import Sync

TEN_EVENTS = [an_event(id=f"{n}", at=f"2024-05-06T07:08:0{n}Z") for n in range(10)]
ORDER = ["order", "startTime", "endTime", "pageSize", "actionTypes", "cursor"]


def test_a_first_request_covers_everything_up_to_now(service: Service, sync: Sync) -> None:
    """It has ascending order and a fixed end, but no start, so the oldest event is read too."""
    before = datetime.now(UTC)
    sync().raise_for_exit_code()
    (request,) = service.requests
    assert list(request.params) == ["order", "endTime", "pageSize"]
    assert request.params["order"] == "asc"
    assert request.params["pageSize"] == "1000"
    end = datetime.fromisoformat(request.params["endTime"])
    assert end.microsecond == 0
    assert before - timedelta(seconds=1) <= end <= datetime.now(UTC)
    assert request.method == "GET"
    assert request.path == f"/v1/organizations/{service.organization_id}/audit_events"
    assert request.headers["authorization"] == f"Bearer {service.access_token}"
    assert request.headers["user-agent"].startswith("tap-audit-events/")


def test_the_same_filters_are_sent_on_every_page(service: Service, sync: Sync) -> None:
    """Only the cursor differs between pages (interface.md 4.1, rule 4)."""
    service.add(TEN_EVENTS)
    done = sync(
        page_size=3,
        concurrency=1,
        action_types=["workspace_create", "né w&type", "workspace_create"],
        start_date="2024-01-01T00:00:00+01:00",
        end_date="2025-01-01T00:00:00.5Z",
        user_agent="acme/1",
    ).raise_for_exit_code()
    assert done.ids == [event["id"] for event in TEN_EVENTS]
    assert len(service.requests) == 4
    for number, request in enumerate(service.requests):
        assert list(request.params) == ORDER[: 5 + bool(number)]
        assert {name: request.params[name] for name in ORDER[:5]} == {
            "order": "asc",
            "startTime": "2023-12-31T23:00:00Z",
            "endTime": "2025-01-01T00:00:01Z",
            "pageSize": "3",
            "actionTypes": "workspace_create,né w&type",
        }
        assert request.headers["user-agent"] == "acme/1"


def test_bounds_are_inclusive_and_exact(service: Service, sync: Sync) -> None:
    """Events at the bounds are delivered and those just outside are not, to the last digit."""
    times = ["08:00:00.4999Z", "08:00:00.5Z", "08:00:01Z", "08:00:01.25Z", "08:00:01.2500001Z"]
    service.add([an_event(id=time, at=f"2024-05-06T{time}") for time in times])
    done = sync(start_date="2024-05-06T08:00:00.50Z", end_date="2024-05-06T09:00:01.25+01:00")
    assert done.raise_for_exit_code().ids == times[1:4]


@pytest.mark.parametrize(
    "faults",
    [
        [Fault(kind="empty", when="1-3,5")],
        [Fault(kind="short", events=1, when="*")],
        [Fault(kind="null-cursor")],
        [Fault(kind="empty", when="2"), Fault(kind="short", when="3-"), Fault(kind="null-cursor")],
    ],
)
def test_only_a_page_without_cursor_is_the_last(
    faults: list[Fault], service: Service, sync: Sync
) -> None:
    """Empty and short pages are not the last; `nextCursor: null` counts as no cursor (rule 2)."""
    service.add(TEN_EVENTS)
    service.add_faults(faults)
    done = sync(page_size=4).raise_for_exit_code()
    assert done.ids == [event["id"] for event in TEN_EVENTS]


def test_events_of_the_future_are_left_for_a_later_run(service: Service, sync: Sync) -> None:
    """An event dated after now is delivered by the first run that starts after its time."""
    service.add([*TEN_EVENTS, an_event(id="future", at="2099-01-01T00:00:00Z")])
    done = sync().raise_for_exit_code()
    assert done.ids == [event["id"] for event in TEN_EVENTS]
    assert done.bookmark == "2024-05-06T07:08:09Z"
