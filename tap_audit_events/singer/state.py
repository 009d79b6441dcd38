"""The watermark as a Singer bookmark: ``{"replication_key_value": …, "watermark": [{…}]}``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.events.instants import Instant, parse_instant, text_of
from tap_audit_events.events.stream_names import REPLICATION_KEY
from tap_audit_events.extraction.run_state import (
    VERSION,
    from_run_state,
    is_run_state,
    to_run_state,
    unusable,
)
from tap_audit_events.extraction.watermark import Watermark


def to_bookmark(
    watermark: Watermark, *, organization_id: str, action_types: Iterable[str]
) -> dict[str, Any]:
    """The bookmark to write into STATE, empty if nothing was delivered yet.

    Everything that a plain Singer bookmark does not have is in one list: tools that merge states
    replace a list as a whole, but merge objects key by key, which would mix old and new values.
    """
    if watermark.bookmark is None:
        return {}
    entry = to_run_state(watermark, organization_id=organization_id, action_types=action_types)
    return {
        "replication_key": REPLICATION_KEY,
        "replication_key_value": text_of(watermark.bookmark),
        "watermark": [entry],
    }


def from_bookmark(
    bookmark: Mapping[str, Any],
    *,
    organization_id: str,
    lookback_seconds: int,
    warn: Callable[[str], object] = lambda _: None,
) -> Watermark:
    """The watermark that a bookmark holds.

    A plain Singer bookmark has no ids. Ids that a newer version wrote, or whose bookmark was
    changed by hand, are not used. Without ids, events within the lookback may be delivered again.
    `warn` is called if something in the bookmark is not used.

    Raises:
        SettingsError: the bookmark is of another shape, key or organization, or holds no time.
    """
    if not has_time(bookmark):
        if not bookmark.keys() <= {"context", "coverage"}:  # without events it has only these
            warn("The bookmark of audit_events has no replication_key_value: all events are read")
        return Watermark(lookback_seconds=lookback_seconds)
    if bookmark.get("replication_key") not in (None, REPLICATION_KEY):
        raise unusable(f"its replication_key is not {REPLICATION_KEY}")
    entry = run_state_of(bookmark)
    instant = _instant(_time(bookmark))
    watermark = from_run_state(
        entry, organization_id=organization_id, lookback_seconds=lookback_seconds
    )
    if watermark.bookmark == instant:
        return watermark
    if "watermark" in bookmark:
        warn(
            "The ids next to the bookmark belong to another replication_key_value or version:"
            " events at most lookback_seconds older than the bookmark may be delivered again"
        )
    return Watermark(instant, lookback_seconds=lookback_seconds)


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


def _time(bookmark: Mapping[str, Any]) -> Any:
    return bookmark.get("replication_key_value", bookmark.get(REPLICATION_KEY))


def _instant(value: Any) -> Instant:
    try:
        return parse_instant(value)
    except TypeError:
        raise unusable("its time is not a text") from None
    except ValueError as error:
        raise unusable(f"its time {sanitize(value, 60)} {error}") from None
