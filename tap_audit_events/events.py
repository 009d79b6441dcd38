"""A page's bytes become events: id, instant, and the event's own bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from operator import attrgetter
from typing import Any

import msgspec

from tap_audit_events.errors import ServiceError, service_error, shown
from tap_audit_events.timestamps import Instant, parse_instant, utc_text

_REPLACEMENT = rb"\ufffd"
_HINT_OF_UNSTORABLE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair, kept
    rb"|(\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2}))"  # NUL or a lone surrogate
    rb"|\\."  # any other escape, so that an escaped backslash is not read as the start of one
)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_INTEGER = 4000
"""Digits of an integer that Python and msgspec read without a limit of theirs."""


class _Keys(msgspec.Struct):
    id: str
    occurredAt: str  # noqa: N815 - the field's name


class _Envelope(msgspec.Struct):
    auditEvents: list[msgspec.Raw]  # noqa: N815 - the field's name
    nextCursor: str | None = None  # noqa: N815 - the field's name


class _KeysEnvelope(msgspec.Struct):
    auditEvents: list[_Keys]  # noqa: N815 - the field's name


_read_envelope = msgspec.json.Decoder(_Envelope).decode
_read_all_keys = msgspec.json.Decoder(_KeysEnvelope).decode
_read_keys = msgspec.json.Decoder(_Keys).decode


@dataclass(frozen=True, slots=True)
class Page:
    """One response: its events as three columns of equal length, in the service's order.

    Attributes:
        ids: the events' ids.
        instants: the events' times.
        texts: each event's JSON, as the service sent it but for what no loader can store.
        next_cursor: position of the next page, None where no more events remain.
        malformed: the error of the first event that cannot be used; the columns end before it.
    """

    ids: Sequence[str]
    instants: Sequence[Instant]
    texts: Sequence[msgspec.Raw]
    next_cursor: str | None = None
    malformed: ServiceError | None = None


def read_page(body: bytes) -> Page:
    """Read the body of a response (interface.md 2.7).

    NUL and lone surrogates, which no loader can store, become U+FFFD.

    Raises:
        RetryableError: the body is no JSON or not UTF-8, as when it was cut.
        ContractError: it is JSON, but not an envelope, or is nested too deep to be read.
    """
    text = _storable(body)
    try:
        envelope = _read_envelope(text)
    except msgspec.ValidationError as error:
        raise service_error("envelope", details=shown(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise service_error("not JSON", details=f"{error}; it begins {_start(body)}") from None
    except RecursionError:
        raise service_error("nesting") from None
    cursor = envelope.nextCursor if text is body else _cursor_as_sent(body)
    if cursor == "":
        raise service_error("envelope", details="nextCursor is an empty text")
    return _page(text, envelope.auditEvents, cursor)


def read_record(text: msgspec.Raw) -> dict[str, Any]:
    """An event as a dictionary that holds every digit, its ``occurredAt`` in UTC form.

    Raises:
        ContractError: it is nested too deep to be read.
    """
    try:
        record = _read_exact_record(text)
    except RecursionError:
        raise service_error("nesting", details=shown(bytes(text).decode())) from None
    record["occurredAt"] = utc_text(record["occurredAt"])
    return record


def _read_exact_record(text: msgspec.Raw) -> dict[str, Any]:
    try:
        return _read_exact(text)
    except msgspec.ValidationError:  # a number that msgspec does not take
        record: dict[str, Any] = json.loads(
            bytes(text), parse_int=_exact_integer, parse_float=_exact_decimal
        )
        return record


def _page(text: bytes, texts: list[msgspec.Raw], cursor: str | None) -> Page:
    try:
        keys: Sequence[_Keys] = _read_all_keys(text).auditEvents
        ids, instants = _columns(keys)
    except (msgspec.ValidationError, ValueError):
        return _page_up_to_malformed(texts, cursor)
    return Page(ids, instants, texts, cursor)


def _columns(keys: Iterable[_Keys]) -> tuple[list[str], list[Instant]]:
    """The ids and instants of events; ValueError where one is not usable."""
    keys = list(keys)
    ids = list(map(attrgetter("id"), keys))
    if "" in ids:
        raise ValueError("id is an empty text")
    return ids, list(map(_instant, keys))


def _instant(key: _Keys) -> Instant:
    try:
        return parse_instant(key.occurredAt)
    except ValueError as error:
        raise ValueError(f"occurredAt {error}") from None


def _page_up_to_malformed(texts: list[msgspec.Raw], cursor: str | None) -> Page:
    ids: list[str] = []
    instants: list[Instant] = []
    malformed = None
    for text in texts:
        try:
            (event_id,), (instant,) = _columns([_read_keys(text)])
        except (msgspec.ValidationError, ValueError) as error:
            malformed = _malformed(len(ids), text, error)
            break
        ids.append(event_id)
        instants.append(instant)
    return Page(ids, instants, texts[: len(ids)], cursor, malformed)


def _malformed(position: int, text: msgspec.Raw, error: Exception) -> ServiceError:
    reason = str(error)
    return service_error(
        "event",
        details=f"event {position + 1} of the page: {reason}: {shown(bytes(text).decode())}",
    )


def _storable(body: bytes) -> bytes:
    """The body as UTF-8 without NUL and lone surrogates; the same object where there are none."""
    text = body.removeprefix(_BYTE_ORDER_MARK)
    if not text.isascii():
        text = _valid_utf8(text)
    if _HINT_OF_UNSTORABLE.search(text):
        text = _ESCAPE.sub(lambda match: _REPLACEMENT if match[1] else match[0], text)
    return body if text == body else text


def _valid_utf8(text: bytes) -> bytes:
    """UTF-8 with lone surrogates replaced and encoded pairs joined."""
    try:
        text.decode()
    except UnicodeDecodeError:
        pass
    else:
        return text
    try:
        characters = text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise service_error("not JSON", details=f"{error}; it begins {_start(text)}") from None
    return characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _cursor_as_sent(body: bytes) -> str | None:
    """A cursor is opaque: where the page had to be changed, it is read from the original body."""
    text = body.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "surrogatepass")
    envelope = json.loads(text, parse_int=str, parse_float=str)
    cursor: str | None = envelope.get("nextCursor")
    return cursor


def _exact_integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _LONGEST_INTEGER else Decimal(text)


def _exact_decimal(text: str) -> Decimal | msgspec.Raw:
    """A decimal of any length; its own text where its exponent is beyond what `Decimal` holds."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return msgspec.Raw(text.encode())


_read_exact = msgspec.json.Decoder(dict[str, Any], float_hook=_exact_decimal).decode


def _start(body: bytes) -> str:
    return shown(body[:80].decode("utf-8", "backslashreplace"))
