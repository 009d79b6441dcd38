"""Expired cursors, disorder and a full memory lose no event, and the log tells of them."""

import json
import re
from typing import Any

import pytest

from tap_audit_events.events.instants import parse_instant
from tap_audit_events.extraction.id_groups import Group
from tap_audit_events.extraction.watermark import MAX_REMEMBERED_IDS, Watermark
from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.conftest import Sync
from tests.extraction.watermarks import bookmark_of, digests_of
from tests.singer.test_incremental import covered, events

TEN_EVENTS = events(*(f"08:00:0{n}" for n in range(10)))
TEN_IDS = [event["id"] for event in TEN_EVENTS]


def summary(log: str) -> str:
    """The closing line of a run."""
    (line,) = re.findall(r"Done: .*", log)
    return str(line)


def test_a_refused_cursor_restarts_its_window(service: Service, sync: Sync) -> None:
    """It restarts at its newest page, as often as this brings new events; none is repeated."""
    service.add(TEN_EVENTS)
    service.add_faults([Fault(kind="expire", when="3,6")])
    done = sync(page_size=2, concurrency=1).raise_for_exit_code()
    assert done.ids == TEN_IDS
    starts = [request.params.get("startTime") for request in service.requests]
    assert starts[3:6] == ["2024-05-06T08:00:02Z"] * 3
    assert [line for line in done.warnings if "again without a cursor" in line] == done.warnings
    assert len(done.warnings) == 2
    covered(done)


def test_a_restart_among_many_events_repeats_nothing(service: Service, sync: Sync) -> None:
    """The restart is at a whole second, of which more events were delivered than are remembered."""
    full = [an_event(id=f"{n:05}", at=f"2024-05-06T08:00:01.{n:05}Z") for n in range(8100)]
    refused = 83
    later = [an_event(id=f"later {n:03}", at=f"2024-05-06T08:10:{n:02}Z") for n in range(60)]
    service.add([*full, *later])
    service.add_faults([Fault(kind="expire", when=str(refused))])
    done = sync(page_size=99, concurrency=1, lookback_seconds=0).raise_for_exit_code()
    assert len(service.requests) > 2 * (refused - 1)
    assert done.ids == [event["id"] for event in (*full, *later)]
    covered(done)


def test_a_restart_that_brings_nothing_new_is_an_error(service: Service, sync: Sync) -> None:
    """One instant has more events than can be read before the cursor expires.

    With several requests in flight, the windows would depend on how fast responses arrive.
    """
    service.add(
        [*TEN_EVENTS[:3], *(an_event(id=f"tie-{n}", at="2024-05-06T08:00:05Z") for n in range(9))]
    )
    service.add_faults([Fault(kind="expire", when="3-", only=lambda seen: "cursor" in seen.params)])
    done = sync(page_size=2, concurrency=1, end_date="2024-05-07T00:00:00Z")
    assert done.exit_code == 1
    (line,) = done.errors
    assert line.startswith("AE-CURSOR-REFUSED: ")
    assert "in the window from 2024-05-06T08:00:05Z to 2024-05-07T00:00:00Z" in line
    assert "cursorExpired" in line
    assert done.ids[:3] == TEN_IDS[:3]
    assert len(set(done.ids)) == len(done.ids)
    assert len(service.requests) < 20
    covered(done)


def test_pages_out_of_order_lose_nothing(service: Service, sync: Sync) -> None:
    """The bookmark stays until the range is complete, with one warning; then it moves."""
    shuffled = [TEN_EVENTS[n] for n in (3, 1, 2, 5, 4)]
    page = json.dumps({"auditEvents": shuffled}).encode()
    service.add_faults([Fault(kind="body", text=page, when="2")])
    service.add(TEN_EVENTS[:1])
    state = sync().raise_for_exit_code().state
    done = sync(state=state).raise_for_exit_code()
    assert sorted(done.ids) == TEN_IDS[1:6]
    (warning,) = done.warnings
    assert warning.startswith("The service sends events out of order: the bookmark stays")
    values = [s["bookmarks"]["audit_events"]["replication_key_value"] for s in done.states]
    assert values == ["2024-05-06T08:00:00Z", "2024-05-06T08:00:05Z"]


