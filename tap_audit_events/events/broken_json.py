"""Finds the events of a body that is complete but not JSON, such as one with NaN in an event."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from tap_audit_events.events.envelope import MAX_EVENTS
from tap_audit_events.events.text_repair import storable

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{},]', re.DOTALL)
_ENDS_OF_EVENTS: Final = ((1, b"]"), (2, b","))
"""The tokens after an event, each with the number of brackets around it."""

_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
_check = msgspec.json.Decoder(msgspec.Raw).decode


def split_events(body: bytes) -> list[bytes] | None:
    """The texts of the events, whatever is inside of them.

    None if the body does not begin and end as an envelope does, for example because it was cut; or
    if it has no list of events, or too many of them.
    """
    events: list[bytes] | None = None
    name, start = b"", None
    for depth, token in _tokens(body):
        text = token[0]
        if events is None and (depth, text, name) == (1, b"[", b'"auditEvents"'):
            events, start = [], token.end()
        elif events is not None and start is not None and (depth, text) in _ENDS_OF_EVENTS:
            events.append(body[start : token.start()].strip())
            start = token.end() if text == b"," else None
        elif (depth, text) == (0, b"}"):
            if body[token.end() :].strip():
                return None
            return [] if events == [b""] else events
        if len(events or ()) > MAX_EVENTS:
            return None
        name = text if depth == 1 else name
    return None


def _tokens(body: bytes) -> Iterator[tuple[int, re.Match[bytes]]]:
    """Each string and structural character of an object, with the number of brackets around it."""
    depth = 0
    for token in _TOKEN.finditer(body) if _START.match(body) else ():
        if token[0] == b'"':  # a string without an end
            return
        depth -= token[0] in b"]}"
        yield depth, token
        depth += token[0] in b"[{"


def problem_of(event: bytes) -> str | None:
    """Why the text of an event is not JSON; None if it is."""
    try:
        _check(storable(event))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return str(error)
    return None
