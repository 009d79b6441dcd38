"""A page's bytes become events: id, instant, and the event's own bytes."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, TypeAlias

import msgspec

from tap_audit_events.errors.exceptions import ServiceError, sanitize, service_error
from tap_audit_events.events.instants import Instant, parse_instant, utc_instants, utc_text

_REPLACEMENT = rb"\ufffd"
_HINT_OF_UNSTORABLE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_U = ord("u")
_FEW_ESCAPES = 2000
"""So many are looked at one by one, which is quicker than to search a page that has no more."""
_SUSPECT = re.compile(
    rb"\\(?:u(?:0000|[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])"  # NUL, a high one without a low one
    rb"|(?<!\\u[dD][89abAB]..\\u[dD])[c-fC-F]))"  # a low one without a high one
    rb"|\\u[dD])"  # an escaped backslash before what only looks like one
)
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair, kept
    rb"|(\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2}))"  # NUL or a lone surrogate
    rb"|\\."  # any other escape, so that an escaped backslash is not read as the start of one
)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_INTEGER = 4000
"""Digits of an integer that Python and msgspec read without a limit of theirs."""
_PIECE = 1 << 16
_LINE_BREAKS_TO_SPACES = bytes.maketrans(b"\n\r", b"  ")

Text: TypeAlias = msgspec.Raw | bytes
"""The JSON of one event."""


class _Keys(msgspec.Struct, gc=False):
    id: Annotated[str, msgspec.Meta(min_length=1)]
    occurredAt: str  # noqa: N815 - the field's name


class _Envelope(msgspec.Struct, gc=False):
    auditEvents: list[msgspec.Raw]  # noqa: N815 - the field's name
    nextCursor: str | None = None  # noqa: N815 - the field's name


class _KeysEnvelope(msgspec.Struct, gc=False):
    auditEvents: list[_Keys]  # noqa: N815 - the field's name


_read_envelope = msgspec.json.Decoder(_Envelope).decode
_read_all_keys = msgspec.json.Decoder(_KeysEnvelope).decode
_read_keys = msgspec.json.Decoder(_Keys).decode
_id_of, _time_of = attrgetter("id"), attrgetter("occurredAt")


@dataclass(frozen=True, slots=True)
class Envelope:
    """The body of a response, split into its events (interface.md 2.7).

    Attributes:
        body: the body in UTF-8, without what no loader can store.
        texts: each event's bytes in it.
        next_cursor: position of the next page, None where no more events remain.
        is_next_asked: whether the next page is on its way already.
    """

    body: bytes
    texts: list[msgspec.Raw]
    next_cursor: str | None
    is_next_asked: bool = False

    @property
    def without_events(self) -> Envelope:
        """What it says about the next page, which is little and can be kept."""
        return Envelope(b"", [], self.next_cursor, self.is_next_asked)


@dataclass(frozen=True)
class Page:
    """The events of one response as three columns of equal length, in the service's order.

    Attributes:
        ids: the events' ids.
        instants: the events' times.
        texts: each event's JSON, ready to leave: one line, storable, its time in UTC form, else
            the bytes that came.
        malformed: the error of the first event that cannot be used; the columns end before it.
        is_last: whether no more events remain after it.
        size: bytes of the response's body.
        is_next_asked: whether the page after it is on its way already.
    """

    ids: Sequence[str]
    instants: Sequence[Instant]
    texts: Sequence[Text]
    malformed: ServiceError | None = None
    is_last: bool = True
    size: int = 0
    is_next_asked: bool = False

    @cached_property
    def ascending(self) -> list[Instant]:
        """The events' times, the oldest first."""
        return sorted(self.instants)

    @cached_property
    def is_ascending(self) -> bool:
        """Whether the events came in that order."""
        return self.ascending == list(self.instants)

    @property
    def oldest(self) -> Instant | None:
        """The first instant of its events, None where it has none."""
        return self.ascending[0] if self.ascending else None

    @property
    def newest(self) -> Instant | None:
        """The last instant of its events, None where it has none."""
        return self.ascending[-1] if self.ascending else None


