"""Stream maps that cannot be used, that fail at an event, or that write several records."""

from typing import Any

import pytest

from tap_audit_events.sandbox import Service
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.shared_server import SharedServer, a_service
from tests.singer.test_coverage import a_catalog
from tests.singer.test_incremental import events


@pytest.mark.parametrize(
    ("stream_maps", "problem"),
    [
        ({"audit_event": {"x": "id"}, "__else__": None}, "'audit_event', which does not exist"),
        ({"copy": {"__source__": "audit_event"}}, "'audit_event', which does not exist"),
        ({"__else__": None}, "removes audit_events"),
        ({"audit_events": None}, "removes audit_events"),
        ({"*": None}, "removes audit_events"),
        ({"audit_events": {"__else__": None}}, "Property 'id' was not detected"),
        ({"audit_events": {"__filtr__": "False"}}, "'audit_events' has the option '__filtr__',"),
        (
            {"copy": {"__source__": "audit_events", "__alias__": "'other'"}},
            "stream_maps.'copy' has __source__ and __alias__",
        ),
        ({"__else__": "x"}, "has an __else__ that is not null: set it to null, or remove it"),
        (
            {"audit_events": {"actor": None}, "*": {"x": "id"}},
            "stream_maps.'*' replaces stream_maps.'aud",
        ),
        ({"audit_events": {"__alias__": "2024"}}, "has an __alias__ that is not a name: '2024'"),
        ({"audit_events": {"x": ""}}, "cannot be used (IndexError: "),
    ],
)
def test_a_stream_map_that_cannot_be_used_is_an_error(
    stream_maps: dict[str, object], problem: str, service: Service, sync: Sync
) -> None:
    """Otherwise the bookmark would move past events that were not delivered as intended."""
    service.add(events("08:00:00"))
    done = sync(stream_maps=stream_maps)
    assert done.exit_code == 1
    assert all(line.startswith("AE-STREAM-MAPS: ") for line in done.errors)
    assert any(problem in line for line in done.errors)
    assert service.requests == []


@pytest.mark.parametrize(
    "given",
    [
        {"stream_maps": None, "flattening_enabled": None},
        {"stream_maps": {"audit_*": {"x": "'1'"}}},
        {"stream_maps": {"*": {"id": "'2'"}, "audit_events": {"x": "'1'"}}},
    ],
)
def test_null_and_patterns_are_stream_maps(
    given: dict[str, Any], service: Service, sync: Sync
) -> None:
    """Null means no stream maps; a pattern also matches the stream that is off by default."""
    service.add(events("08:00:00"))
    done = sync(**given).raise_for_exit_code()
    assert done.ids == ["08:00:00"]
    assert [each.get("x") for each in done.records] == ["1" if given["stream_maps"] else None]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("id.upper", "has no JSON form"),
        ("'\\ud800'", "surrogates not allowed"),
        ("actor.nobody", "Attribute 'nobody' does not exist"),
        ("1 / (int(id[:2]) - 9)", "division by zero"),
    ],
)
def test_an_expression_that_fails_names_the_event(
    expression: str, reason: str, service: Service, sync: Sync
) -> None:
    """STATE covers the events before it, and the next run delivers the rest."""
    service.add(events("08:00:00", "09:00:00", "10:00:00"))
    done = sync(stream_maps={"audit_events": {"x": expression}})
    (line,) = done.errors
    event_id = "'09:00:00'" if "zero" in reason else "'08:00:00'"
    assert line.startswith(f"AE-STREAM-MAPS: stream_maps fails at event {event_id} (")
    assert reason in line
    assert line.endswith("): fix the expression")
    rest = sync(state=done.state).raise_for_exit_code()
    assert done.ids + rest.ids == ["08:00:00", "09:00:00", "10:00:00"]


