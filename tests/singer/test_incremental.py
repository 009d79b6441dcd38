"""STATE covers written records, and the next run resumes exactly there."""

from typing import Any

from tap_audit_events.extraction.id_groups import digest_of
from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.conftest import Sync
from tests.extraction.watermarks import from_json
from tests.running import Run


def events(*times: str) -> list[dict[str, Any]]:
    """Events on one morning, each with its time as its id."""
    return [an_event(id=time, at=f"2024-05-06T{time}Z") for time in times]


def state_of(value: str, **more: Any) -> dict[str, Any]:
    """A plain Singer state."""
    bookmark = {"replication_key": "occurredAt", "replication_key_value": value}
    return {"bookmarks": {"audit_events": bookmark | more}}


def covered(done: Run, *earlier: str) -> None:
    """Check that every STATE covers only records that were written before it."""
    written = set(map(digest_of, earlier))
    for message in done.messages:
        if message["type"] == "RECORD":
            written.add(digest_of(message["record"]["id"]))
        elif message["type"] == "STATE":
            bookmark = message["value"]["bookmarks"].get("audit_events", {})
            for held in bookmark.get("watermark", []):
                for group in from_json(held, lookback_seconds=10**6).groups:
                    assert set(group.split()) <= written


def test_state_follows_each_page_and_is_last(service: Service, sync: Sync) -> None:
    """Each STATE covers the records that were written before it."""
    service.add(events("08:00:00", "08:00:01", "08:00:02", "08:00:03", "08:00:04"))
    done = sync(page_size=2).raise_for_exit_code()
    kinds = [message["type"] for message in done.messages]
    assert kinds == ["SCHEMA", *["RECORD", "RECORD", "STATE"] * 2, "RECORD", "STATE"]
    assert [
        state["bookmarks"]["audit_events"]["replication_key_value"][11:19] for state in done.states
    ] == [
        "08:00:01",
        "08:00:03",
        "08:00:04",
    ]
    covered(done)


def test_a_run_with_nothing_new_is_one_request_and_no_record(service: Service, sync: Sync) -> None:
    """The service sends the event at the bookmark again, but it is not delivered again."""
    service.add(events("08:00:00", "08:00:01.5", "08:00:01.5Z".rstrip("Z")[:-1] + "6"))
    state = sync().raise_for_exit_code().state
    for _ in range(2):
        service.requests.clear()
        again = sync(state=state).raise_for_exit_code()
        assert again.records == []
        assert len(service.requests) == 1
        assert again.messages[-1]["type"] == "STATE"
        assert again.state == state
        state = again.state


def test_a_new_event_at_the_instant_of_the_bookmark_is_delivered(
    service: Service, sync: Sync
) -> None:
    """A tie that appears later is not lost."""
    service.add(events("08:00:00", "08:00:01"))
    state = sync().state
    service.add([an_event(id="tie", at="2024-05-06T08:00:01Z")])
    again = sync(state=state).raise_for_exit_code()
    assert again.ids == ["tie"]
    assert sync(state=again.state).ids == []


def test_a_late_event_within_the_lookback_is_delivered_once(service: Service, sync: Sync) -> None:
    """It is delivered after newer events, and the bookmark does not move back."""
    service.add(events("08:00:00", "08:10:00"))
    state = sync().state
    service.add(events("08:05:00", "08:04:59"))
    again = sync(state=state, lookback_seconds=300).raise_for_exit_code()
    assert again.ids == ["08:05:00"]
    assert again.bookmark == "2024-05-06T08:10:00Z"
    assert sync(state=again.state, lookback_seconds=300).ids == []


