"""Anything larger than its bound ends the run with an error, and no event is lost."""

import gzip
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tests.builders import ORGANIZATION_ID, an_event
from tests.errors.test_errors import only_error
from tests.running import Run, run
from tests.service.scripted import EMPTY_PAGE, Peer, Scripted, scripted_service

MAX_EVENTS, MAX_ID_LENGTH, MAX_TIME_LENGTH, MAX_CURSOR_LENGTH = 1000, 1000, 100, 16_384
MAX_EVENT_BYTES = 8_000_000
"""The bounds that docs/operations.md states."""


def events(count: int, first: int = 0) -> list[dict[str, Any]]:
    """Return events a millisecond apart."""
    return [
        an_event(id=str(n), at=f"2024-05-06T07:08:{n // 1000:02}.{n % 1000:03}Z")
        for n in range(first, first + count)
    ]


def a_page(page: Sequence[object], cursor: str | None = None) -> bytes:
    envelope: dict[str, object] = {"auditEvents": page}
    return json.dumps(envelope if cursor is None else envelope | {"nextCursor": cursor}).encode()


@contextmanager
def serving(*pages: bytes) -> Iterator[Scripted]:
    """Serve these pages, compressed, one for each request; then pages without events."""
    left = iter([gzip.compress(page, compresslevel=1) for page in pages])
    empty = gzip.compress(EMPTY_PAGE)

    def serve(peer: Peer) -> None:
        while peer.hear():
            peer.respond(next(left, empty), "Content-Encoding: gzip")

    with scripted_service(serve) as service:
        yield service


def run_against(
    service: Scripted, *, state: object = None, under: Sequence[str] = (), **settings: Any
) -> Run:
    given = {
        "base_url": service.base_url,
        "organization_id": ORGANIZATION_ID,
        "access_token": "acme_pat_bounds",
        "concurrency": 1,
    }
    return run(given | settings, state=state, under=under)


def check_nothing_is_lost(done: Run, ids: Sequence[str], rest: Sequence[dict[str, Any]]) -> None:
    """Check that a failed run delivered the ids, and that the next run delivers only the rest."""
    assert done.ids == list(ids)
    with serving(a_page(events(2) + list(rest))) as service:
        assert run_against(service, state=done.state).raise_for_exit_code().ids == [
            event["id"] for event in rest
        ]


def test_a_page_may_hold_as_many_events_as_can_be_requested() -> None:
    """A service may send up to 1,000 events, even if `page_size` is smaller."""
    with serving(a_page(events(MAX_EVENTS))) as service:
        assert len(run_against(service).raise_for_exit_code().ids) == MAX_EVENTS


@pytest.mark.parametrize("extra", [events(1, first=2 + MAX_EVENTS), [0], [None], [{}]])
def test_a_page_with_more_events_is_an_error(extra: list[object]) -> None:
    """The error names the bound, and the events of earlier pages are delivered."""
    first, second = events(2), events(MAX_EVENTS, first=2)
    with serving(a_page(first, "c"), a_page([*second, *extra])) as service:
        done = run_against(service)
    line = only_error(done)
    assert line.startswith("AE-TOO-MANY-EVENTS: ")
    assert "more than 1,000" in line
    assert "in the window up to " in line
    check_nothing_is_lost(done, ["0", "1"], second[:3])


@pytest.mark.parametrize("length", [MAX_CURSOR_LENGTH, MAX_CURSOR_LENGTH + 1])
def test_a_cursor_that_is_too_long_is_an_error(length: int) -> None:
    """The events of its page are delivered."""
    with serving(a_page(events(2), "é" * length), a_page(events(1, first=2))) as service:
        done = run_against(service)
    if length == MAX_CURSOR_LENGTH:
        assert done.raise_for_exit_code().ids == ["0", "1", "2"]
        return
    line = only_error(done)
    assert line.startswith("AE-CURSOR-LENGTH: ")
    assert "16,385 characters; the most is 16,384" in line
    assert len(line) < 600
    check_nothing_is_lost(done, ["0", "1"], events(2, first=2))


@pytest.mark.parametrize("character", ["x", "é", "\U0001f600"])
@pytest.mark.parametrize("length", [MAX_ID_LENGTH, MAX_ID_LENGTH + 1])
def test_an_id_that_is_too_long_is_an_error(length: int, character: str) -> None:
    """The events before its event are delivered."""
    given = an_event(id=character * length, at="2024-05-06T07:09:00Z")
    with serving(a_page([*events(2), given])) as service:
        done = run_against(service)
    if length == MAX_ID_LENGTH:
        assert done.raise_for_exit_code().ids == ["0", "1", character * length]
        return
    line = only_error(done)
    assert line.startswith("AE-EVENT: ")
    assert "length <= 1000 - at `$.id`" in line
    assert len(line) < 1200
    check_nothing_is_lost(done, ["0", "1"], events(2, first=2))


@pytest.mark.parametrize("length", [MAX_TIME_LENGTH, MAX_TIME_LENGTH + 1])
def test_a_time_that_is_too_long_is_an_error(length: int) -> None:
    """A time as long as the bound is delivered with all its digits."""
    time = "2024-05-06T07:09:00.".ljust(length - 1, "1") + "Z"
    with serving(a_page([*events(2), an_event(id="2", at=time)])) as service:
        done = run_against(service)
    if length == MAX_TIME_LENGTH:
        assert done.raise_for_exit_code().records[-1]["occurredAt"] == time
        return
    line = only_error(done)
    assert line.startswith("AE-EVENT: ")
    assert "length <= 100 - at `$.occurredAt`" in line
    assert len(line) < 1200
    check_nothing_is_lost(done, ["0", "1"], events(2, first=2))


LANES: dict[str, dict[str, Any]] = {
    "verbatim": {},
    "map": {"stream_maps": {"audit_events": {"copy": "id"}}},
    "flat": {"flattening_enabled": True, "flattening_max_depth": 3},
}


def large_event(size: int, character: str = "x") -> dict[str, Any]:
    """Return an event whose JSON text has so many bytes."""
    event = an_event(id="2", at="2024-05-06T07:09:00Z", note="")
    space = size - len(json.dumps(event))
    text = character * (space // len(json.dumps(character)[1:-1]))
    event["note"] = text + "x" * (space - len(json.dumps(text)) + 2)
    return event


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(
    "character", ["x", *(pytest.param(each, marks=pytest.mark.long) for each in "é\0")]
)
@pytest.mark.parametrize("extra", [0, 1])
def test_an_event_that_is_too_large_is_an_error(extra: int, character: str, lane: str) -> None:
    """In each lane, its bytes in the response count. The events before it are delivered."""
    given = large_event(MAX_EVENT_BYTES + extra, character)
    with serving(a_page([*events(2), given, *events(1, first=3)])) as service:
        done = run_against(service, **LANES[lane])
    if not extra:
        assert done.raise_for_exit_code().ids == ["0", "1", "2", "3"]
        return
    line = only_error(done)
    assert line.startswith("AE-EVENT-SIZE: ")
    assert "event 3 of the page: it has 8,000,001 bytes; the most is 8,000,000" in line
    assert len(line) < 1200
    check_nothing_is_lost(done, ["0", "1"], events(2, first=2))
