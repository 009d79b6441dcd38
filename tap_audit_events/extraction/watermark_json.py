"""The watermark as JSON, the form in which a state contains it."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.events.instants import Instant, parse_instant, text_of
from tap_audit_events.extraction.id_groups import DIGEST_BYTES, Group, digests_of
from tap_audit_events.extraction.watermark import Watermark

VERSION: Final = 2
"""Version 1 had the ids themselves, without instants; it is still read."""


def to_json(watermark: Watermark) -> dict[str, Any]:
    """A watermark as a JSON object, empty if nothing was delivered.

    A group of ids is a list of two texts: the newest ``occurredAt`` of its ids, and their digests
    in base64 without padding.
    """
    if watermark.bookmark is None:
        return {}
    covered_from = watermark.covered_from
    return {
        "version": VERSION,
        "bookmark": text_of(watermark.bookmark),
        **({} if covered_from is None else {"covered_from": text_of(covered_from)}),
        "ids_from": text_of(watermark.ids_from),
        "ids": [[text_of(group.until), _to_base64(group.digests)] for group in watermark.groups],
    }


def from_json(value: Mapping[str, Any], *, lookback_seconds: int) -> Watermark:
    """The watermark in an object that `to_json` returned, in this version or an earlier one.

    Unknown keys are ignored. The lookback is that of this run, which may differ from earlier runs.

    Raises:
        ValueError: the object is not a watermark of a known version. The message is the rest of a
            sentence that begins "its watermark is not as this tap writes it: ".
    """
    if not value:
        return Watermark(lookback_seconds=lookback_seconds)
    bookmark, ids_from = _instant(value, "bookmark"), _instant(value, "ids_from")
    if ids_from > bookmark:
        raise ValueError("its ids_from lies after its bookmark")
    covered_from = _instant(value, "covered_from") if "covered_from" in value else None
    if covered_from is not None and covered_from > bookmark:
        raise ValueError("its covered_from lies after its bookmark")
    return Watermark(
        bookmark,
        _groups(value),
        ids_from=ids_from,
        covered_from=covered_from,
        lookback_seconds=lookback_seconds,
    )


def _groups(value: Mapping[str, Any]) -> list[Group]:
    version, ids = value.get("version"), value.get("ids")
    if version not in (1, VERSION):
        raise ValueError(f"its version is not 1 or {VERSION}")
    if not isinstance(ids, list):
        raise ValueError("its ids are not a list")
    if version == 1:
        return _group_of_texts(ids, _instant(value, "ids_until"))
    groups = [_group(each) for each in ids]
    if any(group.until > later.until for group, later in pairwise(groups)):
        raise ValueError("its groups of ids are not in the order of time")
    return groups


def _group_of_texts(ids: list[Any], until: Instant) -> list[Group]:
    """The ids of version 1: texts, with one instant for all of them."""
    if not all(isinstance(each, str) for each in ids):
        raise ValueError("one of its ids is not a text")
    return [Group(until, digests_of(dict.fromkeys(ids)))]


def _group(value: Any) -> Group:
    match value:
        case [str(until), str(digests)]:
            return Group(_parse(until, "a time of its ids"), _from_base64(digests))
    raise ValueError("a group of its ids is not a time and a text")


def _instant(value: Mapping[str, Any], key: str) -> Instant:
    text = value.get(key)
    if not isinstance(text, str):
        raise ValueError(f"its {key} is not a time")
    return _parse(text, f"its {key}")


def _parse(text: str, name: str) -> Instant:
    try:
        return parse_instant(text)
    except ValueError as error:
        raise ValueError(f"{name}, {sanitize(text, 60)}, {error}") from None


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
