"""Splits an event into the fields that are known, with values that fit, and all others."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, TypeAlias

import msgspec

from tap_audit_events.events.exact_json import JsonText, decode_fields

Fields: TypeAlias = dict[str, Any]
"""The JSON text of each field; of the fields of a part that is an object, in a dictionary."""


def split_fields(
    event: JsonText, parts: Container[str], fits: Callable[[tuple[str, ...], msgspec.Raw], bool]
) -> tuple[Fields, Fields]:
    """The fields of an event that fit, and the others.

    Args:
        event: its JSON text.
        parts: the names of its parts, such as ``actor``. One that is no object is among the others.
        fits: whether a field is known and its value fits; its path is like ``("actor", "id")``.
    """
    known: Fields = {}
    other: Fields = {}
    for name, value in decode_fields(event).items():
        if name not in parts:
            (known if fits((name,), value) else other)[name] = value
        elif (fields := _object_or_none(value)) is None:
            other[name] = value
        else:
            known[name] = {
                each: inner for each, inner in fields.items() if fits((name, each), inner)
            }
            if rest := {each: fields[each] for each in fields if each not in known[name]}:
                other[name] = rest
    return known, other


def _object_or_none(value: msgspec.Raw) -> dict[str, msgspec.Raw] | None:
    try:
        return decode_fields(value)
    except msgspec.ValidationError:
        return None
