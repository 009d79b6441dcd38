"""`audit-events ship`: whatever a receiver does for a moment, each event arrives."""

import re
import signal
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import HOSTILE
from tests.cli.failing import SMALL_PAGES, refused
from tests.forking import signal_until_gone
from tests.shipping.receiver import Closes, JsonLines, Receiver, Slow, Status, TakesHalf
from tests.shipping.receiver import Fault as ReceiverFault
from tests.shipping.ship import (
    EVENTS,
    IDS,
    NO_RETRIES,
    arguments,
    ship,
    shipped_later,
)

LATER = "2024-06-01T00:00:00Z"


@pytest.mark.parametrize("form", ["--gzip", "--no-gzip"])
def test_events_arrive_as_sent_and_once(
    form: str, service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(HOSTILE)
    first = ship(command, receiver, form).raise_for_exit_code()
    service.add([an_event(id="new", at=LATER)])
    ship(command, receiver, form).raise_for_exit_code()

    assert receiver.events == [*HOSTILE, an_event(id="new", at=LATER)]
    assert all(
        each.headers["user-agent"].startswith("tap-audit-events/") for each in receiver.requests
    )
    assert f"Shipped to {receiver.url}: 6 events in" in first.log


def test_the_content_type_can_be_another(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """Some receivers know JSON Lines only by another name."""
    service.add(EVENTS)
    protocol = JsonLines()
    protocol.content_types = ("application/json",)
    receiver.protocol = protocol

    ship(command, receiver, "--content-type", "application/json").raise_for_exit_code()

    assert receiver.ids == IDS


def test_batches_have_a_largest_number_of_events_and_bytes(
    service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(EVENTS)
    service.add([an_event(id=f"big{n}", at=LATER, big="x" * 1_500_000) for n in range(5)])

    ship(command, receiver, "--batch-events", "15").raise_for_exit_code()

    assert receiver.without_repeats == [*IDS, *(f"big{n}" for n in range(5))]
    counts = [each.body.count(b"\n") for each in receiver.requests]
    assert counts == [15, 15, 12, 2, 1]


def http_date(seconds: int) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    "fault",
    [
        Status(429),
        Status(503),
        Status(500, body=b"<html>"),
        Status(408),
        Closes(),
        Closes(after_taking=True),
        TakesHalf(500),
        Slow(30),
    ],
    ids=str,
)
def test_a_batch_is_sent_again_until_it_is_accepted(
    fault: ReceiverFault, service: Service, command: Command, receiver: Receiver
) -> None:
    """It has the same key, so that a receiver can drop a repeat. The warning names the receiver."""
    service.add(EVENTS)
    receiver.faults += [None, fault]

    done = ship(
        command, receiver, "--batch-events", "20", TAP_AUDIT_EVENTS_REQUEST_TIMEOUT_SECONDS="2"
    ).raise_for_exit_code()

    assert receiver.without_repeats == IDS
    assert len({each.key for each in receiver.requests}) == 2
    assert all(" receiver " in each and receiver.url in each for each in done.warnings)


@pytest.mark.parametrize("form", ["seconds", "date"])
@pytest.mark.parametrize("status", [429, 503])
def test_a_receiver_is_given_the_time_that_it_requests(
    form: str, status: int, service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(EVENTS)
    value = "2" if form == "seconds" else http_date(4)
    receiver.faults.append(Status(status, {"Retry-After": value}))

    (warning,) = ship(command, receiver).raise_for_exit_code().warnings

    assert receiver.ids == IDS
    assert float(re.findall(r"Retrying in ([0-9.]+) s", warning)[0]) >= 2


def test_a_wait_of_more_than_15_minutes_ends_the_run(
    service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(EVENTS)
    receiver.faults.append(Status(429, {"Retry-After": "901"}))

    error = refused(ship(command, receiver), "AE-RECEIVER")

    assert f"{receiver.url}: status 429" in error
    assert "Retry-After of 901 s" in error
    assert len(receiver.requests) == 1
    assert shipped_later(command, receiver) == IDS


def test_a_receiver_may_be_down_at_the_start(
    service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(EVENTS)
    receiver.stop()
    with command.started(*arguments(receiver)) as run:
        warning = run.stderr.readline().decode()
        receiver.start()
        assert run.wait(60) == 0

    assert warning.startswith("Warning: AE-RECEIVER: The receiver does not accept events: http://")
    assert receiver.ids == IDS


@pytest.mark.parametrize("size", ["10", "15"])
def test_a_receiver_that_stays_down_ends_the_run(
    size: str, service: Service, command: Command, receiver: Receiver
) -> None:
    """The next run continues after the last page of 10 events that was accepted as a whole."""
    service.add(EVENTS)
    receiver.faults += [None, Status(503, body=b"no disk")]

    done = ship(command, receiver, "--batch-events", size, **SMALL_PAGES, **NO_RETRIES)

    assert f"{receiver.url}: status 503, body 'no disk'. " in refused(done, "AE-RECEIVER")
    assert receiver.ids == IDS[: int(size)]
    assert shipped_later(command, receiver) == IDS[10:]


def test_a_closed_idle_connection_is_not_a_retry(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """Receivers close what they have not heard of for a while."""
    service.add(EVENTS)
    receiver.faults += [None, Closes()]

    done = ship(command, receiver, "--batch-events", "20", **NO_RETRIES).raise_for_exit_code()

    assert receiver.ids == IDS
    assert done.warnings == []


def test_an_error_of_the_service_leaves_what_was_accepted(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """The error names the service, not the receiver."""
    service.add(EVENTS)
    fails = threading.Event()
    fails.set()

    def is_late(request: ReceivedRequest) -> bool:
        return request.number > 2 and fails.is_set()

    service.add_faults([Fault(kind="status", code=500, only=is_late)])

    done = ship(command, receiver, **SMALL_PAGES, **NO_RETRIES)

    assert receiver.url not in refused(done, "AE-500").partition(". ")[0]
    assert receiver.ids == IDS[: len(receiver.ids)]
    assert receiver.ids
    rest = IDS[len(receiver.ids) :]
    fails.clear()
    assert shipped_later(command, receiver) == rest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_response_is_awaited(
    number: signal.Signals, service: Service, command: Command, receiver: Receiver
) -> None:
    """A response that comes soon still counts."""
    service.add(EVENTS)
    receiver.faults += [None, Slow(1)]
    with command.started(*arguments(receiver, "--batch-events", "20"), **SMALL_PAGES) as run:
        receiver.wait_for(2)
        run.send_signal(number)
        assert run.wait(60) == 128 + number
        assert run.stderr.read().startswith(b"AE-STOPPED: ")

    assert receiver.ids == IDS
    assert shipped_later(command, receiver) == []


def test_a_signal_while_no_response_comes(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """The run ends within seconds, and the state covers what was acknowledged."""
    service.add(EVENTS)
    receiver.faults += [None, Slow(1000)]
    with command.started(*arguments(receiver, "--batch-events", "20"), **SMALL_PAGES) as run:
        receiver.wait_for(2)
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 128 + signal.SIGTERM

    assert shipped_later(command, receiver) == IDS[20:]


def test_a_second_signal_ends_the_run_at_once(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """Each event has arrived, or arrives with the next run."""
    service.add(EVENTS)
    receiver.faults += [None, Slow(1000)]
    with command.started(*arguments(receiver, "--batch-events", "20"), **SMALL_PAGES) as run:
        receiver.wait_for(2)
        run.send_signal(signal.SIGTERM)
        assert signal_until_gone(run, signal.SIGTERM) == 128 + signal.SIGTERM

    assert shipped_later(command, receiver) == IDS


def test_a_signal_while_a_retry_is_waited_for(
    service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(EVENTS)
    receiver.faults += [None, Status(503, {"Retry-After": "600"})]
    with command.started(*arguments(receiver, "--batch-events", "20"), **SMALL_PAGES) as run:
        assert b"Retrying in 600.0 s" in run.stderr.readline()
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 128 + signal.SIGINT

    assert shipped_later(command, receiver) == IDS[20:]


def test_a_signal_while_the_service_is_slow(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """What was read before is sent, and the state covers it."""
    hangs, has_come = threading.Event(), threading.Event()
    hangs.set()

    def is_third(request: ReceivedRequest) -> bool:
        if request.number > 2 and hangs.is_set():
            has_come.set()
        return has_come.is_set() and hangs.is_set()

    service.add(EVENTS)
    service.add_faults([Fault(kind="hang", seconds=1000, only=is_third)])
    with command.started(*arguments(receiver), **SMALL_PAGES) as run:
        assert has_come.wait(60)
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 128 + signal.SIGINT

    hangs.clear()
    assert receiver.ids
    assert [*receiver.ids, *shipped_later(command, receiver)] == IDS
