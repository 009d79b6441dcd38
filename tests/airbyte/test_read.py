"""``read`` writes every event once, as the service sent it, and states for the next run."""

import json
from typing import Any

import pytest

from tap_audit_events.sandbox import Fault, Service, generate
from tests.airbyte.conftest import Source
from tests.airbyte.source import a_catalog
from tests.builders import an_event
from tests.integrations.pipeline import NOON

FORMS_OF_NO_STATE: dict[str, object] = {
    "an empty list": [],
    "null": "null",
    "no stream state": {
        "type": "STREAM",
        "stream": {"stream_descriptor": {"name": "audit_events"}},
    },
    "another stream": [
        {
            "type": "STREAM",
            "stream": {"stream_descriptor": {"name": "users"}, "stream_state": {"x": 1}},
        }
    ],
}


def events(*times: str) -> list[dict[str, Any]]:
    return [an_event(id=time, at=f"2024-05-06T{time}Z") for time in times]


def test_every_event_is_written_once(service: Service, source: Source) -> None:
    """Each STATE is for the records before it, and a status ends the stream."""
    added = list(generate(2500, days=3, seed=1, until=NOON))
    service.add(added)
    done = source("read", page_size=1000).raise_for_exit_code()
    assert sorted(done.ids) == sorted(event["id"] for event in added)
    assert len(done.states) > 1
    assert done.statuses == ["STARTED", "RUNNING", "COMPLETE"]
    assert done.failures == []
    done.check_states()


def test_a_record_has_the_bytes_of_the_service(service: Service, source: Source) -> None:
    """A RECORD line keeps the event byte for byte, with digits that a float would lose."""
    text = json.dumps(an_event())[:-1] + ', "new":  [1.2345678901234567890123e5, 1E400]}'
    service.add_faults(
        [Fault(kind="body", text=b'{"auditEvents": [%b]}' % text.encode(), when="1")]
    )
    done = source("read", end_date="2024-05-07T00:00:00Z").raise_for_exit_code()
    line = next(line for line in done.stdout.split(b"\n") if b'"RECORD"' in line)
    begin = b'{"type":"RECORD","record":{"stream":"audit_events","data":%b,"emitted_at":'
    assert line.startswith(begin % text.encode())


def test_excluded_events_move_the_state(service: Service, source: Source) -> None:
    """Each page has a STATE, also without a record; the next run continues after them."""
    service.add(events("08:00:00"))
    service.add(
        an_event(id=f"{n}", at=f"2024-05-06T09:00:0{n}Z", action_type="noise") for n in range(9)
    )
    settings = {"exclude_action_types": ["noise"], "page_size": 2, "lookback_seconds": 0}
    done = source("read", **settings).raise_for_exit_code()
    assert done.ids == ["08:00:00"]
    assert len(done.states) > 3
    again = source("read", state=[done.states[-1]], **settings).raise_for_exit_code()
    assert again.ids == []
    assert service.requests[-1].params["startTime"] == "2024-05-06T09:00:08Z"


def test_an_incremental_run_continues(service: Service, source: Source) -> None:
    """New and late events are read once each, and a run without new events has none."""
    service.add(events("08:00:00", "08:01:00", "08:02:00"))
    first = source("read").raise_for_exit_code()
    assert source("read", state=[first.state]).ids == []
    service.add(events("08:01:30", "08:03:00"))
    second = source("read", state=[first.state]).raise_for_exit_code()
    assert first.ids + second.ids == ["08:00:00", "08:01:00", "08:02:00", "08:01:30", "08:03:00"]


def test_the_state_may_be_one_message(service: Service, source: Source) -> None:
    """It need not be a list, and may have the fields that Airbyte's own models add."""
    service.add(events("08:00:00"))
    state = source("read").state
    padded = state | {"global": None, "data": None, "destinationStats": None}
    padded["stream"]["stream_descriptor"] |= {"namespace": None}
    assert source("read", state=padded).ids == []
    assert source("read", state=[padded]).ids == []


@pytest.mark.parametrize("form", FORMS_OF_NO_STATE)
def test_without_a_state_everything_is_read(form: str, service: Service, source: Source) -> None:
    service.add(events("08:00:00", "08:01:00"))
    done = source("read", state=FORMS_OF_NO_STATE[form]).raise_for_exit_code()
    assert done.ids == ["08:00:00", "08:01:00"]


def test_a_full_refresh_starts_over(service: Service, source: Source) -> None:
    """The state is ignored, and an incremental run can continue from the new one."""
    service.add(events("08:00:00", "08:01:00"))
    state = source("read").state
    refresh = source("read", catalog=a_catalog("full_refresh"), state=[state])
    assert refresh.raise_for_exit_code().ids == ["08:00:00", "08:01:00"]
    refresh.check_states()
    assert source("read", state=[refresh.state]).ids == []


@pytest.mark.parametrize("mode", ["full_refresh", "incremental"])
def test_a_run_without_events_ends_with_an_empty_state(mode: str, source: Source) -> None:
    """Airbyte needs a state for each stream, and the next run can continue from this one."""
    done = source("read", catalog=a_catalog(mode)).raise_for_exit_code()
    assert done.statuses == ["STARTED", "RUNNING", "COMPLETE"]
    assert done.state["stream"]["stream_state"] == {}
    assert source("read", state=[done.state]).exit_code == 0


def test_the_selection_of_fields_is_left_to_airbyte(service: Service, source: Source) -> None:
    """Airbyte itself removes the fields that its catalog does not select."""
    event = an_event()
    service.add([event])
    stream = {"name": "audit_events", "json_schema": {"properties": {"id": {"type": "string"}}}}
    (record,) = source("read", catalog=a_catalog(stream=stream)).records
    assert record == event
