"""Events as Arrow: a fixed schema, exact texts, and nothing lost."""

import json
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events import AuditEvents
from tap_audit_events.api.arrow import record_batch
from tap_audit_events.api.columns import COLUMNS
from tap_audit_events.errors.exceptions import ContractError, RefusedError
from tap_audit_events.events.instants import parse_instant
from tap_audit_events.sandbox import Fault, Service
from tests.api.logs import ends_its_threads, events
from tests.builders import TOO_DEEP, an_event
from tests.events.odd_events import EVENTS, PARTS
from tests.loaders import hostile


def batch_of(*texts: bytes) -> pa.RecordBatch:
    instants = [parse_instant(json.loads(text)["occurredAt"]) for text in texts]
    return record_batch(texts, instants, "an-organization")


def row_of(text: str | dict[str, Any]) -> dict[str, Any]:
    """The row of an event."""
    given = text if isinstance(text, str) else json.dumps(text)
    (row,) = batch_of(given.encode()).to_pylist()
    found: dict[str, Any] = row
    return found


def exact(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def test_the_schema_is_fixed() -> None:
    """It does not depend on the events, and the metadata of each column names its field."""
    schema = AuditEvents.arrow_schema()
    assert schema.names == list(COLUMNS)
    assert schema.field("occurred_at").type == pa.timestamp("us", "UTC")
    assert {field.type for field in schema if field.name != "occurred_at"} == {pa.string()}
    assert [field.name for field in schema if not field.nullable] == [
        "organization_id",
        "id",
        "occurred_at",
        "occurred_at_text",
    ]
    assert schema.field("actor_email").metadata == {b"field": b"actor.email"}
    for event in (an_event(), {"id": "x", "occurredAt": "2024-05-06T07:08:09Z"}):
        assert batch_of(json.dumps(event).encode()).schema.equals(schema, check_metadata=True)
    assert batch_of().schema.equals(schema, check_metadata=True)


@pytest.mark.parametrize(
    ("at", "microseconds"),
    [
        ("2024-05-06T07:08:09Z", "2024-05-06 07:08:09+00:00"),
        ("2024-05-06T23:59:59.9999999999Z", "2024-05-06 23:59:59.999999+00:00"),
        ("1969-12-31T23:59:59.9999999Z", "1969-12-31 23:59:59.999999+00:00"),
        ("0001-01-01T00:00:00Z", "0001-01-01 00:00:00+00:00"),
        ("9999-12-31T23:59:59.9Z", "9999-12-31 23:59:59.900000+00:00"),
    ],
)
def test_a_time_is_cut_to_microseconds_and_its_text_is_exact(at: str, microseconds: str) -> None:
    """It is never rounded up, so that it stays within its second and its day."""
    row = row_of(an_event(at=at))
    assert str(row["occurred_at"]) == microseconds
    assert row["occurred_at_text"] == at


def test_details_are_the_text_of_the_service() -> None:
    """The text keeps every digit, space and escape."""
    details = '{"n": 0.1000000000000000000000000000000000001, "big":1e400,  "é": "\\u00e9"}'
    event = (
        f'{{"id": "1", "occurredAt": "2024-05-06T07:08:09Z", "action": {{"details": {details}}}}}'
    )
    assert row_of(event)["action_details"] == details


def test_an_event_that_is_nested_too_deeply_is_an_error() -> None:
    """The error has a code, as every error does, and shows how the event begins."""
    deep = f'{{"details": {TOO_DEEP.decode()}}}'
    text = f'{{"id": "1", "occurredAt": "2024-05-06T07:08:09Z", "other": {deep}}}'
    with pytest.raises(ContractError, match="AE-NESTING") as raised:
        record_batch([text.encode()], [parse_instant("2024-05-06T07:08:09Z")], "an-organization")
    assert raised.value.details.startswith('\'{"id": "1"')


ODD: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "known fields": ({}, None),
    "unknown at the top": ({"severity": {"level": 2**70}}, {"severity": {"level": 2**70}}),
    "unknown null": ({"severity": None}, {"severity": None}),
    "unknown inside": (
        {"actor": {"type": "user", "id": "u", "geo": {"city": None}}},
        {"actor": {"geo": {"city": None}}},
    ),
    "wrong type inside": ({"actor": {"type": 5, "id": "u"}}, {"actor": {"type": 5}}),
    "wrong type of a part": ({"entity": ["a"]}, {"entity": ["a"]}),
    "null for a part": ({"entity": None}, None),
    "null inside": ({"entity": {"name": None}}, None),
    "details of another type": ({"action": {"type": "x", "details": [1]}}, None),
}


@pytest.mark.parametrize("name", ODD)
def test_values_without_a_column_are_in_other_fields(name: str) -> None:
    """The column has these values as JSON, and no others."""
    fields, expected = ODD[name]
    other = row_of(an_event(**fields))["other_fields"]
    assert (None if other is None else json.loads(other)) == expected


