"""States that were written with other settings, by other tools or by other versions."""

from typing import Any

import pytest

from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.conftest import Sync
from tests.extraction.watermarks import from_json
from tests.singer.test_complete import TEN_EVENTS, TEN_IDS
from tests.singer.test_incremental import events


@pytest.mark.parametrize("before", [0, 60])
def test_a_longer_lookback_repeats_nothing(before: int, service: Service, sync: Sync) -> None:
    """The first run with it starts where the ids in the state begin; late events are delivered."""
    service.add(events("08:00:00", "08:01:00", "08:02:00", "08:02:59", "08:03:00"))
    state = sync(lookback_seconds=before).state
    quiet = sync(state=state, lookback_seconds=300).raise_for_exit_code()
    assert quiet.ids == []
    service.add(events("08:03:01", "08:10:00"))
    more = sync(state=quiet.state, lookback_seconds=300).raise_for_exit_code()
    assert more.ids == ["08:03:01", "08:10:00"]
    service.add(events("08:06:00"))
    late = sync(state=more.state, lookback_seconds=300).raise_for_exit_code()
    assert late.ids == ["08:06:00"]


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


def test_ids_that_have_left_the_lookback_are_removed_from_the_state(
    service: Service, sync: Sync
) -> None:
    """They make room for the ids of new events."""
    for minute in (0, 6):
        service.add(
            an_event(id=f"{minute}-{n}", at=f"2024-05-06T08:{minute:02}:{n % 60:02}Z", context={})
            for n in range(6000)
        )
    first = sync(end_date="2024-05-06T08:05:00Z").raise_for_exit_code()
    second = sync(state=first.state).raise_for_exit_code()
    assert len(second.ids) == 6000
    assert second.warnings == []
    entry = second.state["bookmarks"]["audit_events"]["watermark"][0]
    groups = from_json(entry, lookback_seconds=300).groups
    assert sum(len(group.split()) for group in groups) == 6000