def test_a_memory_that_is_full_is_warned_about_once(service: Service, sync: Sync) -> None:
    """Events whose ids are not remembered are not read again, so nothing is repeated."""
    seconds = [
        parse_instant(f"2024-05-06T08:00:{n:02}Z") for n in range(MAX_REMEMBERED_IDS // 2000)
    ]
    known = [Group(each, digests_of(f"{each} {n}" for n in range(2000))) for each in seconds]
    service.add(an_event(id=f"{seconds[0]} {n}", at="2024-05-06T08:00:00Z") for n in range(2000))
    watermark = Watermark(seconds[-1], known, lookback_seconds=300)
    bookmark = bookmark_of(watermark)
    new = events(*(f"08:00:50.{n:03}" for n in range(500)))
    service.add(new)
    done = sync(state={"bookmarks": {"audit_events": bookmark}}).raise_for_exit_code()
    assert done.ids == [event["id"] for event in new]
    assert [line[:26] for line in done.warnings] == ["More events lie within loo"]
    assert "looks back only 49 s" in done.warnings[0] or "looks back only 50 s" in done.warnings[0]
    again = sync(state=done.state).raise_for_exit_code()
    assert again.ids == []


def test_large_state_messages_are_rare(service: Service, sync: Sync) -> None:
    """A STATE with thousands of ids is not written after each small page."""
    watermark = Watermark(
        parse_instant("2024-05-06T08:00:00Z"),
        [Group(parse_instant("2024-05-06T08:00:00Z"), digests_of(map(str, range(30_000))))],
        lookback_seconds=300,
    )
    bookmark = bookmark_of(watermark)
    service.add(events(*(f"08:0{n // 60}:{n % 60:02}" for n in range(200))))
    done = sync(state={"bookmarks": {"audit_events": bookmark}}, page_size=1)
    assert len(done.raise_for_exit_code().ids) == 200
    assert len(done.states) <= 10
    assert done.messages[-1]["type"] == "STATE"


@pytest.mark.parametrize("lane", [{}, {"stream_maps": {"audit_events": {"x": "id"}}}])
def test_ids_that_cannot_be_told_apart_when_stored_end_the_run(
    lane: dict[str, Any], service: Service, sync: Sync
) -> None:
    """The event before them is delivered; the second one is not dropped as a repeat."""
    texts = [json.dumps(an_event(id=f"evt-{n}")) for n in ("a", "\ud800", "\ud801")]
    page = f'{{"auditEvents": [{", ".join(texts)}]}}'
    service.add_faults([Fault(kind="body", text=page.encode())])
    done = sync(**lane)
    assert done.exit_code == 1
    assert done.ids == ["evt-a"]
    (line,) = done.errors
    assert line.startswith("AE-EVENT: ")
    assert "event 2 of the page: its id 'evt-\ufffd', with U+FFFD for NUL or a lone" in line
    assert done.messages[-1]["type"] == "STATE"


def test_an_empty_cursor_is_warned_about_once(service: Service, sync: Sync) -> None:
    """It is treated as absent: the events of its page are delivered, and the run succeeds."""
    page = {"auditEvents": TEN_EVENTS, "nextCursor": ""}
    service.add_faults([Fault(kind="body", text=json.dumps(page).encode())])
    done = sync().raise_for_exit_code()
    assert done.ids == TEN_IDS
    assert done.warnings == ["The service sent an empty nextCursor: it is treated as absent"]


@pytest.mark.parametrize("ignored", ["startTime", "endTime"])
def test_a_service_that_ignores_a_bound_changes_nothing(
    ignored: str, service: Service, sync: Sync
) -> None:
    """Events outside of the range are left out, with one warning."""
    body: dict[str, Any] = {"auditEvents": TEN_EVENTS}
    service.add_faults([Fault(kind="body", text=json.dumps(body).encode())])
    bound = {"startTime": "start_date", "endTime": "end_date"}[ignored]
    done = sync(**{bound: "2024-05-06T08:00:04Z"}).raise_for_exit_code()
    assert done.ids == (TEN_IDS[4:] if bound == "start_date" else TEN_IDS[:5])
    assert ["outside of the requested range" in line for line in done.warnings] == [True]
