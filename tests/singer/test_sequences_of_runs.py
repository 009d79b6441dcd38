"""Sequences of runs with more ids than the state holds: each event arrives once."""

from collections.abc import Sequence
from typing import Any

import pytest

from tap_audit_events.events.instants import later, parse_instant
from tap_audit_events.extraction.id_groups import Group
from tap_audit_events.extraction.watermark import MAX_REMEMBERED_IDS, Watermark
from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.conftest import Sync
from tests.extraction.watermarks import bookmark_of, digests_of, from_json

START = parse_instant("2024-05-06T08:00:00Z")
NEW = 3000
"""Events before each run: fewer than the state holds, more than a page."""

SEQUENCES: dict[str, Sequence[dict[str, Any]]] = {
    "nothing changes": [{}, {}, {}],
    "a lowered lookback": [{"lookback_seconds": 120}] * 3,
    "a lookback of 0 and back": [{}, {"lookback_seconds": 0}, {}],
    "fewer action types": [{"action_types": ["workspace_create"]}] * 3,
    "a later start date": [{"start_date": "2024-05-06T08:03:00Z"}] * 3,
}


def a_full_state() -> dict[str, Any]:
    """A state that is full of ids of events that the service does not show any more."""
    share = MAX_REMEMBERED_IDS // 200
    groups = [
        Group(later(START, seconds=n), digests_of(f"gone-{n}-{each}" for each in range(share)))
        for n in range(100, 300)
    ]
    watermark = Watermark(groups[-1].until, groups, lookback_seconds=300)
    bookmark = bookmark_of(watermark)
    return {"bookmarks": {"audit_events": bookmark}}


def events_after(seconds: int) -> list[dict[str, Any]]:
    """`NEW` events within ten seconds."""
    return [
        an_event(
            id=f"{seconds}-{n:04}",
            at=f"{later(START, seconds=seconds + n // 300)}.{n % 300:03}Z",
            context={},
        )
        for n in range(NEW)
    ]


def count_ids(state: dict[str, Any]) -> int:
    (entry,) = state["bookmarks"]["audit_events"]["watermark"]
    return sum(len(group.split()) for group in from_json(entry, lookback_seconds=300).groups)


@pytest.mark.parametrize(
    "sequence",
    [
        "nothing changes",
        *(pytest.param(each, marks=pytest.mark.long) for each in [*SEQUENCES][1:]),
    ],
)
def test_a_full_memory_repeats_nothing(sequence: str, service: Service, sync: Sync) -> None:
    """Ids of events that the service no longer shows make room for those of new events."""
    state = a_full_state()
    for number, settings in enumerate(SEQUENCES[sequence]):
        new = events_after(300 + 20 * number)
        service.add(new)
        done = sync(state=state, **settings).raise_for_exit_code()
        assert done.ids == [event["id"] for event in new]
        assert count_ids(done.state) <= MAX_REMEMBERED_IDS
        state = done.state
    assert sync(state=state, **settings).raise_for_exit_code().ids == []
