"""Checks that a state has the shape of a Singer state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tap_audit_events.config.input_files import check_serializable, malformed
from tap_audit_events.events.stream_names import STREAM


def check_state(state: Mapping[str, Any]) -> None:
    """Check the shape of a state, down to the bookmark of each stream.

    Raises:
        SettingsError: it has another shape.
    """
    for wrapper in ("singer_state", "completed", "value"):
        if wrapper in state and "bookmarks" not in state:
            raise malformed(
                "state", f"has the bookmarks inside {wrapper!r}: give only the value of {wrapper!r}"
            )
    bookmarks = state.get("bookmarks", {})
    if not isinstance(bookmarks, dict) or not all(map(_is_bookmark, bookmarks.values())):
        raise malformed("state", 'must look like {"bookmarks": {"audit_events": { … }}}')
    check_serializable("state", state)


def state_warnings(state: Mapping[str, Any]) -> list[str]:
    """A warning if a state has bookmarks, but none for the stream, or an empty one."""
    if state and not state.get("bookmarks", {}).get(STREAM):
        return [f"The state has no bookmark for {STREAM}: all events are read"]
    return []


def _is_bookmark(value: Any) -> bool:
    return (
        _has_markers(value)
        and isinstance(value.get("partitions", []), list)
        and all(map(_is_partition, value.get("partitions", [])))
    )


def _is_partition(value: Any) -> bool:
    return _has_markers(value) and isinstance(value.get("context"), dict)


def _has_markers(value: Any) -> bool:
    """Whether it is an object whose progress markers, if it has some, are one as well."""
    return isinstance(value, dict) and isinstance(value.get("progress_markers", {}), dict)
