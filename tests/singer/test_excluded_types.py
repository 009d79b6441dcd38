"""The setting `exclude_action_types`: events of these types are read, but not delivered."""

from typing import Any

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.conftest import Sync
from tests.singer.test_coverage import a_catalog, of_stream
from tests.singer.test_incremental import events

EXCLUDED = {"exclude_action_types": ["noise"]}
LANES: list[dict[str, Any]] = [{}, {"stream_maps": {"audit_events": {"also": "id"}}}]


def noise(*times: str) -> list[dict[str, Any]]:
    return [
        an_event(id=f"n{each}", at=f"2024-05-06T{each}Z", action_type="noise") for each in times
    ]


@pytest.mark.parametrize("lane", LANES)
def test_excluded_events_are_passed_and_not_delivered(
    lane: dict[str, Any], service: Service, sync: Sync
) -> None:
    """The next run continues after them, and the summary counts each of them once."""
    service.add([*events("08:00:00", "08:00:02"), *noise("08:00:01", "09:00:00")])
    first = sync(page_size=3, **EXCLUDED, **lane).raise_for_exit_code()
    assert (first.ids, first.bookmark) == (["08:00:00", "08:00:02"], "2024-05-06T09:00:00Z")
    assert "Done: 2 events delivered; 0 of them late; 0 dropped as delivered before;" in first.log
    assert "; 2 left out by exclude_action_types;" in first.log
    service.requests.clear()
    service.add(events("10:00:00"))
    second = sync(state=first.state, **EXCLUDED, **lane).raise_for_exit_code()
    assert (second.ids, second.warnings) == (["10:00:00"], [])
    assert service.requests[0].params["startTime"] == "2024-05-06T08:55:00Z"
    assert "left out" not in second.log


def test_only_a_text_that_is_the_same_is_excluded(service: Service, sync: Sync) -> None:
    """JSON may write a character as an escape; a type that is no text is no action type."""
    actions = [
        rb'{"type": "no\u0069se"}', b'{"type": "noisy"}', b'{"type": null}', b'{"type": ["noise"]}',
        b"{}", b'"noise"', b'{"details": {"type": "noise"}}',
        b'{"details": 1E999, "type": "noise"}',
    ]  # fmt: skip
    texts = [
        b'{"id": "%d", "occurredAt": "2024-05-06T08:00:00Z", "action": %b}' % each
        for each in enumerate(actions)
    ]
    service.add_faults([Fault(kind="body", text=b'{"auditEvents": [%b]}' % b",".join(texts))])
    assert sync(**EXCLUDED).raise_for_exit_code().ids == ["1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize("faults", [[], ["displaced:places=3,event=5@1"]])
def test_a_range_of_excluded_events_is_not_read_again(
    faults: list[str], service: Service, sync: Sync
) -> None:
    """Each page has a STATE, so that a run that is killed continues there; also out of order."""
    service.add(noise(*(f"08:00:{n:02}" for n in range(60))))
    service.add_faults(faults)
    done = sync(page_size=20, concurrency=1, **EXCLUDED).raise_for_exit_code()
    assert (done.ids, done.bookmark) == ([], "2024-05-06T08:00:59Z")
    if not faults:
        assert len(done.states) == 3
    again = sync(state=done.state, lookback_seconds=0, **EXCLUDED).raise_for_exit_code()
    assert service.requests[-1].params["startTime"] == "2024-05-06T08:00:59Z"
    assert again.bookmark == done.bookmark


def test_the_coverage_says_what_is_excluded(service: Service, sync: Sync) -> None:
    """A record counts what was delivered, and other types begin a chain of their own."""
    service.add([*events("08:00:00"), *noise("08:30:00")])
    catalog, state, records = a_catalog(sync), None, []
    for hour, settings in ((9, EXCLUDED), (10, EXCLUDED), (11, {})):
        end = f"2024-05-06T{hour:02}:00:00Z"
        done = sync(catalog=catalog, state=state, end_date=end, **settings).raise_for_exit_code()
        state = done.state
        records += of_stream(done, "audit_events_coverage")
    assert [each["exclude_action_types"] for each in records] == [["noise"], ["noise"], []]
    # The last run delivers the event that is still within the lookback.
    assert [each["events"] for each in records] == [1, 0, 1]
    assert [each["previous_digest"] for each in records] == [None, records[0]["digest"], None]
    assert records[1]["covered_from"] == records[0]["covered_until"]
