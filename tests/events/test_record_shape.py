"""The shape of a record changes what it is meant to change, and nothing else."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.exact_json import read_record
from tap_audit_events.events.record_shape import RecordShape
from tests.builders import an_event
from tests.events.test_page import records

STRING = RecordShape(details_as_text=True)
RAW = RecordShape(has_raw_event=True)
BOTH = RecordShape(details_as_text=True, has_raw_event=True)
layouts = st.sampled_from([None, 0, 2])


def on_one_line(event: object, layout: int | None) -> bytes:
    return json.dumps(event, indent=layout, default=float).replace("\n", " ").encode()


def exactly(text: bytes) -> Any:
    return json.loads(text, parse_float=Decimal)


@given(records, layouts)
def test_details_become_their_json_text(event: dict[str, Any], layout: int | None) -> None:
    """The text has the same value as the object; all other fields are unchanged."""
    details = {"field": event.get("id"), "deep": [event]}
    event = event | {"action": {"type": "t", "details": details}}
    text = on_one_line(event, layout)
    record = exactly(bytes(STRING.apply(text)))
    written = record["action"].pop("details")
    expected = exactly(text)
    assert json.loads(written, parse_float=Decimal) == expected["action"].pop("details")
    assert record == expected


@given(records, layouts)
def test_the_raw_event_is_the_event(event: dict[str, Any], layout: int | None) -> None:
    """The event is kept byte by byte, next to the fields of the record."""
    text = on_one_line(event, layout)
    record = exactly(bytes(RAW.apply(text)))
    assert record.pop("raw_event").encode() == text
    assert record == {name: each for name, each in exactly(text).items() if name != "raw_event"}


def test_the_raw_event_has_the_details_as_the_service_sent_them() -> None:
    """With both shapes together, the raw event contains the details as an object."""
    text = on_one_line(an_event(), None)
    record = read_record(BOTH.apply(text))
    assert json.loads(record["raw_event"]) == an_event()
    assert json.loads(record["action"]["details"]) == an_event()["action"]["details"]


@pytest.mark.parametrize(
    "action",
    [b"null", b"{}", b"7", b"[1]", b'"x"', b'{"details":null}', b'{"details" : null }'],
)
def test_missing_details_stay_missing(action: bytes) -> None:
    """This also holds if the action is not an object at all."""
    text = b'{"id":"1","action":%b}' % action
    assert read_record(STRING.apply(text)) == read_record(text)


@pytest.mark.parametrize("details", [b"{}", b"[]", b"1.50", b'"text"', b"false", b'{"a":1e999}'])
def test_details_of_any_kind_become_text(details: bytes) -> None:
    """The text is exactly the service's, with all digits."""
    text = b'{"id":"1","action":{"details":%b}}' % details
    assert read_record(STRING.apply(text))["action"]["details"] == details.decode()


def test_the_raw_event_replaces_a_field_of_the_same_name() -> None:
    """The value of the service's field is still in the text of the event."""
    text = b'{"id":"1","raw_event":[1.0]}'
    assert read_record(RAW.apply(text)) == {"id": "1", "raw_event": text.decode()}


@pytest.mark.parametrize(
    "name", [b"organization_id", b"organization\\u005fid", b"\\u006Frganization_id"]
)
def test_a_field_of_the_event_does_not_take_the_place_of_the_organization(name: bytes) -> None:
    """The name of the field may be written with escapes."""
    text = b'{"id":"1","%b":"other"}' % name
    record = RecordShape(organization_id="mine").apply(text)
    assert json.loads(record, object_pairs_hook=list).count(("organization_id", "mine")) == 1
    assert b"other" not in record
