"""Builders of watermarks and events, and a check of what a watermark holds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

from tap_audit_events.events.instants import Instant, later, parse_instant
from tap_audit_events.extraction import watermark as module
from tap_audit_events.extraction.id_groups import digest_of
from tap_audit_events.extraction.run_state import from_run_state, to_run_state
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.singer.state import from_bookmark, to_bookmark
from tests.builders import ORGANIZATION_ID

_START = parse_instant("2026-01-01T00:00:00Z")


def at(tenths: int) -> Instant:
    """An instant so many tenths of a second after the start."""
    whole, tenth = divmod(tenths, 10)
    moved = later(_START, seconds=whole)
    return Instant(f"{moved}.{tenth}") if tenth else moved


Event = tuple[str, Instant]

pages_of_events = st.lists(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 300)), max_size=60).map(
        lambda pairs: [(f"id-{number}", at(tenths)) for number, tenths in pairs]
    ),
    max_size=8,
)


def deliver(
    watermark: Watermark, page: Sequence[Event], *, moves_bookmark: bool = True
) -> list[str]:
    """Deliver the new events of a page, and return their ids."""
    ids, instants = [each[0] for each in page], [each[1] for each in page]
    fresh = watermark.fresh(ids, instants)
    watermark.deliver(
        [ids[position] for position in fresh],
        [instants[position] for position in fresh],
        moves_bookmark=moves_bookmark,
    )
    return [ids[position] for position in fresh]


def digests_of(ids: Iterable[str]) -> bytes:
    """The digests of ids, joined."""
    return b"".join(map(digest_of, ids))


def digests_in(watermark: Watermark) -> list[bytes]:
    """The digests that go into STATE."""
    return [each for group in watermark.groups for each in group.split()]


def with_memory(memory: int, *arguments: Any, **more: Any) -> Watermark:
    """A watermark that keeps at most that many ids for the next run."""
    with patch.object(module, "MAX_REMEMBERED_IDS", memory):
        return Watermark(*arguments, **more)


def to_json(watermark: Watermark) -> dict[str, Any]:
    """The watermark as JSON, in the state of an organization without an id."""
    return to_run_state(watermark, organization_id="", action_types=[])


def from_json(value: Mapping[str, Any], *, lookback_seconds: int) -> Watermark:
    """The watermark of a state, whichever organization it belongs to."""
    return from_run_state(
        value,
        organization_id=value.get("organization_id", ""),
        lookback_seconds=lookback_seconds,
    )


def bookmark_of(
    watermark: Watermark,
    *,
    organization_id: str = ORGANIZATION_ID,
    action_types: Iterable[str] = (),
) -> dict[str, Any]:
    """The watermark as the tap writes it into STATE."""
    state = to_run_state(watermark, organization_id=organization_id, action_types=action_types)
    return to_bookmark(state, organization_id)


def read_bookmark(
    bookmark: Mapping[str, Any],
    *,
    organization_id: str = ORGANIZATION_ID,
    lookback_seconds: int,
    warn: Callable[[str], object] = lambda _: None,
) -> Watermark:
    """The watermark as the tap reads it from a state."""
    state = from_bookmark(bookmark, organization_id, warn=warn)
    return from_run_state(state, organization_id=organization_id, lookback_seconds=lookback_seconds)


def next_run(watermark: Watermark, lookback: int, memory: int = 10**6) -> Watermark:
    """The watermark that the next run reads from STATE."""
    with patch.object(module, "MAX_REMEMBERED_IDS", memory):
        return from_json(to_json(watermark), lookback_seconds=lookback)


def check_held(watermark: Watermark, history: dict[str, Instant], *, memory: int) -> None:
    """Check that each id since `ids_from` is held, and no more than the memory allows."""
    held = digests_in(watermark)
    assert len(held) == len(set(held))
    since = {digest_of(i) for i, instant in history.items() if instant >= watermark.ids_from}
    assert since <= set(held) <= set(map(digest_of, history))
    ties = sum(instant == watermark.bookmark for instant in history.values())
    assert len(held) <= max(memory, ties)
    assert watermark.groups == sorted(watermark.groups, key=lambda group: group.until)
