"""Writes and reads the wire format of protobuf, as far as OTLP needs it."""

from __future__ import annotations

from typing import Final, TypeAlias

Field: TypeAlias = int | bytes

VARINT: Final = 0
FIXED64: Final = 1
CHUNK: Final = 2
"""Wire types. A chunk is a text or a message, with its length before it."""

_FIXED32: Final = 5
_MAX_VARINT_BYTES: Final = 10


def varint(number: int) -> bytes:
    """A number from 0 to 2^64 - 1: seven bits a byte, the lowest first."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


_LENGTHS: Final = [varint(length) for length in range(16_384)]


def tag(number: int, wire_type: int) -> bytes:
    """What comes before the value of a field of a message."""
    return varint(number << 3 | wire_type)


def chunk(tag: bytes, content: bytes) -> bytes:
    """A field of the wire type `CHUNK`."""
    length = len(content)
    return tag + (_LENGTHS[length] if length < len(_LENGTHS) else varint(length)) + content


def read_message(message: bytes) -> dict[int, Field]:
    """The last value of each field of a message, by its number.

    Raises:
        ValueError: it is not a message of protobuf.
    """
    fields: dict[int, Field] = {}
    position = 0
    while position < len(message):
        key, position = _read_varint(message, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == VARINT:
            fields[number], position = _read_varint(message, position)
            continue
        if wire_type == CHUNK:
            length, position = _read_varint(message, position)
        elif wire_type in {FIXED64, _FIXED32}:
            length = 8 if wire_type == FIXED64 else 4
        else:
            raise ValueError(f"unknown wire type {wire_type}")
        if position + length > len(message):
            raise ValueError("the message is cut")
        fields[number] = message[position : position + length]
        position += length
    return fields


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    number = 0
    for place, byte in enumerate(message[position : position + _MAX_VARINT_BYTES]):
        number |= (byte & 127) << 7 * place
        position += 1
        if byte < 128:
            return number, position
    raise ValueError("the message is cut")
