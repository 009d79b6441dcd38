"""Checks that a state has the shape of a Singer state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tap_audit_events.config.input_files import check_serializable, malformed
from tap_audit_events.events.stream_names import STREAM


class _Partition(msgspec.Struct):
    context: dict[str, Any]
    progress_markers: dict[str, Any] = {}


class _Bookmark(msgspec.Struct):
    partitions: list[_Partition] = []
    progress_markers: dict[str, Any] = {}


class _State(msgspec.Struct):
    bookmarks: dict[str, _Bookmark] = {}


def check_state(state: Mapping[str, Any]) -> None:
    """Check the shape of a state, down to the bookmark of each stream.

    Raises:
        SettingsError: it has another shape.
    """
    check_serializable("state", state)  # first: the next check fails on lone surrogates
    for wrapper in ("singer_state", "completed", "value"):
        if wrapper in state and "bookmarks" not in state:
            raise malformed(
                "state", f"has the bookmarks inside {wrapper!r}: give only the value of {wrapper!r}"
            )
    try:
        msgspec.convert(state, _State)
    except msgspec.ValidationError as error:
        raise malformed(
            "state", f'must look like {{"bookmarks": {{"audit_events": {{ … }}}}}} ({error})'
        ) from None


def state_warnings(state: Mapping[str, Any]) -> list[str]:
    """A warning if a state has bookmarks, but none for the stream, or an empty one."""
    if state and not state.get("bookmarks", {}).get(STREAM):
        return [f"The state has no bookmark for {STREAM}: all events are read"]
    return []
