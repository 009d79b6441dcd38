"""Finds the events of a body by its brackets: it need not be JSON, and may be nested deeply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from tap_audit_events.events.envelope import MAX_EVENTS
from tap_audit_events.events.text_repair import storable

_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_TOKEN = re.compile(_STRING + rb'|["\[\]{},]', re.DOTALL)
_strings_in = re.compile(_STRING, re.DOTALL)
_BRACES_TO_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_ENDS_OF_EVENTS: Final = ((1, b"]"), (2, b","))
"""The tokens after an event, each with the number of brackets around it."""

_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
_check = msgspec.json.Decoder(msgspec.Raw).decode


def split_events(body: bytes) -> list[slice] | None:
    """Where the texts of the events are, whatever is inside of them.

    None if the body does not begin and end as an envelope does, for example because it was cut; or
    if it has no list of events, or too many of them.
    """
    events: list[slice] | None = None
    name, start = b"", None
    for depth, token in _tokens(body) if _START.match(body) else ():
        text = token[0]
        if events is None and (depth, text, name) == (1, b"[", b'"auditEvents"'):
            events, start = [], token.end()
        elif events is not None and start is not None and (depth, text) in _ENDS_OF_EVENTS:
            events.append(_trimmed(body, start, token.start()))
            start = token.end() if text == b"," else None
        elif (depth, text) == (0, b"}"):
            if body[token.end() :].strip():
                return None
            return [] if [body[each] for each in events or ()] == [b""] else events
        if len(events or ()) > MAX_EVENTS:
            return None
        name = text if depth == 1 else name
    return None


def is_deeper_than(levels: int, event: bytes) -> bool:
    """Whether objects and lists are inside each other more than so many levels deep.

    Args:
        levels: the number of levels.
        event: the text of an event, with an end for each of its objects and lists.
    """
    if event.count(b"{") + event.count(b"[") <= levels:
        return False
    brackets = _strings_in.sub(b"", event).translate(_BRACES_TO_BRACKETS, _NO_BRACKETS)
    for _ in range(levels):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")  # takes the innermost level away
    return bool(brackets)


def _trimmed(body: bytes, start: int, end: int) -> slice:
    text = body[start:end]
    end -= len(text) - len(text.rstrip())
    return slice(min(end, start + len(text) - len(text.lstrip())), end)


def _tokens(text: bytes) -> Iterator[tuple[int, re.Match[bytes]]]:
    """Each string and structural character, with the number of brackets around it."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] == b'"':  # a string without an end
            return
        depth -= token[0] in b"]}"
        yield depth, token
        depth += token[0] in b"[{"


def check_json(event: bytes) -> None:
    """Raise an error if the text of an event is not JSON.

    Raises:
        msgspec.DecodeError: it is not JSON.
        UnicodeDecodeError: it is not UTF-8.
        RecursionError: it is nested too deeply.
    """
    _check(storable(event))
