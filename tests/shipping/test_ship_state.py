"""`audit-events ship`: one state file, one receiver, one run; and what belongs to `export`."""

import json

import pytest

from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.failing import refused
from tests.shipping.receiver import Receiver, Slow
from tests.shipping.ship import EVENTS, IDS, STATE, arguments, ship, shipped_later, state_of


def test_the_state_of_an_export_is_refused(
    service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(EVENTS)
    command("export", "--to", "a.jsonl", "--state", STATE).raise_for_exit_code()
    before = state_of(command)

    assert "is not a state file of this command" in refused(ship(command, receiver), "AE-STATE")

    assert receiver.requests == []
    assert state_of(command) == before


def test_an_export_refuses_the_state_of_a_receiver(
    service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(EVENTS)
    ship(command, receiver).raise_for_exit_code()

    refused(command("export", "--to", "a.jsonl", "--state", STATE), "AE-STATE")


@pytest.mark.parametrize("other", ["http://127.0.0.1:1/in", "splunk-hec:http://127.0.0.1:1"])
def test_the_state_of_another_receiver_is_refused(
    other: str, service: Service, command: Command, receiver: Receiver
) -> None:
    """The error names it, so that a receiver that has moved can keep its state."""
    service.add(EVENTS)
    ship(command, receiver).raise_for_exit_code()

    assert f"belongs to the receiver '{receiver.url}'" in refused(ship(command, other), "AE-STATE")


@pytest.mark.parametrize("organizations", [5, [5], {"a": 5}])
def test_a_state_that_was_changed_by_hand_is_refused(
    organizations: object, service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(EVENTS)
    ship(command, receiver).raise_for_exit_code()
    state = {**(state_of(command) or {}), "state": {"organizations": organizations}}
    (command.folder / STATE).write_text(json.dumps(state))

    refused(ship(command, receiver), "AE-STATE")

    assert receiver.ids == IDS
    assert state_of(command) == state


def test_another_run_with_the_same_state_is_refused(
    service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(EVENTS)
    receiver.faults.append(Slow(1000))
    with command.started(*arguments(receiver)):
        receiver.wait_for(1)

        refused(command(*arguments(receiver)), "AE-BUSY")
        assert len(receiver.requests) == 1

    assert shipped_later(command, receiver) == IDS


@pytest.mark.parametrize(
    ("command_name", "to", "hint"),
    [
        ("export", "https://collector.example.com/in", "audit-events ship"),
        ("export", "splunk-hec:https://splunk.example.com:8088", "audit-events ship"),
        ("ship", "events.jsonl", "audit-events export"),
        ("ship", "postgresql://reader:hush@db/warehouse", "audit-events export"),
        ("ship", "delta:events", "audit-events export"),
        ("ship", "events/", "audit-events export"),
        ("ship", "splunk.example.com", "--to must begin with one of https://"),
        ("ship", "user:hush@example.com", "--to must begin with one of https://"),
    ],
)
def test_the_right_command_is_named(
    command_name: str, to: str, hint: str, command: Command
) -> None:
    error = refused(command(command_name, "--to", to, "--state", STATE))

    assert hint in error
    assert "hush" not in error
