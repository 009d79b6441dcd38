"""The state of one organization as a JSON object: the watermark, and the settings it belongs to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.extraction.watermark_json import from_json, to_json


def to_run_state(
    watermark: Watermark, *, organization_id: str, action_types: Iterable[str]
) -> dict[str, Any]:
    """The state for the next run, empty if nothing was delivered yet."""
    scope = {"organization_id": organization_id, "action_types": list(action_types)}
    delivered = to_json(watermark)
    return delivered and delivered | scope


def from_run_state(
    state: Mapping[str, Any], *, organization_id: str, lookback_seconds: int
) -> Watermark:
    """The watermark of a state that `to_run_state` returned, in this version or an earlier one.

    An empty state gives an empty watermark; any other state must pass `is_run_state`. The lookback
    is that of this run.

    Raises:
        SettingsError: the state belongs to another organization, or its watermark cannot be read.
    """
    theirs = state.get("organization_id", organization_id)
    if theirs.lower() != organization_id.lower():
        raise _refused(
            f"it belongs to the organization {sanitize(theirs, 60)},"
            " not to that of organization_id: give each organization a state of its own"
        )
    try:
        return from_json(state, lookback_seconds=lookback_seconds)
    except ValueError as error:
        raise unusable(f"its watermark is not as this tap writes it: {error}") from None


def is_run_state(value: object) -> bool:
    """Whether a value has the outer shape of a state."""
    match value:
        case {"organization_id": str(), "action_types": [*types]}:
            return all(isinstance(name, str) for name in types)
    return False


def types_never_requested(
    state: Mapping[str, Any], action_types: Collection[str]
) -> list[str] | None:
    """The action types of this run that the runs before a state did not request.

    None if they requested each of these types. An empty ``action_types`` stands for all types; an
    empty result stands for all types but those that the earlier runs requested.
    """
    earlier = state.get("action_types")
    if not earlier or (action_types and set(action_types) <= set(earlier)):
        return None
    return [name for name in action_types if name not in earlier]


def unusable(problem: str) -> SettingsError:
    """The error for a state that cannot be used; it says how to start over."""
    return _refused(
        f"{problem}. To start over, run without the state or, with several organizations, remove"
        " only this bookmark from it; if events are only appended, they then come twice"
    )


def _refused(problem: str) -> SettingsError:
    line = f"The bookmark of audit_events in the state cannot be used: {problem}"
    return SettingsError([line], "AE-STATE")
