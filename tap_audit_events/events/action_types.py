"""Recognizes events by their action type, without decoding anything else of them."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from tap_audit_events.events.exact_json import JsonText, decode_with


class _Action(msgspec.Struct, gc=False):
    type: str


class _Event(msgspec.Struct, gc=False):
    action: _Action


_decode_event = msgspec.json.Decoder(_Event).decode


def has_action_type(text: JsonText, action_types: Collection[str]) -> bool:
    """Whether an event has one of these action types; not if its type is no text.

    `ContractError` if it is nested too deeply to be read.
    """
    try:
        return decode_with(_decode_event, text).action.type in action_types
    except msgspec.ValidationError:
        return False
