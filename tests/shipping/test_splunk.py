"""`audit-events ship --to splunk-hec:…`: envelopes, acknowledgments, and what Splunk refuses."""

import json
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.events.instants import Instant
from tap_audit_events.outputs.receivers.splunk import epoch_seconds
from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.cli.command import Command, Done
from tests.cli.exported import HOSTILE, history
from tests.cli.failing import SMALL_PAGES, refused
from tests.shipping.hec import TOKEN, Hec, refusal
from tests.shipping.receiver import Receiver, Status

IMPATIENT = "tests.shipping.impatient"


@pytest.fixture
def hec() -> Hec:
    return Hec()


@pytest.fixture
def receiver(settings: dict[str, Any], hec: Hec) -> Iterator[Receiver]:
    with Receiver(hec) as receiver:
        receiver.secrets = (settings["access_token"],)
        yield receiver


def ship(command: Command, to: Receiver, *more: str, query: str = "", **how: str) -> Done:
    secret = {"AUDIT_EVENTS_RECEIVER_SECRET": TOKEN}
    url = f"splunk-hec:{to.root}{query}"
    return command("ship", "--to", url, "--state", "s.json", *more, **secret, **how)


def state_of(command: Command) -> str:
    path: Path = command.folder / "s.json"
    return path.read_text() if path.exists() else ""


def test_events_arrive_as_sent_with_their_time(
    service: Service, command: Command, receiver: Receiver, hec: Hec
) -> None:
    """The next run sends only what is new."""
    service.add(HOSTILE)
    ship(command, receiver).raise_for_exit_code()
    service.add([an_event(id="new", at="2024-06-01T00:00:00Z")])
    ship(command, receiver).raise_for_exit_code()

    assert receiver.events == [*HOSTILE, an_event(id="new", at="2024-06-01T00:00:00Z")]
    assert len(receiver.requests) == 2
    assert b'"time":1714953600.123456,' in receiver.requests[0].body
    assert b'"occurredAt":"2024-05-06T00:00:00.123456789Z"' in receiver.requests[0].body
    assert {(each["source"], each["sourcetype"]) for each in hec.envelopes} == {
        ("audit-events", "audit_events")
    }


@pytest.mark.parametrize(
    ("instant", "seconds"),
    [
        ("2024-05-06T00:00:00", b"1714953600.000000"),
        ("2024-05-06T00:00:00.5", b"1714953600.500000"),
        ("2024-05-06T23:59:59.999999999", b"1715039999.999999"),
        ("1970-01-01T00:00:00", b"0.000000"),
        ("1969-12-31T23:59:59.5", b"0.000000"),
        ("0001-01-01T00:00:00", b"0.000000"),
        ("9999-12-31T23:59:59.9", b"253402300799.900000"),
    ],
)
def test_time_is_cut_to_microseconds(instant: str, seconds: bytes) -> None:
    """It is never in the next second or day; before 1970 it is 0."""
    assert epoch_seconds(Instant(instant)) == seconds


def test_parameters_become_fields(
    service: Service, command: Command, receiver: Receiver, hec: Hec
) -> None:
    """They may be in a URL with a path, and the state belongs to the collector without them."""
    service.add(history(1))
    query = "/services/collector/event?index=audit&sourcetype=&host=a%20b"

    ship(command, receiver, query=query).raise_for_exit_code()

    del hec.envelopes[0]["time"], hec.envelopes[0]["event"]
    assert hec.envelopes == [{"index": "audit", "source": "audit-events", "host": "a b"}]


def test_an_unknown_parameter_is_refused(command: Command, receiver: Receiver) -> None:
    done = ship(command, receiver, query="?idx=audit")

    assert done.error.endswith("unknown parameter 'idx': known are index, source, sourcetype, host")


def test_the_content_type_is_that_of_splunk(command: Command, receiver: Receiver) -> None:
    done = ship(command, receiver, "--content-type", "text/plain")

    assert done.error.startswith("AE-EXPORT: --content-type is for JSON Lines: ")


@pytest.mark.parametrize("polls", [0, 2])
def test_the_state_waits_for_the_acknowledgment(
    polls: int, service: Service, command: Command, receiver: Receiver, hec: Hec
) -> None:
    service.add(history(30))
    hec.acknowledges, hec.polls = True, polls

    ship(command, receiver, "--batch-events", "7").raise_for_exit_code()

    assert sorted(receiver.ids) == [each["id"] for each in history(30)]
    assert [each.path.rpartition("/")[2] for each in receiver.requests] == [
        *["event"] * 5,
        *["ack"] * (polls + 1),
    ]
    assert len(hec.channels) == 1


def test_what_is_not_acknowledged_in_time_is_sent_again(
    service: Service, command: Command, receiver: Receiver, hec: Hec
) -> None:
    """On the same channel, and only these batches."""
    service.add(history(20))
    hec.acknowledges, hec.lost = True, 1

    done = ship(command, receiver, "--batch-events", "5", module=IMPATIENT)

    done.raise_for_exit_code()
    assert Counter(Counter(receiver.ids).values()) == {1: 15, 2: 5}
    assert len(hec.channels) == 1
    (warning,) = done.warnings
    assert "5 events were not acknowledged within" in warning


def test_acknowledgments_that_never_come_end_the_run(
    service: Service, command: Command, receiver: Receiver, hec: Hec
) -> None:
    """The state covers nothing that was not acknowledged."""
    service.add(history(20))
    hec.acknowledges, hec.lost = True, 99

    done = ship(command, receiver, module=IMPATIENT, TAP_AUDIT_EVENTS_MAX_RETRIES="1")

    assert "20 events were not acknowledged within" in refused(done, "AE-RECEIVER")
    assert state_of(command) == ""


