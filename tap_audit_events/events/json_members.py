"""Divides JSON text into the members of its outermost object or array.

Nothing inside them becomes a Python object, so that no text can take many times its own size.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN: Final = re.compile(_STRING + rb"|[][{},]", re.DOTALL)
_NAME: Final = re.compile(rb"(" + _STRING + rb")\s*+:\s*+", re.DOTALL)
_OPENING, _ENDING, _CLOSING = b"[{", b",]}", b"]}"


def array_members(text: bytes) -> Iterator[bytes]:
    """The text of each member of a valid JSON array, or ``"name": value`` of each in an object."""
    depth = start = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first in _OPENING:
            depth += 1
            start = token.end() if depth == 1 else start
            continue
        if depth == 1 and first in _ENDING:
            member = text[start : token.start()].strip()
            start = token.end()
            if member:
                yield member
        depth -= first in _CLOSING


def object_members(text: bytes) -> Iterator[tuple[str, bytes]]:
    """The name and the text of each value in a valid JSON object; a name may come repeatedly."""
    for member in array_members(text):
        name = _NAME.match(member)
        if name is not None:
            yield read_scalar(name[1]), member[name.end() :]


def read_scalar(text: bytes) -> Any:
    """A JSON string, number or literal; surrogates that are encoded in UTF-8 stay surrogates."""
    return json.loads(text.decode("utf-8", "surrogatepass"), strict=False)
