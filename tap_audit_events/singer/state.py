"""The state of an organization as a Singer bookmark, which other programs may have changed.

``{"replication_key_value": …, "watermark": [{…}], "coverage": [{…}]}``
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tap_audit_events.events.instants import parse_instant
from tap_audit_events.events.stream_names import ORGANIZATION_KEY, REPLICATION_KEY
from tap_audit_events.extraction.run_state import VERSION, is_run_state, plain_state, unusable


def to_bookmark(state: Mapping[str, Any], organization_id: str) -> dict[str, Any]:
    """The bookmark of a state that `to_run_state` returned, empty if that is empty.

    Everything that a plain Singer bookmark does not have is in one list: tools that merge states
    replace a list as a whole, but merge objects key by key, which would mix old and new values. So
    a state without a chain of coverage records has an empty list of it.
    """
    watermark = dict(state)
    coverage = watermark.pop("coverage", None)
    bookmark: dict[str, Any] = {}
    if watermark:
        bookmark = {
            "replication_key": REPLICATION_KEY,
            "replication_key_value": watermark["bookmark"],
            "watermark": [watermark],
            "coverage": [],
        }
    if coverage is not None:
        bookmark["coverage"] = [{**coverage, ORGANIZATION_KEY: organization_id}]
    return bookmark


def from_bookmark(
    bookmark: Mapping[str, Any],
    organization_id: str,
    *,
    warn: Callable[[str], object] = lambda _: None,
) -> dict[str, Any]:
    """The state in a bookmark, for `from_run_state`.

    A plain Singer bookmark has no ids. Ids that a newer version wrote, or whose bookmark was
    changed by hand, are not used. `warn` is called if something in the bookmark is not used.

    Raises:
        SettingsError: the bookmark is of another shape or key.
    """
    state: dict[str, Any] = {}
    if has_time(bookmark):
        if bookmark.get("replication_key") not in (None, REPLICATION_KEY):
            raise unusable(f"its replication_key is not {REPLICATION_KEY}")
        state = _state_at(_time(bookmark), bookmark, warn)
    elif not bookmark.keys() <= {"context", "coverage"}:  # without events it has only these
        warn("The bookmark of audit_events has no replication_key_value: all events are read")
    match bookmark.get("coverage"):
        case [{"organization_id": str(owner)} as chain] if owner.lower() == organization_id.lower():
            state["coverage"] = chain
    return state


def organization_of(bookmark: Mapping[str, Any]) -> str | None:
    """The organization that a bookmark names, None if it names none."""
    match bookmark.get("coverage"):
        case [{"organization_id": str(owner)}] if not has_time(bookmark):
            return owner
    return run_state_of(bookmark).get("organization_id")


def has_time(bookmark: Mapping[str, Any]) -> bool:
    """Whether a bookmark holds a time. A run reads all events if it does not."""
    return _time(bookmark) is not None


def run_state_of(bookmark: Mapping[str, Any]) -> dict[str, Any]:
    """The run state in a bookmark; empty if it has none, or a newer version wrote it.

    `SettingsError` if it is malformed.
    """
    if "watermark" not in bookmark:
        return {}
    match bookmark["watermark"]:
        case [{"version": int(version)}] if version > VERSION:
            return {}
        case [entry] if is_run_state(entry):
            return dict(entry)
    raise unusable("its watermark is not as this tap writes it")


def _state_at(
    time: Any, bookmark: Mapping[str, Any], warn: Callable[[str], object]
) -> dict[str, Any]:
    """The state of a bookmark with a time: with ids, if they belong to that time."""
    state = run_state_of(bookmark)
    if _is_same_instant(state.get("bookmark"), time):
        return state
    if "watermark" in bookmark:
        warn(
            "The ids next to the bookmark belong to another replication_key_value or version:"
            " events at most lookback_seconds older than the bookmark may be delivered again"
        )
    return plain_state(time, state)


def _is_same_instant(one: Any, other: Any) -> bool:
    try:
        return parse_instant(one) == parse_instant(other)
    except (TypeError, ValueError):
        return False


def _time(bookmark: Mapping[str, Any]) -> Any:
    return bookmark.get("replication_key_value", bookmark.get(REPLICATION_KEY))
