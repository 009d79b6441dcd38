"""A setting changes between two runs, as in the table of `docs/delivery.md`."""

import json
from typing import Any

import pytest

from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.conftest import Sync
from tests.singer.test_incremental import events


def test_a_raised_lookback_starts_where_the_ids_in_the_state_begin(
    service: Service, sync: Sync
) -> None:
    """No event is delivered twice, and a late event before those ids is not delivered."""
    service.add(events("08:00:00", "08:10:00"))
    first = sync(lookback_seconds=60).raise_for_exit_code()
    service.add(events("08:05:00", "08:09:30"))
    assert sync(state=first.state, lookback_seconds=3600).ids == ["08:09:30"]


def test_a_lookback_of_0_for_one_run_is_a_gap_for_late_events(service: Service, sync: Sync) -> None:
    """The next run starts where the ids of the run with 0 begin, about one second back."""
    service.add(events("08:10:00"))
    first = sync(lookback_seconds=300).raise_for_exit_code()
    service.add(events("08:06:40", "08:10:30"))
    second = sync(state=first.state, lookback_seconds=0).raise_for_exit_code()
    third = sync(state=second.state, lookback_seconds=300).raise_for_exit_code()
    assert (second.ids, third.ids) == (["08:10:30"], [])
    (warning,) = third.warnings
    assert warning.startswith("Late events are read only from 2024-05-06T08:10:29Z on")


@pytest.mark.parametrize(
    ("earlier", "named"),
    [
        ({"start_date": "2024-05-06T06:00:00Z"}, "between 2024-05-06T06:00:00Z and"),
        ({}, "before"),
    ],
)
def test_an_earlier_start_date_delivers_no_more_events_and_is_warned_about(
    earlier: dict[str, str], named: str, service: Service, sync: Sync
) -> None:
    """A run continues at its bookmark; each such run warns about the events that it leaves out."""
    service.add(events("07:00:00", "08:10:00"))
    first = sync(start_date="2024-05-06T08:00:00Z").raise_for_exit_code()
    assert (first.ids, first.warnings) == (["08:10:00"], [])
    state = first.state
    for _ in range(2):
        again = sync(state=state, **earlier).raise_for_exit_code()
        assert again.ids == []
        (warning,) = again.warnings
        assert warning.startswith(f"Events {named} 2024-05-06T08:00:00Z were not all read: ")
        state = again.state
    assert sync(state=state, start_date="2024-05-06T08:00:00Z").warnings == []
    assert sync(**earlier).ids == ["07:00:00", "08:10:00"]


def test_a_start_date_within_the_lookback_warns_of_late_events(
    service: Service, sync: Sync
) -> None:
    """They are not read, and after the bookmark has moved, a lower start date is too late."""
    service.add(events("08:00:00", "08:10:00"))
    first = sync(start_date="2024-05-06T08:00:00Z").raise_for_exit_code()
    service.add(events("08:06:00", "08:20:00"))
    raised = sync(state=first.state, start_date="2024-05-06T08:08:00Z").raise_for_exit_code()
    assert raised.ids == ["08:20:00"]
    (warning,) = raised.warnings
    assert warning.startswith("start_date lies within the lookback: late events before 2024-05-06T")
    lowered = sync(state=raised.state, start_date="2024-05-06T08:00:00Z").raise_for_exit_code()
    assert (lowered.ids, lowered.warnings) == ([], [])


def test_a_start_date_beyond_the_bookmark_leaves_a_gap(service: Service, sync: Sync) -> None:
    """The bookmark moves beyond the gap, and an earlier start date does not fill it."""
    service.add(events("08:00:00"))
    first = sync().raise_for_exit_code()
    service.add(events("08:30:00", "09:30:00"))
    second = sync(state=first.state, start_date="2024-05-06T09:00:00Z").raise_for_exit_code()
    assert second.ids == ["09:30:00"]
    (warning,) = second.warnings
    assert "events between 2024-05-06T08:00:00Z and 2024-05-06T09:00:00Z are not read" in warning
    third = sync(state=second.state).raise_for_exit_code()
    assert third.ids == []
    (warning,) = third.warnings
    assert warning.startswith("Events before 2024-05-06T09:00:00Z were not all read: ")


