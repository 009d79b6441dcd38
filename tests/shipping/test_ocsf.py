"""`audit-events ship --as ocsf` sends events as OCSF."""

import json

from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.exported import history
from tests.cli.failing import refused
from tests.shipping.receiver import Receiver


def test_events_are_sent_as_ocsf(service: Service, command: Command, receiver: Receiver) -> None:
    """The state remembers the form."""
    events = history(30)
    service.add(events)
    run = ("ship", "--to", receiver.url, "--state", "s.json")

    command(*run, "--as", "ocsf", "--ocsf-vendor", "Example").raise_for_exit_code()

    assert [json.loads(each["raw_data"]) for each in receiver.events] == events
    vendors = {each["metadata"]["product"]["vendor_name"] for each in receiver.events}
    assert vendors == {"Example"}
    assert "with '--as ocsf'" in refused(command(*run), "AE-STATE")
