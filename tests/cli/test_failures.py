"""An error during an export is one line, which says what the output contains."""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.export import Export
from tap_audit_events.cli.selection import Selection
from tap_audit_events.cli.terminal.reporter import Reporter
from tap_audit_events.errors.exceptions import ContractError
from tap_audit_events.events.instants import EARLIEST
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.outputs.formats import Opened
from tap_audit_events.sandbox import Fault, Service
from tests.builders import TOO_DEEP
from tests.cli.command import Command
from tests.cli.exported import FORMATS
from tests.cli.failing import EVENTS, refused
from tests.outputs.opened import new_output, page_of


def test_an_error_of_the_first_request_adds_nothing(service: Service, command: Command) -> None:
    service.add_faults([Fault.parse("status:code=401@*")])

    done = command("export", "--to", "a.jsonl", "--state", "s.json")

    assert refused(done, "AE-401").endswith("Nothing was added to a.jsonl.")
    assert list(command.folder.iterdir()) == []


@pytest.mark.parametrize("to", FORMATS[:2])
def test_nothing_is_added_if_an_event_cannot_be_written(to: str, tmp_path: Path) -> None:
    """The state covers all events that were read, so it must not be stored with some of them."""
    event = b'{"id":"1","occurredAt":"2024-05-06T07:08:09Z","x":%b}' % TOO_DEEP
    last = EventPage([event], [EARLIEST], organization_id="o", shape=RecordShape(), state=dict)

    def read(state: Mapping[str, Any]) -> Generator[EventPage, None, None]:
        yield page_of(EVENTS)
        yield last

    output = new_output(tmp_path, to)
    reporter = Reporter(EARLIEST, quiet=True)

    with pytest.raises(ContractError, match="AE-NESTING") as raised:
        Export(read, Opened(output, to, extends=True), reporter, Selection()).run()

    assert raised.value.__notes__ == [f"{to} is as it was before."]
    assert list(tmp_path.iterdir()) == []