def test_a_collector_that_forgets_what_it_was_sent_gets_it_again(
    service: Service, command: Command, receiver: Receiver, hec: Hec
) -> None:
    """After a restart it counts from 0 again, so the number of another batch means nothing."""
    service.add(history(4))
    hec.acknowledges = True
    hec.restarts_after = 1

    ship(command, receiver, "--batch-events", "2").raise_for_exit_code()

    assert Counter(receiver.ids) == {"00000": 2, "00001": 2, "00002": 1, "00003": 1}


def test_an_acknowledgment_that_was_switched_off_is_not_awaited(
    service: Service, command: Command, receiver: Receiver, hec: Hec
) -> None:
    service.add(history(4))
    hec.acknowledges = True
    receiver.faults += [None, refusal(14, "ACK is disabled")]

    ship(command, receiver).raise_for_exit_code()

    assert len(receiver.ids) == 4


def test_the_acknowledgment_of_an_unknown_batch_is_ignored(
    service: Service, command: Command, receiver: Receiver, hec: Hec
) -> None:
    """Also if its number has more digits than Python converts."""
    service.add(history(4))
    hec.acknowledges = True
    receiver.faults += [
        None,
        Status(200, body=b'{"acks": {"%b": true, "a": true}}' % (b"9" * 5000)),
    ]

    ship(command, receiver).raise_for_exit_code()

    assert [each.path.rpartition("/")[2] for each in receiver.requests] == ["event", "ack", "ack"]


@pytest.mark.parametrize("comes", [False, True])
def test_a_signal_while_an_acknowledgment_is_awaited(
    comes: bool, service: Service, command: Command, receiver: Receiver, hec: Hec
) -> None:
    """The run waits for it a few seconds more; the state covers what was acknowledged."""
    service.add(history(4))
    hec.acknowledges, hec.polls, hec.lost = True, 5, 0 if comes else 1
    secret = {"AUDIT_EVENTS_RECEIVER_SECRET": TOKEN}
    to = f"splunk-hec:{receiver.root}"
    with command.started("ship", "--follow", "--to", to, "--state", "s.json", **secret) as run:
        receiver.wait_for(2)
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 128 + signal.SIGTERM

    hec.polls = 0
    ship(command, receiver).raise_for_exit_code()
    assert Counter(Counter(receiver.ids).values()) == {1 if comes else 2: 4}


@pytest.mark.parametrize("acknowledges", [False, True])
def test_the_number_of_an_invalid_event_is_used(
    acknowledges: bool, service: Service, command: Command, receiver: Receiver, hec: Hec
) -> None:
    """The events before it are sent once more: not every collector has kept them."""
    service.add(history(40))
    hec.acknowledges, hec.poison = acknowledges, "00023"

    done = ship(command, receiver, **SMALL_PAGES)

    error = refused(done, "AE-RECEIVER-EVENT")
    assert "status 400, code 6, 'Invalid data format'; the event of 2024-05-06T13:12:00Z" in error
    assert '"id":"00023"' in error
    assert receiver.ids == [f"{number:05}" for number in range(23)]
    events = [each for each in receiver.requests if each.path.endswith("event")]
    assert len(events) == 3
    hec.poison = ""
    ship(command, receiver, **SMALL_PAGES).raise_for_exit_code()
    assert receiver.ids[23:] == [f"{number:05}" for number in range(20, 40)]


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (refusal(7, "Incorrect index", 0), "status 400, code 7, 'Incorrect index'"),
        (refusal(11, "Invalid data channel"), "status 400, code 11, 'Invalid data channel'"),
        (refusal(4, "Invalid token", status=403), "status 403, "),
        (refusal(3, "Invalid authorization", status=401), "status 401, "),
    ],
)
def test_a_refusal_of_everything_ends_the_run_at_once(
    response: Status, text: str, service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(history(4))
    receiver.faults.append(response)

    assert text in refused(ship(command, receiver), "AE-RECEIVER-REFUSED")

    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "response",
    [
        refusal(9, "Server is busy", status=503),
        refusal(26, "HEC queue at capacity", status=429),
        refusal(8, "Internal server error", status=500),
    ],
)
def test_a_full_queue_is_waited_for(
    response: Status, service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(history(4))
    receiver.faults.append(response)

    done = ship(command, receiver).raise_for_exit_code()

    assert len(receiver.ids) == 4
    assert re.search(r"Retrying in \d", done.warnings[0])
    assert json.loads(response.body)["text"] in done.warnings[0]


@pytest.mark.parametrize("acknowledges", [False, True])
def test_the_page_of_a_proxy_acknowledges_nothing(
    acknowledges: bool, service: Service, command: Command, receiver: Receiver, hec: Hec
) -> None:
    service.add(history(4))
    hec.acknowledges = acknowledges
    page = Status(200, body=b"<html>Please log in</html>")
    receiver.faults += [None, page] if acknowledges else [page]

    done = ship(command, receiver).raise_for_exit_code()

    assert len(receiver.ids) == 4
    assert "not in the form of HEC: body '<html>Please log in</html>'" in done.warnings[0]


def test_few_bytes_wait_for_their_acknowledgment(
    service: Service, command: Command, receiver: Receiver, hec: Hec
) -> None:
    """Large events are acknowledged before more are sent, so that memory is bounded."""
    service.add([an_event(id=f"{n:03}", big="x" * 1_500_000) for n in range(40)])
    hec.acknowledges = True

    ship(command, receiver).raise_for_exit_code()

    assert len(receiver.ids) == 40
    paths = [each.path.rpartition("/")[2] for each in receiver.requests]
    assert paths.index("ack") < len(paths) - 2
