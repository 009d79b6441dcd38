"""Events as OCSF: valid, with nothing lost and nothing guessed."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema, get_packaged_versions

from tap_audit_events.errors.exceptions import ContractError, SettingsError
from tap_audit_events.events.instants import parse_instant
from tap_audit_events.events.ocsf.conversion import VERSION, to_ocsf
from tap_audit_events.events.ocsf.fields import PLACES
from tap_audit_events.events.ocsf.mapping import ACTIVITIES, OcsfMapping
from tap_audit_events.events.page import parse_page
from tap_audit_events.sandbox import generate
from tests.builders import ORGANIZATION_ID, TOO_DEEP, an_event
from tests.events.bodies import an_envelope
from tests.events.odd_events import EVENTS, PARTS, TEXTS
from tests.loaders import hostile

AT = parse_instant("2024-05-06T07:08:09.123Z")


def converted(
    texts: Iterable[bytes], mapping: OcsfMapping | None = None
) -> list[tuple[dict[str, Any], bytes]]:
    """The OCSF events of a response with these events, and the texts that they are made of."""
    page = parse_page(an_envelope(*texts))
    assert page.malformed is None
    lines = to_ocsf(page.texts, page.instants, ORGANIZATION_ID, mapping)
    assert not any(b"\n" in line or b"\r" in line for line in lines)
    return [(exact(line), bytes(text)) for line, text in zip(lines, page.texts, strict=True)]


def ocsf_of(event: Mapping[str, Any] | bytes, mapping: OcsfMapping | None = None) -> dict[str, Any]:
    text = event if isinstance(event, bytes) else json.dumps(event).encode()
    ((found, _),) = converted([text], mapping)
    return found


def exact(text: bytes | str) -> Any:
    return json.loads(text, parse_float=Decimal)


# Valid


@cache
def validator() -> Draft202012Validator:
    schema = OcsfJsonSchemaEmbedded(get_ocsf_schema(VERSION)).get_class_schema("api_activity")
    return Draft202012Validator(schema)


def check_is_valid(event: dict[str, Any]) -> None:
    problems = [f"{error.json_path}: {error.message}" for error in validator().iter_errors(event)]
    assert problems == []
    assert event["metadata"]["product"]["vendor_name"]


def test_the_version_is_the_newest_that_the_validator_has() -> None:
    released = [each for each in get_packaged_versions() if re.fullmatch(r"[\d.]+", each)]
    assert max(released, key=lambda each: [*map(int, each.split("."))]) == VERSION


def test_the_activities_are_those_of_the_class() -> None:
    attributes = get_ocsf_schema(VERSION)["classes"]["api_activity"]["attributes"]
    captions = {int(n): each["caption"] for n, each in attributes["activity_id"]["enum"].items()}
    assert captions == ACTIVITIES
    for number, caption in captions.items():
        event = ocsf_of(an_event(), OcsfMapping(activities={"workspace_create": number}))
        type_ = attributes["type_uid"]["enum"][str(event["type_uid"])]
        assert type_["caption"] == event["type_name"] == f"API Activity: {caption}"


def test_every_event_of_the_sandbox_is_valid() -> None:
    events = generate(1000, days=30, seed=5, until=datetime(2026, 1, 31, tzinfo=UTC))
    for event, text in converted(json.dumps(each).encode() for each in events):
        check_is_valid(event)
        check_has_all(event, text)


@pytest.mark.parametrize("name", hostile.NAMES)
def test_hostile_events_are_valid_and_lose_nothing(name: str) -> None:
    ((event, text),) = converted(hostile.texts([name]))
    check_is_valid(event)
    check_has_all(event, text)


IP = st.ip_addresses().map(str) | st.ip_addresses(v=6).map(lambda each: f"{each.exploded}%1")
EMAIL = st.emails() | TEXTS
BARE = {"id": "1", "occurredAt": "2024-05-06T07:08:09Z", "context": {}, "actor": {}}


@given(EVENTS, IP, EMAIL, st.sampled_from([None, 1]))
@example(BARE, "::ffff:192.0.2.1", "a@b.c\n", None)
@example(BARE, "192.0.2.1 ", "a@b", None)
@example(BARE, "0000:0000:0000:0000:0000:ffff:255.255.255.255", "a@b.c", None)
def test_any_event_is_valid_and_loses_nothing(
    event: dict[str, Any], ip: str, email: str, indent: int | None
) -> None:
    """This holds for any fields, types and numbers, and for any text as an address."""
    for part, name, value in (("context", "requestIp", ip), ("actor", "email", email)):
        if isinstance(event.get(part), dict):
            event |= {part: {name: value} | event[part]}
    text = json.dumps(event, indent=indent, ensure_ascii=False).encode()
    ((found, sent),) = converted([text])
    check_is_valid(found)
    check_has_all(found, sent)


# Nothing lost


def at(event: Any, place: str) -> Any:
    """The value of an attribute, None if there is none; `place` is as in `PLACES`."""
    for name in place.split("."):
        attribute, _, resource = name.partition("[")
        event = event.get(attribute) if isinstance(event, dict) else None
        if resource:
            event = next((each for each in event or () if kind_of(each) == resource[:-1]), None)
    return event


def kind_of(resource: dict[str, Any]) -> str:
    return "entity" if resource["role_id"] == 1 else str(resource["type"])


def check_has_all(event: dict[str, Any], text: bytes) -> None:
    """Each field of an event is where `PLACES` says, or else in `unmapped`; `raw_data` has all."""
    assert event["raw_data"] == text.decode()
    unmapped = event.get("unmapped", {})
    for name, value in exact(text).items():
        if name not in PARTS or not isinstance(value, dict):
            check_is_there(event, unmapped, name, name, value)
            continue
        for inner, each in value.items():
            check_is_there(event, unmapped.get(name, {}), inner, f"{name}.{inner}", each)


def check_is_there(event: Any, unmapped: Any, name: str, path: str, value: Any) -> None:
    if name in unmapped:
        assert unmapped[name] == value
        return
    found = at(event, PLACES[path][0])
    known_types = {"user": "User", "system": "System", "unknown": "Unknown"}
    assert found == (known_types.get(value, value) if path == "actor.type" else value)


@pytest.mark.parametrize("path", PLACES)
def test_a_field_is_at_every_place_that_the_documents_show(path: str) -> None:
    """Without the field, none of these attributes has a value of its own."""
    part, _, name = path.rpartition(".")
    event = an_event(
        scope={"organizationId": ORGANIZATION_ID, "workspaceId": "w", "workspaceName": "W"}
        | {"channelId": "c"},
        entity={"type": "user", "subtype": "s", "id": "e", "name": "E", "email": "e@example.com"},
    )
    found = {place: at(ocsf_of(event), place) for place in PLACES[path]}
    assert None not in found.values()
    if path in ("id", "occurredAt", "scope.organizationId"):
        return
    del event[part][name]
    if name == "workspaceId":
        del event["scope"]["workspaceName"]
    without = ocsf_of(event)
    assert [place for place in found if at(without, place) == found[place]] == []


def test_numbers_keep_every_digit() -> None:
    details = (
        b'{"n": 0.10000000000000000000000000001, "big": 1e400, "integer": 123456789012345678901}'
    )
    text = (
        b'{"id": "1", "occurredAt": "2024-05-06T07:08:09Z", "severity": 1.10,'
        b' "action": {"details": %b}}' % details
    )
    (line,) = to_ocsf([text], [AT], ORGANIZATION_ID)
    assert b'"unmapped":{"severity":1.10,"action":{"details":%b}}' % details in line


def test_an_event_that_is_nested_too_deeply_is_an_error() -> None:
    text = b'{"id": "1", "occurredAt": "2024-05-06T07:08:09Z", "other": %b}' % TOO_DEEP
    with pytest.raises(ContractError, match="AE-NESTING"):
        to_ocsf([text], [AT], ORGANIZATION_ID)


# What is in the attributes


def test_a_whole_event() -> None:
    """Attributes that the event has nothing for are absent."""
    event = ocsf_of(an_event())
    assert event.pop("raw_data") == json.dumps(an_event())
    assert event == {
        "category_uid": 6,
        "category_name": "Application Activity",
        "class_uid": 6003,
        "class_name": "API Activity",
        "activity_id": 1,
        "activity_name": "Create",
        "type_uid": 600301,
        "type_name": "API Activity: Create",
        "severity_id": 0,
        "severity": "Unknown",
        "time": 1714979289123,
        "metadata": {
            "version": VERSION,
            "product": {"name": "Audit Events", "vendor_name": "Unknown"},
            "log_name": "audit_events",
            "tenant_uid": ORGANIZATION_ID,
            "uid": "event-1",
            "original_event_uid": "event-1",
            "original_time": "2024-05-06T07:08:09.123Z",
        },
        "actor": {
            "user": {
                "type": "User",
                "type_id": 1,
                "uid": "user-1",
                "name": "Zoë",
                "email_addr": "zoe@example.com",
            },
            "session": {"uid": "session-1"},
        },
        "api": {"operation": "workspace_create", "request": {"uid": "request-1"}},
        "http_request": {"uid": "request-1"},
        "src_endpoint": {"ip": "192.0.2.1"},
        "resources": [
            {"role_id": 1, "type": "workspace", "uid": "w-1", "name": "Research"},
            {"role_id": 4, "type": "workspace", "uid": "w-1", "name": "R&D"},
        ],
        "unmapped": {"action": {"details": {"fields": {"name": "Research"}}}},
    }


@pytest.mark.parametrize(
    ("at", "milliseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2024-05-06T23:59:59.9999999999Z", 1715039999999),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("1969-12-31T23:59:59.998Z", -2),
        ("0001-01-01T00:00:00Z", -62135596800000),
        ("9999-12-31T23:59:59.9Z", 253402300799900),
        ("2024-05-06T09:08:09.5+02:00", 1714979289500),
    ],
)
def test_the_time_is_cut_to_milliseconds_and_its_text_is_exact(at: str, milliseconds: int) -> None:
    event = ocsf_of(an_event(at=at))
    assert event["time"] == milliseconds
    assert event["metadata"]["original_time"] == at.replace("T09", "T07").replace("+02:00", "Z")


@pytest.mark.parametrize(
    ("actor", "user"),
    [
        ({"type": "user", "id": "u"}, {"uid": "u", "type": "User", "type_id": 1}),
        ({"type": "system", "id": "u"}, {"uid": "u", "type": "System", "type_id": 3}),
        ({"type": "unknown", "id": "u"}, {"uid": "u", "type": "Unknown", "type_id": 0}),
        ({"type": "anonymous", "id": "u"}, {"uid": "u", "type": "anonymous", "type_id": 99}),
        ({"type": "robot", "name": "R"}, {"name": "R", "type": "robot", "type_id": 99}),
        ({"id": ""}, {"name": "Unknown"}),
        ({}, {"name": "Unknown"}),
        ("somebody", {"name": "Unknown"}),
    ],
)
def test_the_actor_is_a_user_of_the_type_that_ocsf_has_for_it(actor: Any, user: Any) -> None:
    assert ocsf_of(an_event(actor=actor))["actor"]["user"] == user


@pytest.mark.parametrize("address", [None, "", "host.example.com", "192.0.2.256", "fe80::1%eth0"])
def test_an_endpoint_without_an_ip_address_is_unknown(address: str | None) -> None:
    """OCSF requires the endpoint. A text that is no IP address is kept."""
    event = ocsf_of(an_event(context={"requestIp": address}))
    assert event["src_endpoint"] == {"name": "Unknown", "type_id": 0}
    assert event["unmapped"]["context"] == {"requestIp": address}


def test_another_organization_in_the_scope_is_kept() -> None:
    event = ocsf_of(an_event(scope={"organizationId": "another"}))
    assert event["metadata"]["tenant_uid"] == ORGANIZATION_ID
    assert event["unmapped"]["scope"] == {"organizationId": "another"}


def test_an_entity_without_id_and_name_is_kept() -> None:
    """OCSF accepts no resource without both."""
    entity = {"type": "user", "email": "e@example.com", "id": 7}
    event = ocsf_of(an_event(entity=entity))
    assert event["unmapped"]["entity"] == entity
    assert [each["role_id"] for each in event["resources"]] == [4]


# Activities


def activity_of(action_type: str, mapping: OcsfMapping | None = None) -> tuple[int, str, int, str]:
    event = ocsf_of(an_event(action_type=action_type), mapping)
    assert event["api"]["operation"] == action_type
    return (event["activity_id"], event["activity_name"], event["type_uid"], event["type_name"])


def test_only_the_documented_action_type_is_an_activity_of_its_own() -> None:
    assert activity_of("workspace_create") == (1, "Create", 600301, "API Activity: Create")
    for name in ("user_create", "workspace_delete", "Workspace_Create", "create", "read"):
        assert activity_of(name) == (99, name, 600399, "API Activity: Other")


def test_a_map_says_which_action_type_is_which_activity() -> None:
    mapping = OcsfMapping(
        vendor_name="Example", activities={"file_delete": "delete", "a": 3, "workspace_create": 99}
    )
    assert activity_of("file_delete", mapping)[:2] == (4, "Delete")
    assert activity_of("a", mapping)[:2] == (3, "Update")
    assert activity_of("workspace_create", mapping)[:2] == (99, "workspace_create")
    assert activity_of("file_read", mapping)[:2] == (99, "file_read")
    product = ocsf_of(an_event(), mapping)["metadata"]["product"]
    assert product == {"name": "Audit Events", "vendor_name": "Example"}


def test_an_action_without_a_type_is_unknown() -> None:
    event = ocsf_of(an_event(action={"type": 5}))
    assert (event["activity_id"], event["api"]["operation"]) == (0, "Unknown")
    assert event["unmapped"]["action"] == {"type": 5}


@pytest.mark.parametrize("activity", ["created", "", "1", 5, -1, True, 1.0, None, [1], {}])
def test_an_activity_that_the_class_does_not_have_is_an_error(activity: Any) -> None:
    """The message names the action type and what is possible."""
    expected = (
        r"'file_read' is .*unknown, create, read, update, delete, other, .* 0, 1, 2, 3, 4, 99"
    )
    with pytest.raises(SettingsError, match=expected):
        OcsfMapping(activities={"file_read": activity})


@pytest.mark.parametrize("name", ["", "a\nb", "\udcff"])
def test_a_name_that_cannot_be_written_is_an_error(name: str) -> None:
    with pytest.raises(SettingsError, match="vendor_name"):
        OcsfMapping(vendor_name=name)
