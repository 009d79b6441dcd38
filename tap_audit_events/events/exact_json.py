"""Converts JSON to Python and back, and keeps every digit of every number."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from tap_audit_events.errors.exceptions import sanitize_start, service_error

JsonText: TypeAlias = msgspec.Raw | bytes
"""The JSON text of one event."""

_Decoded = TypeVar("_Decoded")

_MAX_INTEGER_DIGITS: Final = 4000
"""Maximum number of digits given to `int`; Python's own limit is 4,300."""


class HugeNumber(str):
    """The text of a number whose exponent is beyond what `Decimal` can hold.

    `encode` writes it as a number.
    """

    __slots__ = ()


def read_record(text: JsonText) -> dict[str, Any]:
    """An event as a dictionary with every digit; `ContractError` if it is nested too deeply."""
    return decode_with(_read_exactly, text)


def decode_with(decode: Callable[[JsonText], _Decoded], text: JsonText) -> _Decoded:
    """Decode an event's JSON text with a function such as a decoder of msgspec.

    Raises:
        ContractError: the text is nested too deeply; the limit depends on the depth of the stack.
        msgspec.ValidationError: the text does not fit the decoder.
    """
    try:
        return decode(text)
    except RecursionError:
        raise service_error("AE-NESTING", details=excerpt(text)) from None


def excerpt(text: JsonText) -> str:
    """The start of an event's JSON text, for a message."""
    return sanitize_start(memoryview(text))


def _read_exactly(text: JsonText) -> Any:
    try:
        return _decode(text)
    except msgspec.ValidationError:  # a number that msgspec does not read
        return json.loads(bytes(text), parse_int=_exact_integer, parse_float=_exact_decimal)


def _exact_integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _MAX_INTEGER_DIGITS else Decimal(text)


def _exact_decimal(text: str) -> Decimal | HugeNumber:
    try:
        return Decimal(text)
    except InvalidOperation:
        return HugeNumber(text)


def _encode_huge_number(value: object) -> msgspec.Raw:
    if isinstance(value, HugeNumber):
        return msgspec.Raw(value.encode())
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
"""Decodes an object into its names and the JSON text of each value."""

_decode = msgspec.json.Decoder(dict[str, Any], float_hook=_exact_decimal).decode
encode = msgspec.json.Encoder(decimal_format="number", enc_hook=_encode_huge_number).encode
"""Encodes a record that `read_record` returned."""
