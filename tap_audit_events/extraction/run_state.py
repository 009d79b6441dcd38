"""The state of one organization as a JSON object: the watermark, and the settings it belongs to."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

import msgspec

from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.events.instants import EARLIEST, Instant, parse_instant, text_of
from tap_audit_events.extraction.coverage import Coverage
from tap_audit_events.extraction.id_groups import DIGEST_BYTES, Group, digest_of
from tap_audit_events.extraction.watermark import Watermark

VERSION: Final = 2
"""Version 1 had the ids themselves, with one instant for all of them; it is still read."""


_PLAIN: Final = frozenset({
    "bookmark", "read_until", "organization_id", "action_types", "exclude_action_types", "coverage",
})  # fmt: skip
"""What a state without ids has: see `plain_state`."""


class _WatermarkJson(msgspec.Struct):
    """The watermark in a state; the ADR "The watermark in STATE" explains the names."""

    bookmark: str
    ids_from: str
    ids: list[str | tuple[str, str]]
    ids_until: str = ""  # only in version 1
    covered_from: str = ""  # not in every state


def to_run_state(
    watermark: Watermark,
    *,
    organization_id: str,
    action_types: Iterable[str],
    exclude_action_types: Iterable[str] = (),
    coverage: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The state for the next run; without a bookmark if nothing was delivered yet.

    A group of ids is a list of two texts: the newest ``occurredAt`` of its ids, and their digests
    in base64 without padding. `coverage` is the chain of coverage records, None if there is none.
    """
    state: dict[str, Any] = {}
    if watermark.bookmark is not None:
        groups = watermark.groups
        state = {
            "version": VERSION,
            "bookmark": text_of(watermark.bookmark),
            "ids_from": text_of(watermark.ids_from),
            "ids": [[text_of(group.until), _to_base64(group.digests)] for group in groups],
            "organization_id": organization_id,
            "action_types": list(action_types),
        }
        if excluded := list(exclude_action_types):
            state["exclude_action_types"] = excluded
        if watermark.covered_from is not None:
            state["covered_from"] = text_of(watermark.covered_from)
    if coverage is not None:
        state["coverage"] = dict(coverage)
    return state


def plain_state(bookmark: Any, earlier: Mapping[str, Any]) -> dict[str, Any]:
    """A state that has only a bookmark: events within the lookback may be delivered again.

    Args:
        bookmark: a text, which somebody may have changed.
        earlier: the state that this tap wrote, if there is one.
    """
    kept = {name: value for name, value in earlier.items() if name in _PLAIN}
    return {**kept, "bookmark": bookmark, "read_until": earlier.get("bookmark")}


def read_until(state: Mapping[str, Any]) -> Instant:
    """The bookmark that this tap wrote: one that was changed by hand may be later."""
    text = state.get("read_until", state.get("bookmark"))
    return EARLIEST if text is None else parse_instant(text)


def from_run_state(
    state: Mapping[str, Any], *, organization_id: str, lookback_seconds: int
) -> Watermark:
    """The watermark of a state: of `to_run_state`, in this version or an earlier one, or plain.

    A state without a bookmark gives an empty watermark. The lookback is that of this run.

    Raises:
        SettingsError: the state belongs to another organization, or its watermark cannot be read.
    """
    theirs = state.get("organization_id", organization_id)
    if theirs.lower() != organization_id.lower():
        raise _refused(
            f"it belongs to the organization {sanitize(theirs, 60)},"
            " not to that of organization_id: give each organization a state of its own"
        )
    if state.keys() <= {"coverage"}:
        return Watermark(lookback_seconds=lookback_seconds)
    if "bookmark" in state and state.keys() <= _PLAIN:
        return Watermark(_plain_bookmark(state["bookmark"]), lookback_seconds=lookback_seconds)
    try:
        return _read(state, lookback_seconds)
    except ValueError as error:
        raise unusable(f"its watermark is not as this tap writes it: {error}") from None


def chain_of(state: Mapping[str, Any]) -> Coverage | None:
    """The chain of coverage records in a state, None if there is none.

    `SettingsError` if it cannot be read.
    """
    if state.get("coverage") is None:
        return None
    try:
        return Coverage.from_json(state["coverage"])
    except ValueError as error:
        raise unusable(str(error)) from None


def is_run_state(value: object) -> bool:
    """Whether a value has the outer shape of a state."""
    match value:
        case {"organization_id": str(), "action_types": [*types], **others}:
            excluded = others.get("exclude_action_types", [])
            return isinstance(excluded, list) and all(
                isinstance(name, str) for name in (*types, *excluded)
            )
    return False


def unusable(problem: str) -> SettingsError:
    """The error for a state that cannot be used; it says how to start over."""
    return _refused(
        f"{problem}. To start over, run without the state; with several organizations, remove only"
        " this bookmark from it. A target that only appends then has the events twice"
    )


def _refused(problem: str) -> SettingsError:
    line = f"The bookmark of audit_events in the state cannot be used: {problem}"
    return SettingsError([line], "AE-STATE")


def _plain_bookmark(value: Any) -> Instant:
    try:
        return parse_instant(value)
    except TypeError:
        raise unusable("its time is not a text") from None
    except ValueError as error:
        raise unusable(f"its time {sanitize(value, 60)} {error}") from None


def _read(state: Mapping[str, Any], lookback_seconds: int) -> Watermark:
    """The watermark in a state; `ValueError` says what is wrong with it."""
    if state.get("version") not in (1, VERSION):
        raise ValueError(f"its version is not 1 or {VERSION}")
    given = msgspec.convert(state, _WatermarkJson)
    bookmark = _instant(given.bookmark, "bookmark")
    starts = {
        name: _instant(getattr(given, name), name)
        for name in ("ids_from", "covered_from")
        if name in state
    }
    for name, start in starts.items():
        if start > bookmark:
            raise ValueError(f"its {name} lies after its bookmark")
    groups = [_group(each, given.ids_until) for each in dict.fromkeys(given.ids)]
    if any(group.until > later.until for group, later in pairwise(groups)):
        raise ValueError("its groups of ids are not in the order of time")
    return Watermark(bookmark, groups, lookback_seconds=lookback_seconds, **starts)


def _group(ids: str | tuple[str, str], until_of_text: str) -> Group:
    """A group of digests, or one id of version 1."""
    if isinstance(ids, str):
        return Group(_instant(until_of_text, "ids_until"), digest_of(ids))
    until, digests = ids
    return Group(_instant(until, "ids"), _from_base64(digests))


def _instant(text: str, name: str) -> Instant:
    try:
        return parse_instant(text)
    except ValueError as error:
        raise ValueError(f"in its {name}, {sanitize(text, 60)} {error}") from None


def _to_base64(digests: bytes) -> str:
    return b2a_base64(digests, newline=False).decode().rstrip("=")


def _from_base64(text: str) -> bytes:
    try:
        digests = a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
    except ValueError:
        raise ValueError("a group of its ids is not base64") from None
    if not digests or len(digests) % DIGEST_BYTES:
        raise ValueError(f"a group of its ids does not consist of digests of {DIGEST_BYTES} bytes")
    return digests
