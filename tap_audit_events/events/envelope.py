"""The envelope of a response (interface.md 2.7): each event's bytes, and the next cursor."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import msgspec

from tap_audit_events.errors.exceptions import service_error

MAX_EVENTS: Final = 1000
"""Maximum number of events in a page: more cannot be requested (interface.md, section 8)."""

_EVENTS, _CURSOR = "auditEvents", "nextCursor"
_ENVELOPE_BYTES: Final = len('{"auditEvents":[],"nextCursor":""}')

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
    if len(text) <= explained:
        return  # there is no room for another key that would hide something
    counts = _count_keys(text)
    for name in (_EVENTS, _CURSOR):
        if counts[name] > 1:
            raise service_error("AE-ENVELOPE", details=f"it contains {name} more than once")


def _count_keys(text: bytes) -> Counter[str]:
    """How often each key occurs in the envelope itself; keys inside of events do not count."""
    counts: Counter[str] = Counter()

    def note(_: type, name: str) -> _Name:
        if name in (_EVENTS, _CURSOR):
            counts[name] += 1
        return _Name()

    msgspec.json.Decoder(dict[_Name, msgspec.Raw], dec_hook=note).decode(text)
    return counts


class _Name:
    """A name in an object. All names are equal, so that a dictionary keeps only one value."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Name)

    def __hash__(self) -> int:
        return 0
