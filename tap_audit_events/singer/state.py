"""The watermark as a Singer bookmark: ``{"replication_key_value": …, "watermark": [{…}]}``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tap_audit_events import REPLICATION_KEY
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.events.instants import Instant, parse_instant, text_of
from tap_audit_events.extraction.watermark import Watermark

VERSION: Final = 1
_START_OVER = "To start over, run without this state."


def to_bookmark(
    watermark: Watermark, *, organization_id: str, action_types: Iterable[str]
) -> dict[str, Any]:
    """The bookmark to write into STATE, empty where nothing was delivered yet.

    What goes beyond a plain Singer bookmark is one list, because those who merge states replace a
    list as a whole, but merge objects key by key and so mix old and new.
    """
    if watermark.bookmark is None:
        return {}
    value = text_of(watermark.bookmark)
    return {
        "replication_key": REPLICATION_KEY,
        "replication_key_value": value,
        "watermark": [
            {
                "version": VERSION,
                "bookmark": value,
                "organization_id": organization_id,
                "action_types": list(action_types),
                "ids": watermark.ids,
                "ids_from": text_of(watermark.ids_from),
                "ids_until": text_of(watermark.ids_until or watermark.bookmark),
            }
        ],
    }


def from_bookmark(
    bookmark: Mapping[str, Any],
    *,
    organization_id: str,
    lookback_seconds: int,
    warn: Callable[[str], object] = lambda _: None,
) -> Watermark:
    """The watermark that a bookmark holds.

    A plain Singer bookmark, one by a newer version, and one whose ``replication_key_value`` was
    changed by hand hold no ids: then events at most a lookback old may be emitted once more.

    Args:
        bookmark: the bookmark of this stream, empty where there is none.
        organization_id: whose events are read.
        lookback_seconds: how far before the bookmark a run starts.
        warn: is told where something in the bookmark is not used.

    Raises:
        SettingsError: the bookmark is of another shape, key or organization, or holds no time.
    """
    value = bookmark.get("replication_key_value", bookmark.get(REPLICATION_KEY))
    if value is None:
        if bookmark.keys() & {"replication_key", "watermark", "partitions"}:
            warn("The bookmark of audit_events has no replication_key_value: all events are read")
        return Watermark(lookback_seconds=lookback_seconds)
    if bookmark.get("replication_key", REPLICATION_KEY) != REPLICATION_KEY:
        raise _unusable(f"its replication_key is not {REPLICATION_KEY}")
    held = _held(bookmark)
    if held.get("organization_id", organization_id).lower() != organization_id.lower():
        raise _unusable(
            f"it belongs to the organization {sanitize(held['organization_id'], 60)},"
            " not to that of organization_id: give each organization a state of its own"
        )
    instant = _instant(value)
    if not held or _instant(held["bookmark"]) != instant:
        if "watermark" in bookmark:
            warn(
                "The ids beside the bookmark belong to another replication_key_value or version:"
                " events at most lookback_seconds older than the bookmark may be emitted again"
            )
        return Watermark(instant, lookback_seconds=lookback_seconds)
    return Watermark(
        instant,
        held["ids"],
        ids_from=_instant(held["ids_from"]),
        ids_until=_instant(held["ids_until"]),
        lookback_seconds=lookback_seconds,
    )


def types_never_asked_for(
    bookmark: Mapping[str, Any], action_types: Iterable[str]
) -> list[str] | None:
    """The action types that the runs behind a bookmark did not read, None where they read all.

    An empty ``action_types`` stands for all; so does an empty list of the answer, where the
    earlier runs were limited to some.
    """
    earlier = _held(bookmark).get("action_types") or None
    wanted = list(action_types)
    if earlier is None or (wanted and set(wanted) <= set(earlier)):
        return None
    return [name for name in wanted if name not in earlier]


def _held(bookmark: Mapping[str, Any]) -> dict[str, Any]:
    """What the list beside the bookmark holds; empty where this version reads none."""
    if "watermark" not in bookmark:
        return {}
    match bookmark["watermark"]:
        case [{"version": int(version)}] if version > VERSION:
            return {}
        case [
            {
                "version": int(),
                "bookmark": str(),
                "organization_id": str(),
                "action_types": list(action_types),
                "ids": list(ids),
                "ids_from": str(),
                "ids_until": str(),
            }
        ] if all(isinstance(text, str) for text in (*ids, *action_types)):
            held: dict[str, Any] = bookmark["watermark"][0]
            return held
    raise _unusable("its watermark is not as this tap writes it")


def _instant(value: Any) -> Instant:
    try:
        return parse_instant(value)
    except TypeError:
        raise _unusable("its time is no text") from None
    except ValueError as error:
        raise _unusable(f"its time {sanitize(value, 60)} {error}") from None


def _unusable(problem: str) -> SettingsError:
    return SettingsError(
        [f"The bookmark of audit_events in the state cannot be used: {problem}. {_START_OVER}"],
        "AE-STATE",
    )