def test_a_second_stream_map_that_fails_leaves_no_record_of_the_first(
    service: Service, sync: Sync
) -> None:
    """Otherwise every run would write that record again, as STATE does not cover the event."""
    service.add(events("08:00:00", "09:00:00"))
    maps = {
        "audit_events": {"x": "id"},
        "copy": {"__source__": "audit_events", "y": "1 / (int(id[:2]) - 9)"},
    }
    done = sync(stream_maps=maps)
    assert done.exit_code == 1
    written = [(m["stream"], m["record"]["id"]) for m in done.messages if m["type"] == "RECORD"]
    assert written == [("audit_events", "08:00:00"), ("copy", "08:00:00")]


@pytest.mark.parametrize(
    "stream_maps",
    [
        {"audit_events": {"__source__": "audit_events", "actor": None}},
        {"audit_events": {"__alias__": "copy"}, "copy": {"__source__": "audit_events"}},
    ],
)
def test_no_stream_gets_each_event_twice(
    stream_maps: dict[str, object], service: Service, sync: Sync
) -> None:
    """One of the two records would lack the changes of the map, such as a mask."""
    error = only_error(sync(stream_maps=stream_maps))
    assert error.startswith("AE-STREAM-MAPS: stream_maps writes into the stream '")
    assert service.requests == []


@pytest.mark.parametrize(
    "stream_maps",
    [
        {"*": {"__alias__": "audit"}},
        {"masked": {"__source__": "audit_*"}},
    ],
)
def test_no_stream_gets_the_records_of_both_streams(
    stream_maps: dict[str, object], service: Service, sync: Sync
) -> None:
    """The streams have different keys and fields; if only one is selected, nothing is mixed."""
    service.add(events("08:00:00"))
    assert len(sync(stream_maps=stream_maps).raise_for_exit_code().messages) > 1
    service.requests.clear()
    error = only_error(sync(catalog=a_catalog(sync), stream_maps=stream_maps))
    assert error.startswith("AE-STREAM-MAPS: stream_maps writes into the stream '")
    assert service.requests == []


@pytest.mark.parametrize("removal", [{"__else__": None}, {"audit_events": None}])
def test_a_copy_is_written_without_the_stream_itself(
    removal: dict[str, None], service: Service, sync: Sync
) -> None:
    """The stream may be removed by its name or by ``__else__``."""
    service.add(events("08:00:00"))
    stream_maps = {"copy": {"__source__": "audit_events"}, **removal}
    done = sync(stream_maps=stream_maps).raise_for_exit_code()
    assert [m["stream"] for m in done.messages if m["type"] == "RECORD"] == ["copy"]


@pytest.mark.parametrize("length", [15, 16])
def test_a_key_that_flattening_shortens_is_refused(length: int) -> None:
    """A target would look for the key in vain. The error says which length is enough."""
    with SharedServer([a_service(0, 1)]).served() as shared:
        done = shared.run(
            flattening_enabled=True, flattening_max_depth=1, flattening_max_key_length=length
        )
    if length == 16:
        (schema,) = [each for each in done.messages if each["type"] == "SCHEMA"]
        assert {*schema["key_properties"]} <= done.records[0].keys()
        return
    assert only_error(done) == (
        "AE-SETTINGS: flattening_max_key_length shortens the key 'organization_id' of the stream"
        " 'audit_events': set it to 16 or more"
    )


@pytest.mark.parametrize(
    "more",
    [
        {"stream_maps": {"audit_events": {"occurredAt": "__NULL__"}}},
        {"stream_maps": {"audit_events": {"id": "id", "__else__": None}}},
    ],
)
def test_a_bookmark_that_is_no_field_is_not_in_the_schema(
    more: dict[str, Any], service: Service, sync: Sync
) -> None:
    """The state has it all the same, so the next run continues."""
    service.add(events("08:00:00", "08:00:01"))
    done = sync(**more).raise_for_exit_code()
    (schema,) = [each for each in done.messages if each["type"] == "SCHEMA"]
    assert "occurredAt" not in done.records[0]
    assert schema.get("bookmark_properties", []) == []
    assert sync(state=done.state, **more).raise_for_exit_code().records == []
    (usual,) = [each for each in sync().messages if each["type"] == "SCHEMA"]
    assert usual["bookmark_properties"] == ["occurredAt"]