def test_an_odd_event_does_not_change_its_neighbours() -> None:
    odd, plain = an_event(severity=1), an_event("event-2")
    rows = batch_of(*(json.dumps(each).encode() for each in (plain, odd, plain))).to_pylist()
    assert [row["other_fields"] for row in rows] == [None, '{"severity":1}', None]
    assert [row["id"] for row in rows] == ["event-2", "event-1", "event-2"]


# Nothing is lost


def rebuilt(row: dict[str, Any]) -> dict[str, Any]:
    """The event, put together from its row."""
    event: dict[str, Any] = exact(row["other_fields"] or "{}")
    for column, path in COLUMNS.items():
        if path and row[column] is not None:
            value = exact(row[column]) if column == "action_details" else row[column]
            *outer, name = path
            target = event.setdefault(outer[0], {}) if outer else event
            target[name] = value
    return event


def without_empty(event: dict[str, Any]) -> dict[str, Any]:
    """The event without null in known fields, and without parts that are then empty."""
    known = {path for path in COLUMNS.values() if path}
    kept: dict[str, Any] = {}
    for name, value in event.items():
        if name in PARTS and isinstance(value, dict):
            fields = {k: v for k, v in value.items() if v is not None or (name, k) not in known}
            kept |= {name: fields} if fields else {}
        elif name not in PARTS or value is not None:
            kept[name] = value
    return kept


@given(EVENTS, st.sampled_from([None, 1]))
def test_columns_and_other_fields_lose_nothing(event: dict[str, Any], indent: int | None) -> None:
    """This holds for any fields, types, numbers and spaces between them."""
    text = json.dumps(event, indent=indent, ensure_ascii=False)
    assert without_empty(rebuilt(row_of(text))) == without_empty(exact(text))


@pytest.mark.parametrize("name", hostile.NAMES)
def test_hostile_events_lose_nothing(name: str, service: Service, settings: dict[str, Any]) -> None:
    """The comparison is with `raw`, in which NUL and lone surrogates are already replaced."""
    service.add_raw(hostile.texts([name]))
    (page,) = AuditEvents(**settings).pages()
    (row,) = page.arrow().to_pylist()
    assert without_empty(rebuilt(row)) == without_empty(exact(page.raw[0].decode()))


# The reader


def test_the_reader_has_all_events(service: Service, settings: dict[str, Any]) -> None:
    """The reader has a schema even without events."""
    log = AuditEvents(**settings, page_size=20)
    assert log.arrow().read_all().schema.equals(log.arrow_schema())
    service.add(events(0, 100))
    with ends_its_threads():
        table = log.arrow(start="2024-05-06T07:00:10Z", end="2024-05-06T07:01:09Z").read_all()
    assert table.column("id").to_pylist() == [f"{n:05}" for n in range(10, 70)]
    (*_, page) = log.pages()
    assert log.arrow(state=page.state).read_all().num_rows == 0


def test_small_pages_become_larger_batches(service: Service, settings: dict[str, Any]) -> None:
    """A batch takes much memory besides its rows."""
    service.add(events(0, 230))
    reader = AuditEvents(**settings, page_size=10).arrow()
    *most, last = [batch.num_rows for batch in reader]
    assert min(most) >= 100
    assert sum(most) + last == 230


def test_a_reader_that_is_dropped_early_ends_its_threads(
    service: Service, settings: dict[str, Any]
) -> None:
    service.add(events(0, 200))
    with ends_its_threads():
        reader = AuditEvents(**settings, page_size=10).arrow()
        assert reader.read_next_batch().num_rows >= 100
        reader.close()
        del reader


def test_an_error_is_raised_again_if_the_reader_is_used_again(
    service: Service, settings: dict[str, Any]
) -> None:
    """Otherwise, the reader would seem to have been read to its end."""
    service.add(events(0, 100))
    service.add_faults([Fault(kind="status", when="3", code=403)])
    reader = AuditEvents(**settings, page_size=20, concurrency=1).arrow()
    for _ in range(3):
        with pytest.raises(RefusedError, match=r"^AE-403: "):
            reader.read_all()


def test_without_pyarrow_an_error_names_the_extra(
    service: Service, settings: dict[str, Any]
) -> None:
    """Without pyarrow, `pages` still works."""
    service.add(events(0, 5))
    code = """
import json, sys
sys.modules["pyarrow"] = None
from tap_audit_events import AuditEvents, SettingsError
log = AuditEvents(**json.loads(sys.stdin.read()))
page, = log.pages()
assert len(page.events) == 5
for call in (log.arrow, log.arrow_schema, page.arrow):
    try:
        call()
    except SettingsError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(settings),
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("AE-EXTRA: ") and "[arrow]" in line for line in lines)
