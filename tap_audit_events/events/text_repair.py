"""Repairs what no loader can store: NUL, lone surrogates, surrogates encoded in UTF-8."""

from __future__ import annotations

import codecs
import re
from typing import Final

_REPLACEMENT: Final = rb"\ufffd"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_CHUNK_BYTES: Final = 1 << 16
"""Text is checked in chunks that fit into a processor's cache."""

_POSSIBLY_UNSTORABLE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_U = ord("u")
_FEW_ESCAPES: Final = 2000
"""A page with at most so many escapes is searched escape by escape, which is faster."""

_UNSTORABLE = re.compile(
    rb"\\(?:u(?:0000|[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])"  # NUL, a high one without a low one
    rb"|(?<!\\u[dD][89abAB]..\\u[dD])[c-fC-F]))"  # a low one without a high one
    rb"|\\u[dD])"  # an escaped backslash before text that only looks like an escape
)
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair, kept
    rb"|(\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2}))"  # NUL or a lone surrogate
    rb"|\\."  # any other escape, so that an escaped backslash does not start one
)


def storable(body: bytes) -> bytes:
    """The JSON text as UTF-8 in which NUL and lone surrogates are replaced by U+FFFD.

    A byte order mark is removed. Text that needs no repair is returned as it is.

    Raises:
        UnicodeDecodeError: the text is not UTF-8.
    """
    text = body.removeprefix(_BYTE_ORDER_MARK)
    if _is_utf8(text) and not (_may_be_unstorable(text) and _UNSTORABLE.search(text)):
        return text
    if not text.isascii():
        text = _joined_surrogates(text)
    repaired = bytearray(text)
    for match in _ESCAPE.finditer(text):
        if match[1]:
            repaired[match.start() : match.end()] = _REPLACEMENT  # of the same length
    return bytes(repaired)


def may_be_repaired(text: str) -> bool:
    """Whether a string of a repaired text may have been another one before."""
    return "\ufffd" in text


def is_storable(text: str) -> bool:
    """Whether a string has neither NUL nor a lone surrogate."""
    try:
        text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return False
    return "\0" not in text


def _is_utf8(text: bytes) -> bool:
    view, start = memoryview(text), 0
    try:
        while start < len(text):
            end = start + _CHUNK_BYTES
            start += codecs.utf_8_decode(view[start:end], "strict", end >= len(text))[1]
    except UnicodeDecodeError:
        return False
    return True


def _may_be_unstorable(text: bytes) -> bool:
    """Whether some escape begins like NUL or a surrogate; it may also be half of an emoji."""
    find, end = text.find, len(text) - 1
    at = find(b"\\", 0, end)
    for _ in range(_FEW_ESCAPES):
        if at < 0:
            return False
        if text[at + 1] == _U and _POSSIBLY_UNSTORABLE.match(text, at):
            return True
        at = find(b"\\", at + 2, end)
    return at >= 0 and _POSSIBLY_UNSTORABLE.search(text, at) is not None


def _joined_surrogates(text: bytes) -> bytes:
    """UTF-8 in which encoded surrogate pairs are joined and lone ones replaced."""
    characters = text.decode("utf-8", "surrogatepass")
    return characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
