"""An event is delivered as the service sent it."""

import json
from decimal import Decimal
from typing import Any

from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.conftest import Sync

ODD_EVENT = rb"""
{ "id" : "odd \u00e9\ud83d\ude00", "occurredAt"	: "2024-05-06T09:08:09.1200+02:00",
  "action": {"type": "type_of_tomorrow", "details": {
     "big": 123456789012345678901234567890, "exact": 0.1000000000000000000000000000000000001,
     "tiny": 1e-400, "nested": [[[{"a": [null, true, {"\u0041\/": "\\u0000"}]}]]], "": {} }},
  "actor": {"type": "robot", "id": "r-1", "serial": 7},
  "context": {}, "scope": {"organizationId": "o", "region": null},
  "entity": {"name": "two\nlines\r\u2028 and NUL [\u0000] and half [\ud800]"},
  "brandNew": {"field": [1, 2.50]}, "list": ["x", {"y": []}] }
"""


def exact(text: bytes) -> Any:
    return json.loads(text, parse_float=Decimal)


def test_an_odd_event_is_delivered_as_the_service_sent_it(service: Service, sync: Sync) -> None:
    """It has unknown fields, exact numbers, escapes and white space; only two things change."""
    service.add_raw([ODD_EVENT, json.dumps(an_event(id="plain")).encode()])
    done = sync().raise_for_exit_code()
    lines = [line for line in done.stdout.split(b"\n") if b'"RECORD"' in line]
    left = {record["id"]: record for record in (exact(line)["record"] for line in lines)}
    expected = exact(ODD_EVENT) | {"occurredAt": "2024-05-06T07:08:09.1200Z"}
    expected["entity"]["name"] = "two\nlines\r\u2028 and NUL [\ufffd] and half [\ufffd]"
    assert left.pop("odd é😀") == expected
    assert left == {"plain": an_event(id="plain")}


def test_the_output_is_utf8_with_one_message_a_line(service: Service, sync: Sync) -> None:
    """The locale of the process does not matter."""
    service.add_raw([ODD_EVENT.replace(b"two", "zw\u00f6lf \U0001f600".encode())])
    done = sync(environment={"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    lines = done.raise_for_exit_code().stdout.decode("utf-8").split("\n")
    assert lines[-1] == ""
    assert [json.loads(line)["type"] for line in lines[:-1]] == ["SCHEMA", "RECORD", "STATE"]
    assert "zwölf 😀" in lines[1]
    assert json.loads(lines[1])["record"]["id"] == "odd é😀"


def test_nesting_is_kept_as_deep_as_it_can_be_read(service: Service, sync: Sync) -> None:
    """Both lanes deliver every level."""
    details = b'{"a":' * 900 + b"1" + b"}" * 900
    text = json.dumps(an_event(id="deep")).encode()
    service.add_raw([text.replace(b'{"fields": {"name": "Research"}}', details)])
    for stream_map in ({}, {"also": "id"}):
        (record,) = sync(stream_maps={"audit_events": stream_map}).raise_for_exit_code().records
        inner, depth = record["action"]["details"], 0
        while inner != 1:
            inner, depth = inner["a"], depth + 1
        assert depth == 900
