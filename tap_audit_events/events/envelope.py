"""The envelope of a response (interface.md 2.7): each event's bytes, and the next cursor."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final

import msgspec

from tap_audit_events.errors.exceptions import service_error

MAX_EVENTS: Final = 1000
"""Maximum number of events in a page: more cannot be requested (interface.md, section 8)."""

_EVENTS, _CURSOR = "auditEvents", "nextCursor"
_ENVELOPE_BYTES: Final = len('{"auditEvents":[],"nextCursor":""}')
_ESCAPED_LETTER: Final = re.compile(rb"\\u00[4-7]")

# A list would hold all members of the array before they could be counted. A struct that is read
# from an array has one field for each member, and skips those beyond its fields.
_Events = msgspec.defstruct(
    "_Events",
    [(f"event_{number}", msgspec.Raw, None) for number in range(MAX_EVENTS + 1)],
    array_like=True,
    gc=False,
)
_Envelope = msgspec.defstruct(
    "_Envelope", [(_EVENTS, _Events), (_CURSOR, str | None, None)], gc=False
)
_decode: Any = msgspec.json.Decoder(_Envelope).decode
_Key = msgspec.defstruct("_Key", [(_EVENTS, msgspec.Raw, None)], gc=False)
_decode_key: Any = msgspec.json.Decoder(_Key).decode


def read_envelope(text: bytes) -> tuple[list[msgspec.Raw], str | None]:
    """The events' texts, and the cursor of the next page.

    Raises:
        ContractError: there are more events than `MAX_EVENTS`.
        msgspec.DecodeError: the text is not JSON, or not an envelope.
        RecursionError: it is nested too deeply.
    """
    envelope = _decode(text)
    events = list(filter(None, msgspec.structs.astuple(envelope.auditEvents)))
    if len(events) > MAX_EVENTS:
        raise service_error("AE-TOO-MANY-EVENTS", details=f"more than {MAX_EVENTS:,}")
    return events, envelope.nextCursor


def has_events(text: bytes) -> bool:
    """Whether JSON is an object with the key of the events, whatever its value is."""
    try:
        return _decode_key(text).auditEvents is not None
    except msgspec.DecodeError:  # it is not an object
        return False


def check_keys_come_once(text: bytes, events: list[msgspec.Raw], cursor: str | None) -> None:
    """Raise `ContractError` if a key occurs twice, which would hide events or further pages."""
    explained = sum(map(len, events)) + len(events) + len(cursor or "") + _ENVELOPE_BYTES
    if len(text) <= explained or not _has_name_twice(text):
        return
    objects: list[list[tuple[str, Any]]] = [[]]

    def keep(pairs: list[tuple[str, Any]]) -> None:
        objects[0] = pairs  # the envelope ends last

    json.loads(text, object_pairs_hook=keep, parse_int=str, parse_float=str)
    counts = Counter(name for name, _ in objects[0])
    for name in (_EVENTS, _CURSOR):
        if counts[name] > 1:
            raise service_error("AE-ENVELOPE", details=f"it contains {name} more than once")


def _has_name_twice(text: bytes) -> bool:
    """Whether the name of a key occurs twice, anywhere, or may be written with escapes."""
    counts = [text.count(b'"%b"' % name.encode()) for name in (_EVENTS, _CURSOR)]
    return max(counts) > 1 or _ESCAPED_LETTER.search(text) is not None
