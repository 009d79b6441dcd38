"""`audit-events ship --quarantine`: what a receiver refuses is kept, the rest arrives."""

import json
from typing import Any

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import history
from tests.cli.failing import SMALL_PAGES, refused
from tests.cli.tailing import FAST, ended, now
from tests.shipping.receiver import Receiver
from tests.shipping.ship import EVENTS, IDS, STATE, arguments, ship, shipped_later, state_of

FILE = "refused.jsonl"
KEEPING = ("--quarantine", FILE)


def kept(command: Command) -> list[dict[str, Any]]:
    path = command.folder / FILE
    return [json.loads(line) for line in path.read_text().splitlines()]


def kept_ids(command: Command) -> list[str]:
    return [json.loads(each["event"])["id"] for each in kept(command)]


def test_a_refused_event_is_kept_and_the_rest_arrives(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """The file has what the service sent and what the receiver said; the line at the end counts."""
    events = history(40)
    events[13]["note"] = events[27]["note"] = "poison"
    service.add(events)
    receiver.refused_word = "poison"

    done = ship(command, receiver, *KEEPING).raise_for_exit_code()

    assert receiver.ids == [each for each in IDS if each not in {"00013", "00027"}]
    assert [json.loads(each["event"]) for each in kept(command)] == [events[13], events[27]]
    assert {each["code"] for each in kept(command)} == {"AE-RECEIVER-EVENT"}
    assert all("status 400" in each["reason"] for each in kept(command))
    assert "38 events in" in done.log
    assert done.log.endswith(f"; 2 refused, in {FILE!r}\n")
    assert len(done.warnings) == 2
    assert shipped_later(command, receiver) == []


def test_refused_events_do_not_count_as_arrived_if_the_service_fails(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """The error does not say that they are in the receiver."""
    service.add([*history(40), an_event(id="poison", at="2024-05-06T03:00:00Z")])
    service.add_faults([Fault(kind="status", code=401, when="2-")])
    receiver.refused_word = "poison"

    error = refused(ship(command, receiver, *KEEPING, **SMALL_PAGES), "AE-401")

    assert kept_ids(command) == ["poison"]
    assert len(receiver.ids) == 9
    assert "10 events" not in error
    assert error.endswith("The next run continues after the last events that were acknowledged.")


def test_a_single_new_event_can_be_refused(
    service: Service, command: Command, receiver: Receiver
) -> None:
    service.add([an_event(id="poison")])
    receiver.refused_word = "poison"

    ship(command, receiver, *KEEPING).raise_for_exit_code()

    assert kept_ids(command) == ["poison"]
    assert ship(command, receiver, *KEEPING).warnings == []


@pytest.mark.parametrize("status", [400, 413])
def test_a_receiver_that_refuses_everything_ends_the_run(
    status: int, service: Service, command: Command, receiver: Receiver
) -> None:
    """Nothing is kept: it is not the events."""
    service.add(history(300))
    receiver.refused_word, receiver.refused_status = "id", status

    done = ship(command, receiver, *KEEPING, **SMALL_PAGES)

    assert "accepts none of 100 events in a row" in refused(done, "AE-RECEIVER-REFUSED")
    assert kept(command) == []
    assert state_of(command) is None
    receiver.refused_word = None
    assert shipped_later(command, receiver) == [each["id"] for each in history(300)]


def test_many_refused_events_among_others_are_kept(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """Only the first ones are warnings."""
    events = history(200)
    for each in events[::4]:
        each["note"] = "poison"
    service.add(events)
    receiver.refused_word = "poison"

    done = ship(command, receiver, *KEEPING).raise_for_exit_code()

    assert kept_ids(command) == [each["id"] for each in events[::4]]
    assert len(receiver.ids) == 150
    assert len(done.warnings) == 10


def test_the_state_does_not_pass_an_event_that_cannot_be_kept(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """The file is a folder, which is noticed at the start, before anything is sent."""
    service.add(EVENTS)
    (command.folder / FILE).mkdir()

    refused(ship(command, receiver, *KEEPING), "AE-QUARANTINE")

    assert receiver.requests == []


def test_the_state_cannot_be_the_same_file(command: Command, receiver: Receiver) -> None:
    done = ship(command, receiver, "--quarantine", STATE)

    assert "--state and --quarantine name the same file" in refused(done)


def test_follow_continues_after_a_refused_event(
    service: Service, command: Command, receiver: Receiver
) -> None:
    receiver.refused_word = "poison"
    service.add([now(50, "a")])
    with command.started(*arguments(receiver, "--follow", *FAST, *KEEPING)) as run:
        receiver.wait_until(lambda: receiver.ids == ["a"])
        service.add([now(20, "poison")])
        assert b"AE-RECEIVER-EVENT: " in run.stderr.readline()
        service.add([now(10, "b")])
        receiver.wait_until(lambda: receiver.ids == ["a", "b"])
        ended(run)

    assert kept_ids(command) == ["poison"]


def test_an_unusable_event_and_a_refused_one_are_in_one_file(
    service: Service, command: Command, receiver: Receiver
) -> None:
    service.add([*EVENTS, an_event(id="", at=EVENTS[20]["occurredAt"])])
    receiver.refused_word = '"00013"'

    ship(command, receiver, *KEEPING).raise_for_exit_code()

    assert receiver.ids == [each for each in IDS if each != "00013"]
    assert sorted(kept_ids(command)) == ["", "00013"]