def test_a_removed_end_date_resumes_at_the_bookmark(service: Service, sync: Sync) -> None:
    """The next run without an end date delivers the events after it."""
    service.add(events("08:00:00", "09:00:00"))
    first = sync(end_date="2024-05-06T08:30:00Z").raise_for_exit_code()
    assert first.ids == ["08:00:00"]
    assert sync(state=first.state).ids == ["09:00:00"]


@pytest.mark.parametrize(
    ("earlier", "warning"),
    [
        ({"action_types": ["workspace_create"]}, "action_types was widened"),
        ({"exclude_action_types": ["user_sign_in"]}, "exclude_action_types was narrowed"),
    ],
)
def test_added_action_types_are_delivered_from_the_lookback_on(
    earlier: dict[str, Any], warning: str, service: Service, sync: Sync
) -> None:
    """Older events of the added types are not delivered, and a warning says so."""
    service.add(events("09:00:00"))
    service.add(
        [
            an_event(id="old", at="2024-05-06T08:00:00Z", action_type="user_sign_in"),
            an_event(id="recent", at="2024-05-06T08:59:00Z", action_type="user_sign_in"),
        ]
    )
    first = sync(**earlier).raise_for_exit_code()
    assert first.ids == ["09:00:00"]
    second = sync(state=first.state).raise_for_exit_code()
    assert second.ids == ["recent"]
    assert [each.startswith(warning) for each in second.warnings] == [True]


def test_a_changed_filter_does_not_deliver_events_that_were_left_out(
    service: Service, sync: Sync
) -> None:
    """The bookmark has passed these events."""
    service.add(events("08:00:00", "09:00:00"))
    maps = {"audit_events": {"__filter__": "id != '08:00:00'"}}
    first = sync(stream_maps=maps).raise_for_exit_code()
    assert first.ids == ["09:00:00"]
    service.add(events("10:00:00"))
    assert sync(state=first.state).raise_for_exit_code().ids == ["10:00:00"]


def test_a_run_after_a_full_table_run_resumes_at_the_old_bookmark(
    service: Service, sync: Sync
) -> None:
    """Events after the bookmark that the full run delivered are delivered again."""
    service.add(events("08:00:00"))
    first = sync().raise_for_exit_code()
    service.add(events("09:00:00"))
    catalog = json.loads(sync("--discover").stdout)
    catalog["streams"][0]["replication_method"] = "FULL_TABLE"
    full = sync(state=first.state, catalog=catalog).raise_for_exit_code()
    assert full.ids == ["08:00:00", "09:00:00"]
    assert full.bookmark == first.bookmark
    assert sync(state=full.state).ids == ["09:00:00"]


def test_a_bookmark_in_the_future_is_warned_about(service: Service, sync: Sync) -> None:
    """Otherwise every run would read nothing and look successful."""
    service.add(events("08:00:00"))
    state = {"bookmarks": {"audit_events": {"replication_key_value": "2999-01-01T00:00:00Z"}}}
    done = sync(state=state).raise_for_exit_code()
    assert done.ids == []
    assert any("2999-01-01T00:00:00Z lies in the future" in each for each in done.warnings)


def test_an_empty_bookmark_is_warned_about(service: Service, sync: Sync) -> None:
    """Such a bookmark makes the run read everything again."""
    service.add(events("08:00:00"))
    done = sync(state={"bookmarks": {"audit_events": {}}}).raise_for_exit_code()
    assert done.ids == ["08:00:00"]
    assert done.warnings == ["The state has no bookmark for audit_events: all events are read"]