def split_page(body: bytes, *, is_next_asked: bool = False) -> Envelope:
    """Split the body of a response into its events, without looking into them.

    NUL and lone surrogates, which no loader can store, become U+FFFD.

    Args:
        body: all of it.
        is_next_asked: whether the next page is on its way already.

    Raises:
        RetryableError: the body is no JSON or not UTF-8, as when it was cut.
        ContractError: it is JSON, but not an envelope, or is nested too deep to be read.
    """
    text = _storable(body)
    try:
        envelope = _read_envelope(text)
        cursor = envelope.nextCursor if text is body else _cursor_as_sent(body)
    except msgspec.ValidationError as error:
        raise service_error("AE-ENVELOPE", details=sanitize(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise service_error("AE-NO-JSON", details=f"{error}; it begins {_start(body)}") from None
    except RecursionError:
        raise service_error("AE-NESTING") from None
    if cursor is not None and not _is_usable_cursor(cursor):
        raise service_error("AE-ENVELOPE", details="nextCursor is empty or no Unicode text")
    return Envelope(text, envelope.auditEvents, cursor, is_next_asked)


def read_page(envelope: Envelope) -> Page:
    """Read the ids and times of an envelope's events.

    Raises:
        ContractError: it is nested too deep to be read here: a thread that is itself in deeper
            calls bears less than the one that split the page.
    """
    try:
        return _read_columns(envelope)
    except RecursionError:
        raise service_error("AE-NESTING") from None


def _read_columns(envelope: Envelope) -> Page:
    texts: Sequence[Text] = envelope.texts
    malformed: ServiceError | None = None
    if b"\n" in envelope.body or b"\r" in envelope.body:
        # In JSON that has been read these are white space: inside of a text they are escaped.
        texts = [bytes(text).translate(_LINE_BREAKS_TO_SPACES) for text in texts]
    try:
        keys = _read_all_keys(envelope.body).auditEvents
        ids, times = list(map(_id_of, keys)), list(map(_time_of, keys))
        instants = utc_instants(times)
        if instants is None:
            forms = list(map(_utc_form, times))
            instants = list(map(parse_instant, forms))
            texts = list(map(_with_time, texts, times, forms))
    except (msgspec.ValidationError, ValueError):
        ids, instants, texts, malformed = _up_to_malformed(texts)
    return Page(
        ids,
        instants,
        texts,
        malformed,
        is_last=envelope.next_cursor is None,
        size=len(envelope.body),
        is_next_asked=envelope.is_next_asked,
    )


def read_record(text: Text) -> dict[str, Any]:
    """An event's text as a dictionary that holds every digit.

    Raises:
        ContractError: it is nested too deep to be read.
    """
    try:
        return _read_exact_record(text)
    except RecursionError:
        raise service_error("AE-NESTING", details=sanitize(bytes(text).decode())) from None


def _read_exact_record(text: Text) -> dict[str, Any]:
    try:
        return _read_exact(text)
    except msgspec.ValidationError:  # a number that msgspec does not take
        record: dict[str, Any] = json.loads(
            bytes(text), parse_int=_exact_integer, parse_float=_exact_decimal
        )
        return record


def _utc_form(time: str) -> str:
    try:
        return utc_text(time)
    except ValueError as error:
        raise ValueError(f"occurredAt {error}") from None


def _with_time(text: Text, time: str, form: str) -> Text:
    """The event with its time in another form; the same text where it has that form."""
    if form == time:
        return text
    there, wanted = b'"%b"' % time.encode(), b'"%b"' % form.encode()
    if (was := bytes(text)).count(there) == 1:
        changed = was.replace(there, wanted)
        if _read_keys(changed).occurredAt == form:
            return changed
    return encode(read_record(text) | {"occurredAt": form})


def _up_to_malformed(
    texts: Sequence[Text],
) -> tuple[list[str], list[Instant], list[Text], ServiceError | None]:
    """The columns before the first event that cannot be used, and its error."""
    ids: list[str] = []
    instants: list[Instant] = []
    usable: list[Text] = []
    malformed = None
    for position, text in enumerate(texts):
        try:
            keys = _read_keys(text)
            form = _utc_form(keys.occurredAt)
        except (msgspec.ValidationError, ValueError) as error:
            malformed = _malformed(position, text, error)
            break
        ids.append(keys.id)
        instants.append(parse_instant(form))
        usable.append(_with_time(text, keys.occurredAt, form))
    return ids, instants, usable, malformed


def _malformed(position: int, text: Text, error: Exception) -> ServiceError:
    return service_error(
        "AE-EVENT",
        details=f"event {position + 1} of the page: {error}: {sanitize(bytes(text).decode())}",
    )


def _storable(body: bytes) -> bytes:
    """The body as UTF-8 without NUL and lone surrogates; the same object where there are none."""
    text = body.removeprefix(_BYTE_ORDER_MARK)
    if _is_utf8_and_plain(text):
        return text
    if not text.isascii():
        text = _mended_utf8(text)
    return _ESCAPE.sub(lambda match: _REPLACEMENT if match[1] else match[0], text)


def _is_utf8_and_plain(text: bytes) -> bool:
    """Whether it is valid and nothing in it is what no loader can store.

    A hint at that may be an emoji of a service that escapes all but ASCII: then it is looked at
    closer.
    """
    return _is_utf8(text) and not (_holds_hint(text) and _SUSPECT.search(text))


def _is_utf8(text: bytes) -> bool:
    """Piece by piece, for a whole page does not fit into a processor's cache."""
    view, start = memoryview(text), 0
    try:
        while start < len(text):
            end = start + _PIECE
            start += codecs.utf_8_decode(view[start:end], "strict", end >= len(text))[1]
    except UnicodeDecodeError:
        return False
    return True


def _holds_hint(text: bytes) -> bool:
    """Whether an escape in it begins like one of NUL or of a surrogate."""
    find, end = text.find, len(text) - 1
    at = find(b"\\", 0, end)
    for _ in range(_FEW_ESCAPES):
        if at < 0:
            return False
        if text[at + 1] == _U and _HINT_OF_UNSTORABLE.match(text, at):
            return True
        at = find(b"\\", at + 2, end)
    return at >= 0 and _HINT_OF_UNSTORABLE.search(text, at) is not None


def _mended_utf8(text: bytes) -> bytes:
    """UTF-8 with lone surrogates replaced and encoded pairs joined.

    Raises:
        RetryableError: it is not UTF-8 even so.
    """
    try:
        characters = text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise service_error("AE-NO-JSON", details=f"{error}; it begins {_start(text)}") from None
    return characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _cursor_as_sent(body: bytes) -> str | None:
    """A cursor is opaque: where the page had to be changed, it is read from the original body."""
    text = body.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "surrogatepass")
    envelope = json.loads(text, parse_int=str, parse_float=str)
    cursor: str | None = envelope.get("nextCursor")
    return cursor


def _is_usable_cursor(cursor: str) -> bool:
    try:
        return bool(cursor.encode())
    except UnicodeEncodeError:  # a lone surrogate, which no address can hold
        return False


def _exact_integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _LONGEST_INTEGER else Decimal(text)


def _exact_decimal(text: str) -> Decimal | msgspec.Raw:
    """A decimal of any length; its own text where its exponent is beyond what `Decimal` holds."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return msgspec.Raw(text.encode())


_read_exact = msgspec.json.Decoder(dict[str, Any], float_hook=_exact_decimal).decode
encode = msgspec.json.Encoder(decimal_format="number").encode
"""Encode what `read_record` gave, every digit of its numbers kept."""


def _start(body: bytes) -> str:
    return sanitize(body[:4000].decode("utf-8", "backslashreplace"), 80)
