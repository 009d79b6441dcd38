"""The table of `docs/delivery.md`: a setting changes between two runs."""

import json

import pytest

from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.conftest import Sync
from tests.singer.test_incremental import events


def test_a_raised_lookback_starts_where_the_ids_in_the_state_begin(
    service: Service, sync: Sync
) -> None:
    """Nothing comes twice, and a late event before those ids does not come."""
    service.add(events("08:00:00", "08:10:00"))
    first = sync(lookback_seconds=60).raise_for_exit_code()
    service.add(events("08:05:00", "08:09:30"))
    assert sync(state=first.state, lookback_seconds=3600).ids == ["08:09:30"]


def test_a_lowered_lookback_finds_fewer_late_events(service: Service, sync: Sync) -> None:
    """The range starts at the shorter lookback."""
    service.add(events("08:10:00"))
    first = sync(lookback_seconds=3600).raise_for_exit_code()
    service.add(events("08:05:00", "08:09:30"))
    assert sync(state=first.state, lookback_seconds=60).ids == ["08:09:30"]


def test_a_lookback_of_0_for_one_run_is_a_gap_for_late_events(service: Service, sync: Sync) -> None:
    """The run after it starts at the ids of the run with 0, which reach back about one second."""
    service.add(events("08:10:00"))
    first = sync(lookback_seconds=300).raise_for_exit_code()
    service.add(events("08:09:00"))
    second = sync(state=first.state, lookback_seconds=0).raise_for_exit_code()
    third = sync(state=second.state, lookback_seconds=300).raise_for_exit_code()
    assert (second.ids, third.ids) == ([], [])
    (warning,) = third.warnings
    assert warning.startswith("Late events are read only from 2024-05-06T08:09:59Z on")


def test_an_earlier_start_date_changes_nothing(service: Service, sync: Sync) -> None:
    """A run with a bookmark continues there."""
    service.add(events("07:00:00", "08:10:00"))
    first = sync(start_date="2024-05-06T08:00:00Z").raise_for_exit_code()
    assert first.ids == ["08:10:00"]
    assert sync(state=first.state, start_date="2024-05-06T06:00:00Z").ids == []


def test_a_start_date_beyond_the_bookmark_leaves_a_gap(service: Service, sync: Sync) -> None:
    """The bookmark moves beyond it, and moving the start date back does not bring it."""
    service.add(events("08:00:00"))
    first = sync().raise_for_exit_code()
    service.add(events("08:30:00", "09:30:00"))
    second = sync(state=first.state, start_date="2024-05-06T09:00:00Z").raise_for_exit_code()
    assert second.ids == ["09:30:00"]
    (warning,) = second.warnings
    assert "events between 2024-05-06T08:00:00Z and 2024-05-06T09:00:00Z are not read" in warning
    assert sync(state=second.state).ids == []


def test_a_removed_end_date_resumes_at_the_bookmark(service: Service, sync: Sync) -> None:
    """What lies after the end date comes with the next run without it."""
    service.add(events("08:00:00", "09:00:00"))
    first = sync(end_date="2024-05-06T08:30:00Z").raise_for_exit_code()
    assert first.ids == ["08:00:00"]
    assert sync(state=first.state).ids == ["09:00:00"]


def test_widened_action_types_bring_the_added_types_from_the_lookback_on(
    service: Service, sync: Sync
) -> None:
    """Older events of the added types do not come, and a warning says so."""
    service.add(events("09:00:00"))
    service.add(
        [
            an_event(id="old", at="2024-05-06T08:00:00Z", action_type="user_sign_in"),
            an_event(id="recent", at="2024-05-06T08:59:00Z", action_type="user_sign_in"),
        ]
    )
    first = sync(action_types=["workspace_create"]).raise_for_exit_code()
    assert first.ids == ["09:00:00"]
    second = sync(state=first.state).raise_for_exit_code()
    assert second.ids == ["recent"]
    assert any("action_types was widened" in warning for warning in second.warnings)


def test_back_from_full_table_a_run_resumes_at_the_old_bookmark(
    service: Service, sync: Sync
) -> None:
    """What the full run brought after the bookmark comes again."""
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
    """Otherwise every run would read nothing and look fine."""
    service.add(events("08:00:00"))
    state = {"bookmarks": {"audit_events": {"replication_key_value": "2999-01-01T00:00:00Z"}}}
    done = sync(state=state).raise_for_exit_code()
    assert done.ids == []
    assert any("2999-01-01T00:00:00Z lies in the future" in each for each in done.warnings)


def test_an_empty_bookmark_is_warned_about(service: Service, sync: Sync) -> None:
    """It makes the run read everything again."""
    service.add(events("08:00:00"))
    done = sync(state={"bookmarks": {"audit_events": {}}}).raise_for_exit_code()
    assert done.ids == ["08:00:00"]
    assert done.warnings == ["The state has no bookmark for audit_events: all events are read"]


@pytest.mark.parametrize(
    ("stream_maps", "problem"),
    [
        ({"audit_event": {"x": "id"}, "__else__": None}, "'audit_event', which does not exist"),
        ({"copy": {"__source__": "audit_event"}}, "'audit_event', which does not exist"),
        ({"__else__": None}, "removes audit_events"),
        ({"__else__": "__NULL__"}, "removes audit_events"),
        ({"audit_events": None}, "removes audit_events"),
        ({"audit_*": "__NULL__"}, "removes audit_events"),
    ],
)
def test_a_stream_map_that_would_bring_no_record_is_an_error(
    stream_maps: dict[str, object], problem: str, service: Service, sync: Sync
) -> None:
    """Otherwise the bookmark would move past events that nobody received."""
    service.add(events("08:00:00"))
    done = sync(stream_maps=stream_maps)
    assert done.exit_code == 1
    assert all(line.startswith("AE-STREAM-MAPS: ") for line in done.errors)
    assert any(problem in line for line in done.errors)
    assert service.requests == []


def test_a_copy_of_the_stream_may_have_any_name(service: Service, sync: Sync) -> None:
    """`__source__` names the stream that a stream map copies."""
    service.add(events("08:00:00"))
    done = sync(stream_maps={"copy": {"__source__": "audit_events"}}).raise_for_exit_code()
    assert [m["stream"] for m in done.messages if m["type"] == "RECORD"].count("copy") == 1
