"""Turns the body of a response into a page: ids, instants, and each event's own bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Final, cast

import msgspec

from tap_audit_events.errors.exceptions import (
    ServiceError,
    sanitize,
    sanitize_body,
    sanitize_start,
    service_error,
)
from tap_audit_events.events.broken_json import problem_of, split_events
from tap_audit_events.events.envelope import check_keys_come_once, has_events, read_envelope
from tap_audit_events.events.exact_json import JsonText, decode_fields, encode, excerpt
from tap_audit_events.events.instants import Instant, utc_instants, utc_text
from tap_audit_events.events.text_repair import storable, with_marks

MAX_ID_LENGTH: Final = 1000
"""In characters. A run holds up to 100,000 ids, to recognize repeated events."""

MAX_TIME_LENGTH: Final = 100
"""In characters: a fraction may have about 80 digits."""

MAX_EVENT_BYTES: Final = 8_000_000
"""As Python objects, which stream maps need, an event may take thirty times as much memory."""

_LINE_BREAKS_TO_SPACES: Final = bytes.maketrans(b"\n\r", b"  ")


class _Keys(msgspec.Struct, gc=False):
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_LENGTH)]
    occurredAt: Annotated[str, msgspec.Meta(max_length=MAX_TIME_LENGTH)]  # noqa: N815 - its name


_decode_keys = msgspec.json.Decoder(_Keys).decode


@dataclass(frozen=True)
class Page:
    """The events of one response (interface.md 2.7) as columns of equal length.

    Attributes:
        ids: the events' ids, in the service's order.
        instants: the events' times.
        texts: each event's JSON text as it is written: on one line, storable, its time in UTC
            form, every other value in the service's own bytes.
        next_cursor: position of the next page, None if no more events remain.
        malformed: the error of the first event that cannot be used; the columns end before it.
        size: bytes of the response's body.
        has_empty_cursor: whether the service sent ``"nextCursor": ""``, which counts as none.
    """

    ids: Sequence[str] = ()
    instants: Sequence[Instant] = ()
    texts: Sequence[JsonText] = ()
    next_cursor: str | None = None
    malformed: ServiceError | None = None
    size: int = 0
    has_empty_cursor: bool = False

    @cached_property
    def sorted_instants(self) -> list[Instant]:
        return sorted(self.instants)

    @cached_property
    def is_ascending(self) -> bool:
        return self.sorted_instants == list(self.instants)

    @property
    def oldest(self) -> Instant:
        """The earliest time of its events; the page must not be empty."""
        return self.sorted_instants[0]

    @property
    def newest(self) -> Instant:
        """The latest time of its events; the page must not be empty."""
        return self.sorted_instants[-1]


def parse_page(body: bytes) -> Page:
    """Read the body of a response with status 200.

    Raises:
        RetryableError: the body does not come from the service, or was cut.
        ContractError: the body comes from the service, but is not an envelope, has too many events,
            or is nested too deeply to be read.
    """
    try:
        text = storable(body)
        events, cursor = read_envelope(text)
        check_keys_come_once(text, events, cursor)
        page = _read_columns(text, events, cursor)
        return page if text is body else _with_original_keys(page, body)
    except msgspec.ValidationError as error:
        if not has_events(body):
            raise _not_from_the_service(body) from None
        details = f"{sanitize(error)}; it begins {sanitize_start(body)}"
        raise service_error("AE-ENVELOPE", details=details) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _page_of_broken_json(body, error)
    except RecursionError:
        raise service_error("AE-NESTING") from None


def _page_of_broken_json(body: bytes, error: Exception) -> Page:
    """The page that ends before the first event that is not JSON; raises if there is no such event.

    If the body is complete, the service would send the same one again.
    """
    events = split_events(body)
    for position, text in enumerate(events or ()):
        if (problem := problem_of(text)) is None:
            continue
        before = parse_page(b'{"auditEvents":[%b]}' % b",".join((events or [])[:position]))
        details = f"event {position + 1} of the page is not JSON: {problem}: {excerpt(text)}"
        malformed = before.malformed or service_error("AE-EVENT", details=details)
        return replace(before, malformed=malformed, size=len(body))
    details = f"{error}; it begins {sanitize_start(body, 80)}"
    if events is not None:
        details = f"outside of its events it is not JSON: {details}"
        raise service_error("AE-ENVELOPE", details=details) from None
    if body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in (b"{", b""):
        raise _not_from_the_service(body) from None
    raise service_error("AE-NO-JSON", details=details) from None


def _not_from_the_service(body: bytes) -> ServiceError:
    return service_error("AE-GATEWAY", details=f"status 200, {sanitize_body(body)}")


def _with_original_keys(page: Page, body: bytes) -> Page:
    """The page of a repaired body, with the original cursor; the page ends before a repaired id.

    A cursor is opaque, and a repaired id might equal another event's.
    """
    if not any("\ufffd" in each for each in (page.next_cursor or "", *page.ids)):
        return page
    events, cursor = read_envelope(with_marks(body))
    if (cursor or "").replace("\0", "\ufffd") != (page.next_cursor or ""):
        raise service_error("AE-ENVELOPE", details="nextCursor is not Unicode text")
    page = replace(page, next_cursor=cursor or None)
    for position, event_id in enumerate(page.ids):
        if _decode_keys(events[position]).id != event_id:
            return _before_repaired_id(page, position)
    return page


def _before_repaired_id(page: Page, position: int) -> Page:
    problem = (
        f"its id {sanitize(page.ids[position])}, with U+FFFD for NUL or a lone surrogate,"
        " cannot be stored as it is"
    )
    return replace(
        page,
        ids=page.ids[:position],
        instants=page.instants[:position],
        texts=page.texts[:position],
        malformed=service_error("AE-EVENT", details=f"event {position + 1} of the page: {problem}"),
    )


def _read_columns(body: bytes, events: list[msgspec.Raw], cursor: str | None) -> Page:
    texts: Sequence[JsonText] = events
    malformed: ServiceError | None = None
    if b"\n" in body or b"\r" in body:  # between tokens: inside of strings they are escaped
        texts = [bytes(text).translate(_LINE_BREAKS_TO_SPACES) for text in texts]
    try:
        keys = list(map(_decode_keys, texts))
        ids, instants = [each.id for each in keys], utc_instants([each.occurredAt for each in keys])
        longest = max(map(len, texts), default=0)
        if instants is None or longest > MAX_EVENT_BYTES:
            raise ValueError
    except ValueError:  # also msgspec's own errors
        ids, instants, texts, malformed = _columns_one_by_one(texts)
    return Page(
        ids,
        instants,
        texts,
        next_cursor=cursor or None,
        malformed=malformed,
        size=len(body),
        has_empty_cursor=cursor == "",
    )


def _columns_one_by_one(
    texts: Sequence[JsonText],
) -> tuple[list[str], list[Instant], list[JsonText], ServiceError | None]:
    """The columns before the first event that cannot be used, and its error, if there is one."""
    ids: list[str] = []
    forms: list[str] = []
    usable: list[JsonText] = []
    malformed = None
    for position, text in enumerate(texts):
        code = "AE-EVENT"
        try:
            if len(text) > MAX_EVENT_BYTES:
                code = "AE-EVENT-SIZE"
                raise ValueError(f"it has {len(text):,} bytes; the most is {MAX_EVENT_BYTES:,}")
            keys = _decode_keys(text)
            form = _utc_form(keys.occurredAt)
        except ValueError as error:
            malformed = service_error(
                code, details=f"event {position + 1} of the page: {error}: {excerpt(text)}"
            )
            break
        ids.append(keys.id)
        forms.append(form)
        usable.append(_with_time(text, keys.occurredAt, form))
    instants = cast("list[Instant]", utc_instants(forms))  # each is in UTC form now
    return ids, instants, usable, malformed


def _utc_form(time: str) -> str:
    try:
        return utc_text(time)
    except ValueError as error:
        raise ValueError(f"occurredAt {error}") from None


def _with_time(text: JsonText, time: str, form: str) -> JsonText:
    """The event with its time in another form; the same text if it has that form."""
    return text if form == time else encode({**decode_fields(text), "occurredAt": form})
