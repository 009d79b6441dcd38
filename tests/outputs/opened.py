"""Outputs that a test writes to itself, without the command."""

import json
from pathlib import Path

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.outputs.form import AS_SENT
from tap_audit_events.outputs.formats import FORMATS, form_of
from tap_audit_events.outputs.output import Output
from tap_audit_events.outputs.state_file import StateFile
from tests.cli.exported import Event


def page_of(events: list[Event], organization_id: str = "o") -> EventPage:
    texts = [json.dumps(event).encode() for event in events]
    instants = [Instant(event["occurredAt"].rstrip("Z")) for event in events]
    return EventPage(
        texts, instants, organization_id=organization_id, shape=RecordShape(), state=dict
    )


def new_output(folder: Path, to: str, state: str | None = "s.json") -> Output:
    """An output in a folder, with a state file there, or without one. No run holds its lock."""
    path = folder / to
    state_file = None if state is None else StateFile(folder / state, path)
    return FORMATS[form_of(to)].new(path, state_file, AS_SENT)


def begun(folder: Path, to: str, state: str | None = "s.json") -> Output:
    output = new_output(folder, to, state)
    output.begin()
    return output


def write_and_commit(output: Output, events: list[Event], until: object = "now") -> None:
    output.write(page_of(events))
    output.commit({"until": until})
