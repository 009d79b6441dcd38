"""`audit-events ship --to otlp:…`: log records, their values, and what a receiver refuses."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from tap_audit_events.events.exact_json import encode, read_record
from tap_audit_events.events.instants import Instant
from tap_audit_events.outputs.receivers.otlp_records import (
    MAX_LEVELS,
    any_value,
    unix_nanoseconds,
)
from tap_audit_events.outputs.receivers.protobuf import read_message
from tap_audit_events.sandbox import Service
from tests.builders import ORGANIZATION_ID, TOO_DEEP, an_event
from tests.cli.command import Command, Done
from tests.cli.exported import HOSTILE, history
from tests.cli.failing import refused
from tests.events.odd_events import EVENTS
from tests.shipping.otlp import TYPE, Otlp, value_of
from tests.shipping.receiver import Closes, Receiver, Status

LARGE = 2**63


@pytest.fixture
def otlp() -> Otlp:
    return Otlp()


@pytest.fixture
def receiver(settings: dict[str, Any], otlp: Otlp) -> Iterator[Receiver]:
    with Receiver(otlp) as receiver:
        receiver.secrets = (settings["access_token"],)
        yield receiver


def ship(command: Command, to: Receiver, *more: str, path: str = "") -> Done:
    return command("ship", "--to", f"otlp:{to.root}{path}", "--state", "s.json", *more)


def test_events_arrive_as_log_records(
    service: Service, command: Command, receiver: Receiver, otlp: Otlp
) -> None:
    """The body has every value; the next run sends only what is new."""
    event = an_event(at="2024-05-06T07:08:09.1234567891Z")
    service.add([event])
    ship(command, receiver).raise_for_exit_code()
    ship(command, receiver).raise_for_exit_code()

    (record,) = otlp.records
    assert receiver.events == [event]
    assert record.time_unix_nano == 1714979289123456789
    assert record.observed_time_unix_nano > record.time_unix_nano
    assert (record.event_name, record.severity_number) == ("workspace_create", 0)
    assert {each.key: value_of(each.value) for each in record.attributes} == {
        "log.record.uid": f"{ORGANIZATION_ID}/event-1",
        "user.id": "user-1",
        "user.full_name": "Zoë",
        "user.email": "zoe@example.com",
        "session.id": "session-1",
        "client.address": "192.0.2.1",
    }
    assert otlp.scopes == {"tap-audit-events"}


def test_hostile_events_arrive(service: Service, command: Command, receiver: Receiver) -> None:
    service.add(HOSTILE)
    ship(command, receiver).raise_for_exit_code()

    expected = json.loads(json.dumps(HOSTILE).replace(str(2**70), f'"{2**70}"'))
    assert receiver.events == expected


def test_a_path_of_its_own_is_kept(
    service: Service, command: Command, receiver: Receiver, otlp: Otlp
) -> None:
    otlp.path = "/api/v2/otlp/v1/logs"
    service.add(history(3))
    ship(command, receiver, path=otlp.path).raise_for_exit_code()

    assert len(receiver.events) == 3


def test_the_events_that_a_receiver_refuses_are_found(
    service: Service, command: Command, receiver: Receiver, otlp: Otlp
) -> None:
    """The response says how many it refuses, but not which."""
    otlp.poison, otlp.message = "00007", "too old"
    service.add(history(20))
    done = ship(command, receiver, "--quarantine", "refused.jsonl").raise_for_exit_code()

    assert set(receiver.ids) == {each["id"] for each in history(20)} - {"00007"}
    (line,) = (command.folder / "refused.jsonl").read_text().splitlines()
    assert json.loads(json.loads(line)["event"])["id"] == "00007"
    assert "too old" in json.loads(line)["reason"]
    assert done.stdout == b""


def test_a_refused_event_ends_the_run(
    service: Service, command: Command, receiver: Receiver, otlp: Otlp
) -> None:
    otlp.poison, otlp.message = "00007", "too old"
    service.add(history(20))

    line = refused(ship(command, receiver), "AE-RECEIVER-EVENT")

    assert "too old" in line
    assert "00007" in line


def test_a_warning_of_the_receiver_is_shown_once(
    service: Service, command: Command, receiver: Receiver, otlp: Otlp
) -> None:
    otlp.message = "use the new endpoint"
    service.add(history(20))
    done = ship(command, receiver, "--batch-events", "5").raise_for_exit_code()

    assert len(receiver.events) == 20
    assert done.log.count("use the new endpoint") == 1


def test_a_batch_without_a_response_is_sent_again(
    service: Service, command: Command, receiver: Receiver
) -> None:
    receiver.faults += [Closes(after_taking=True), Status(503, {"Retry-After": "0"})]
    service.add(history(3))
    ship(command, receiver).raise_for_exit_code()

    assert [each["id"] for each in receiver.events] == ["00000", "00001", "00002"] * 2


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (TYPE, b"<html>"),
        (TYPE, b"\x0a\x05\x08"),
        pytest.param(TYPE, b"\x0a\x0b\x08" + b"\xff" * 9 + b"\x01", id="-1 refused events"),
        ("application/json", b"[1]"),
        pytest.param("application/json", TOO_DEEP.join([b'{"a":', b"}"]), id="too deep"),
    ],
)
def test_a_response_of_another_form_acknowledges_nothing(
    service: Service, command: Command, receiver: Receiver, kind: str, body: bytes
) -> None:
    receiver.faults.append(Status(200, {"Content-Type": kind}, body))
    service.add(history(3))

    assert "not in the form of OTLP" in refused(ship(command, receiver), "AE-RECEIVER-REFUSED")


def test_a_large_response_is_read(service: Service, command: Command, receiver: Receiver) -> None:
    """Reading it takes seconds, and would take minutes if each field took as long as the rest."""
    receiver.faults.append(Status(200, {"Content-Type": TYPE}, b"\x10\x01" * 2_500_000))
    service.add(history(3))

    ship(command, receiver).raise_for_exit_code()


def test_a_partial_success_in_json_is_read(
    service: Service, command: Command, receiver: Receiver
) -> None:
    body = b'{"partialSuccess": {"rejectedLogRecords": "3", "errorMessage": "no"}}'
    receiver.faults.append(Status(200, {"Content-Type": "application/json"}, body))
    service.add(history(3))

    refused(ship(command, receiver), "AE-RECEIVER-EVENT")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (str(LARGE - 1), LARGE - 1),
        (str(-LARGE), -LARGE),
        (str(LARGE), str(LARGE)),
        (str(-LARGE - 1), str(-LARGE - 1)),
        ("1.5", 1.5),
        ("0.1", 0.1),
        ("-1e22", -1e22),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ("1e400", "1E+400"),
        ("true", True),
        ("null", None),
        ('""', ""),
        ("[null, [], {}]", [None, [], {}]),
    ],
)
def test_values_keep_every_digit(text: str, value: object) -> None:
    """What an AnyValue cannot hold is text."""
    read = value_of(AnyValue.FromString(any_value(read_record(f'{{"": {text}}}'.encode()))))

    assert read == {"": value}
    assert type(read[""]) is type(value)


@given(EVENTS)
def test_any_event_can_be_read_back(event: dict[str, Any]) -> None:
    record = read_record(json.dumps(event).encode())

    assert value_of(AnyValue.FromString(any_value(record))) == _expected(record)


def _expected(value: Any) -> Any:
    match value:
        case dict():
            return {name: _expected(inner) for name, inner in value.items()}
        case list():
            return [_expected(inner) for inner in value]
        case Decimal() if Decimal(repr(float(value))) == value:
            return float(value)
        case Decimal():
            return encode(value).decode()
        case int() if not -LARGE <= value < LARGE:
            return str(value)
        case _:
            return value


def test_what_is_nested_deeper_than_receivers_read_is_text() -> None:
    """The official library reads 100 messages inside each other."""
    text = '{"a":' * (MAX_LEVELS + 30) + "1.10" + "}" * (MAX_LEVELS + 30)

    value = value_of(AnyValue.FromString(any_value(read_record(text.encode()))))

    for _ in range(MAX_LEVELS):
        value = value["a"]
    assert json.loads(value) == json.loads(text[5 * MAX_LEVELS : -MAX_LEVELS])


@pytest.mark.parametrize(
    ("instant", "nanoseconds"),
    [
        ("1970-01-01T00:00:00.000000001", 1),
        ("2024-05-06T07:08:09.9999999999", 1714979289999999999),
        ("2554-07-21T23:34:33.709551615", 2**64 - 1),
        ("2554-07-21T23:34:33.709551616", 0),
        ("1969-12-31T23:59:59.999999999", 0),
        ("0001-01-01T00:00:00", 0),
    ],
)
def test_time_is_exact_or_unknown(instant: str, nanoseconds: int) -> None:
    assert unix_nanoseconds(Instant(instant)) == nanoseconds


@pytest.mark.parametrize("message", [b"\x08", b"\x08" + b"\xff" * 12, b"\x0a\x02a", b"\x0b"])
def test_a_malformed_message_is_refused(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"cut|wire type"):
        read_message(message)
