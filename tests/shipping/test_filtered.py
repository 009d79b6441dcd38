"""`audit-events ship` with filters sends only events that match."""

from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.exported import history
from tests.cli.failing import refused
from tests.shipping.receiver import Receiver


def test_only_events_that_match_are_sent(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """The state remembers the filters."""
    events = history(30)
    events[7]["entity"] = {"id": "e-7"}
    service.add(events)
    run = ("ship", "--to", receiver.url, "--state", "s.json")

    command(*run, "--entity", "e-7").raise_for_exit_code()

    assert receiver.ids == ["00007"]
    assert "with '--entity e-7'" in refused(command(*run), "AE-STATE")