def test_precisions_and_offsets_are_compared_as_instants(service: Service, sync: Sync) -> None:
    """A text that sorts differently neither fails the run nor moves the bookmark back."""
    service.add(
        [
            an_event(id="a", at="2024-05-06T00:00:00Z"),
            an_event(id="b", at="2024-05-06T00:00:00.5Z"),
            an_event(id="c", at="2024-05-06T02:00:00.500000001+02:00"),
            an_event(id="d", at="2024-05-05t23:00:01.0-01:00"),
        ]
    )
    done = sync(page_size=1).raise_for_exit_code()
    assert done.ids == ["a", "b", "c", "d"]
    values = [state["bookmarks"]["audit_events"]["replication_key_value"] for state in done.states]
    assert values == [
        "2024-05-06T00:00:00Z",
        "2024-05-06T00:00:00.5Z",
        "2024-05-06T00:00:00.500000001Z",
        "2024-05-06T00:00:01Z",
    ]
    assert sync(state=done.state).ids == []


def test_more_ties_than_a_page_holds_are_all_read(service: Service, sync: Sync) -> None:
    """Pages of one instant are read by cursor, not by time."""
    service.add([an_event(id=f"{n:02}", at="2024-05-06T08:00:00Z") for n in range(25)])
    done = sync(page_size=4).raise_for_exit_code()
    assert done.ids == [f"{n:02}" for n in range(25)]
    assert sync(page_size=4, state=done.state).ids == []


def test_a_plain_bookmark_is_used(service: Service, sync: Sync) -> None:
    """With the state of another tap, a run starts at the time in it, minus the lookback."""
    service.add(events("07:59:59", "08:00:00", "08:00:01"))
    done = sync(state=state_of("2024-05-06T10:00:00.000000+02:00"), lookback_seconds=0)
    assert done.raise_for_exit_code().ids == ["08:00:00", "08:00:01"]


def test_a_bookmark_set_back_reads_its_time_again(service: Service, sync: Sync) -> None:
    """Editing replication_key_value is how people load history again."""
    service.add(events("08:00:00", "08:00:01", "08:00:02"))
    state = sync().state
    state["bookmarks"]["audit_events"]["replication_key_value"] = "2024-05-06T08:00:01Z"
    assert sync(state=state, lookback_seconds=0).ids == ["08:00:01", "08:00:02"]


def test_a_range_that_ends_before_the_bookmark_sends_no_request(
    service: Service, sync: Sync
) -> None:
    """A warning says that there is nothing to read."""
    state = state_of("2024-05-06T08:00:00Z")
    done = sync(state=state, end_date="2024-05-05T00:00:00Z").raise_for_exit_code()
    assert service.requests == []
    assert "Nothing to read" in done.warnings[0]
    assert done.state == state


def test_other_streams_bookmarks_are_passed_on(service: Service, sync: Sync) -> None:
    """Parts of a state that are not this tap's are not lost."""
    service.add(events("08:00:00"))
    state = {"bookmarks": {"other": {"replication_key_value": 7}}}
    done = sync(state=state).raise_for_exit_code()
    assert done.state["bookmarks"]["other"] == {"replication_key_value": 7}
    assert done.bookmark == "2024-05-06T08:00:00Z"


def test_a_full_table_run_reads_all_and_keeps_no_bookmark(service: Service, sync: Sync) -> None:
    """FULL_TABLE starts at start_date, whatever the state says."""
    service.add(events("08:00:00", "08:00:01", "08:00:02"))
    catalog = {
        "streams": [
            {
                "tap_stream_id": "audit_events",
                "replication_method": "FULL_TABLE",
                "key_properties": ["id"],
                "schema": {"properties": {"id": {"type": "string"}}},
                "metadata": [{"breadcrumb": [], "metadata": {"selected": True}}],
            }
        ]
    }
    start = "2024-05-06T08:00:01Z"
    done = sync(catalog=catalog, start_date=start, page_size=1).raise_for_exit_code()
    assert done.ids == ["08:00:01", "08:00:02"]
    assert done.messages[-1]["type"] == "STATE"
    assert "replication_key_value" not in str(done.states)
    again = sync(catalog=catalog, state=state_of("2025-01-01T00:00:00Z"))
    assert again.ids == ["08:00:00", "08:00:01", "08:00:02"]
