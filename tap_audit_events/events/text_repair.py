"""Repairs what no loader can store: NUL, lone surrogates, surrogates encoded in UTF-8."""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterator
from typing import Final

_REPLACEMENT: Final = "\ufffd"
_MARK: Final = "\ufffe"
_NUL: Final = b"0000"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_CHUNK_BYTES: Final = 1 << 16
"""Text is decoded in chunks that fit into a processor's cache. The characters of a whole body could
take four times its size. With chunks of 16 KiB, a run with eight requests in flight took 172 MiB
instead of 135: the C library gives memory back only when larger pieces of it become free."""

_MAY_BE_UNSTORABLE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")  # NUL, any surrogate
_ESCAPE = re.compile(
    rb"\\(?<!\\\\)(?:\\\\)*+"  # an odd number of backslashes, so that the last one starts an escape
    rb"u(?:[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]"  # a pair, kept
    rb"|(0000|[dD][89a-fA-F][0-9a-fA-F]{2}))"  # NUL or a lone surrogate
)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def storable(body: bytes) -> bytes:
    """The JSON text as UTF-8 in which NUL and lone surrogates are replaced by U+FFFD.

    A byte order mark is removed. Text that needs no repair is returned as it is: with surrogates in
    pairs, for example, or with an escaped backslash before ``u0000``.

    Raises:
        UnicodeDecodeError: the text is not UTF-8.
    """
    text = body.removeprefix(_BYTE_ORDER_MARK)
    if _is_utf8(text) and not _MAY_BE_UNSTORABLE.search(text):
        return text
    repaired = _repaired(text, _REPLACEMENT)
    return text if repaired == text else repaired


def with_marks(body: bytes) -> bytes:
    """As `storable`, but NUL stays, and U+FFFE replaces lone surrogates.

    The two functions return different texts for a string that needs repair.
    """
    return _repaired(body.removeprefix(_BYTE_ORDER_MARK), _MARK, kept=_NUL)


def _repaired(text: bytes, replacement: str, kept: bytes = b"") -> bytes:
    """The text with `replacement` for what cannot be stored, except for the escape of `kept`."""
    if not text.isascii():
        text = _joined_surrogates(text, replacement)
    repaired, digits = bytearray(text), b"%04x" % ord(replacement)
    for match in _ESCAPE.finditer(text):
        if match[1] and match[1] != kept:
            repaired[match.start(1) : match.end(1)] = digits
    return bytes(repaired)


def _is_utf8(text: bytes) -> bool:
    try:
        # A loop would hold two chunks at a time, so that each would need newly allocated memory.
        deque(_decoded(text, "strict"), maxlen=0)
    except UnicodeDecodeError:
        return False
    return True


def _joined_surrogates(text: bytes, replacement: str) -> bytes:
    """UTF-8 in which encoded surrogate pairs are joined and lone ones replaced."""
    joining = codecs.getincrementaldecoder("utf-16-le")("surrogatepass")  # holds half a pair back
    joined = bytearray()
    for chunk in _decoded(text, "surrogatepass"):
        characters = joining.decode(chunk.encode("utf-16-le", "surrogatepass"))
        joined += _LONE_SURROGATE.sub(replacement, characters).encode()
    joined += _LONE_SURROGATE.sub(replacement, joining.decode(b"", final=True)).encode()
    return bytes(joined)


def _decoded(text: bytes, errors: str) -> Iterator[str]:
    """The characters of UTF-8, a chunk at a time."""
    view, start = memoryview(text), 0
    while start < len(text):
        end = start + _CHUNK_BYTES
        try:
            chunk, count = codecs.utf_8_decode(view[start:end], errors, end >= len(text))
        except UnicodeDecodeError as error:
            error.object, error.start, error.end = text, start + error.start, start + error.end
            raise
        yield chunk
        del chunk
        start += count
