"""States that were written with other settings, by other tools or by other versions."""

from typing import Any

import pytest

from tap_audit_events.sandbox import Service
from tests.conftest import Sync
from tests.singer.test_complete import TEN_EVENTS, TEN_IDS


def test_a_bookmark_in_another_form_keeps_its_ids(service: Service, sync: Sync) -> None:
    """The same instant written differently is the same bookmark."""
    service.add(TEN_EVENTS)
    state = sync().state
    entry = state["bookmarks"]["audit_events"]
    entry["replication_key_value"] = "2024-05-06T10:00:09.00+02:00"
    assert sync(state=state).raise_for_exit_code().ids == []


@pytest.mark.parametrize(
    ("bookmark", "ids"),
    [
        ({"occurredAt": "2024-05-06T08:00:09Z"}, ["08:00:09"]),
        (
            {"replication_key": None, "replication_key_value": "2024-05-06T08:00:09Z"},
            ["08:00:09"],
        ),
        ({"replication_key": "occurredAt", "replication_key_value": None}, TEN_IDS),
        ({"replication_key_value": None}, TEN_IDS),
        ({"partitions": []}, TEN_IDS),
    ],
)
def test_a_state_of_another_tap_is_used_or_warned_about(
    bookmark: dict[str, Any], ids: list[str], service: Service, sync: Sync
) -> None:
    """A run that reads everything again warns about it."""
    service.add(TEN_EVENTS)
    done = sync(state={"bookmarks": {"audit_events": bookmark}}, lookback_seconds=0)
    assert done.raise_for_exit_code().ids == ids
    assert bool(done.warnings) == (ids == TEN_IDS)


def test_a_state_of_another_stream_is_warned_about(service: Service, sync: Sync) -> None:
    """A misspelt stream name would make the run read everything again."""
    service.add(TEN_EVENTS)
    done = sync(state={"bookmarks": {"audit-events": {"replication_key_value": "x"}}})
    assert done.warnings == ["The state has no bookmark for audit_events: all events are read"]


def test_ids_that_are_not_used_are_warned_about(service: Service, sync: Sync) -> None:
    """For example, a newer version has written them."""
    service.add(TEN_EVENTS)
    state = sync().state
    state["bookmarks"]["audit_events"]["watermark"][0]["version"] = 99
    assert "may be delivered again" in sync(state=state).warnings[0]
