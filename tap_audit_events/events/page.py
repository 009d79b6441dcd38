"""Turns the body of a response into a page: ids, instants, and each event's own bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Final, NamedTuple, cast

import msgspec

from tap_audit_events.errors.exceptions import (
    ServiceError,
    sanitize,
    sanitize_body,
    sanitize_start,
    service_error,
)
from tap_audit_events.events.broken_json import check_json, is_deeper_than, split_events
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

MAX_LEVELS: Final = 200
"""How deep an event may be nested if unusable events are set aside: every face can read so many
levels. Otherwise the limit is that of the face, which ends the run."""

_NO_EVENT: Final = b"0"
"""Stands for an event that is not JSON, so that the rest of the body can be read."""

_LINE_BREAKS_TO_SPACES: Final = bytes.maketrans(b"\n\r", b"  ")


class _Keys(msgspec.Struct, gc=False):
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_LENGTH)]
    occurredAt: Annotated[str, msgspec.Meta(max_length=MAX_TIME_LENGTH)]  # noqa: N815 - its name


_decode_keys = msgspec.json.Decoder(_Keys).decode


class UnusableEvent(NamedTuple):
    """An event of a page that cannot be used.

    Attributes:
        position: its position on the page, counted from 0.
        text: the bytes that the service sent.
        error: why it cannot be used.
    """

    position: int
    text: bytes
    error: ServiceError


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
            None if such events are set aside.
        unusable: the events that are set aside, in the service's order.
        size: bytes of the response's body.
        has_empty_cursor: whether the service sent ``"nextCursor": ""``, which counts as none.
    """

    ids: Sequence[str] = ()
    instants: Sequence[Instant] = ()
    texts: Sequence[JsonText] = ()
    next_cursor: str | None = None
    malformed: ServiceError | None = None
    unusable: Sequence[UnusableEvent] = ()
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


def parse_page(body: bytes, *, sets_aside: bool = False) -> Page:
    """Read the body of a response with status 200.

    Args:
        body: the body.
        sets_aside: whether events that cannot be used are set aside, so that the page has all
            others. Otherwise the page ends before the first one.

    Raises:
        RetryableError: the body does not come from the service, or was cut.
        ContractError: the body comes from the service, but is not an envelope, has too many events,
            or is nested too deeply to be read.
    """
    page = _read_page(body, sets_aside=sets_aside)
    if not page.unusable:
        return page
    return _with_texts_as_sent(page, body) if sets_aside else _before_unusable(page)


def _before_unusable(page: Page) -> Page:
    """The page that ends before its first event that cannot be used."""
    count, _, error = page.unusable[0]
    return replace(
        page,
        ids=page.ids[:count],
        instants=page.instants[:count],
        texts=page.texts[:count],
        malformed=error,
        unusable=(),
    )


def _with_texts_as_sent(page: Page, body: bytes) -> Page:
    """The page with the unusable events as they were before the body was repaired."""
    events = split_events(body)
    if events is None:  # the name of a key is written with escapes
        return page
    sent = [each._replace(text=body[events[each.position]]) for each in page.unusable]
    return replace(page, unusable=sent)


def _read_page(body: bytes, *, sets_aside: bool) -> Page:
    """The page with all usable events."""
    try:
        text = storable(body)
        events, cursor = read_envelope(text)
        check_keys_come_once(text, events, cursor)
        page = _read_columns(text, events, cursor, sets_aside=sets_aside)
        return page if text is body else _with_original_keys(page, body)
    except msgspec.ValidationError as error:
        if not has_events(body):
            raise _not_from_the_service(body) from None
        details = f"{sanitize(error)}; it begins {sanitize_start(body)}"
        raise service_error("AE-ENVELOPE", details=details) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _page_of_broken_events(body, error, sets_aside=sets_aside)


def _page_of_broken_events(body: bytes, error: Exception, *, sets_aside: bool) -> Page:
    """The page without the events that are not JSON; raises if there is no such event.

    If the body is complete, the service would send the same one again.
    """
    events = split_events(body)
    broken = {}
    for position, each in enumerate(events or ()):
        problem = _problem_of(position, body[each], sets_aside=sets_aside)
        if problem is not None:
            broken[position] = UnusableEvent(position, body[each], problem)
    if not broken:
        raise _error_of_broken_body(body, error, has_events=events is not None) from None
    rest = bytearray(body)
    for position in reversed(broken):
        rest[(events or [])[position]] = _NO_EVENT
    page = _read_page(bytes(rest), sets_aside=sets_aside)
    unusable = [broken.get(each.position, each) for each in page.unusable]
    return replace(page, unusable=unusable, size=len(body))


def _problem_of(position: int, text: bytes, *, sets_aside: bool) -> ServiceError | None:
    """The error of an event that is not JSON, or is nested too deeply; None if it is neither."""
    of_page = f"event {position + 1} of the page"
    try:
        if sets_aside and is_deeper_than(MAX_LEVELS, text):
            raise RecursionError
        check_json(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        details = f"{of_page} is not JSON: {error}: {excerpt(text)}"
        return service_error("AE-EVENT", details=details)
    except RecursionError:
        return service_error("AE-NESTING", details=f"{of_page}: {excerpt(text)}")
    return None


def _error_of_broken_body(body: bytes, error: Exception, *, has_events: bool) -> ServiceError:
    if isinstance(error, RecursionError):
        return service_error("AE-NESTING")
    details = f"{error}; it begins {sanitize_start(body, 80)}"
    if has_events:
        details = f"outside of its events it is not JSON: {details}"
        return service_error("AE-ENVELOPE", details=details)
    if body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in (b"{", b""):
        return _not_from_the_service(body)
    return service_error("AE-NO-JSON", details=details)


def _not_from_the_service(body: bytes) -> ServiceError:
    return service_error("AE-GATEWAY", details=f"status 200, {sanitize_body(body)}")


def _with_original_keys(page: Page, body: bytes) -> Page:
    """The page of a repaired body, with the original cursor, without events with a repaired id.

    A cursor is opaque, and a repaired id might equal another event's.
    """
    if not any("\ufffd" in each for each in (page.next_cursor or "", *page.ids)):
        return page
    events, cursor = read_envelope(with_marks(body))
    if (cursor or "").replace("\0", "\ufffd") != (page.next_cursor or ""):
        raise service_error("AE-ENVELOPE", details="nextCursor is not Unicode text")
    unusable = {each.position: each for each in page.unusable}
    positions = [position for position in range(len(events)) if position not in unusable]
    columns = zip(positions, page.ids, page.instants, page.texts, strict=True)
    kept = []
    for column in columns:
        position, event_id, _, text = column
        if _decode_keys(events[position]).id == event_id:
            kept.append(column)
        else:
            unusable[position] = _with_repaired_id(position, event_id, text)
    _, ids, instants, texts = zip(*kept, strict=True) if kept else ((), (), (), ())
    return replace(
        page,
        ids=list(ids),
        instants=list(instants),
        texts=list(texts),
        next_cursor=cursor or None,
        unusable=[unusable[position] for position in sorted(unusable)],
    )


def _with_repaired_id(position: int, event_id: str, text: JsonText) -> UnusableEvent:
    problem = (
        f"its id {sanitize(event_id)}, with U+FFFD for NUL or a lone surrogate,"
        " cannot be stored as it is"
    )
    error = service_error("AE-EVENT", details=f"event {position + 1} of the page: {problem}")
    return UnusableEvent(position, bytes(text), error)


def _read_columns(
    body: bytes, events: list[msgspec.Raw], cursor: str | None, *, sets_aside: bool
) -> Page:
    texts: Sequence[JsonText] = events
    unusable: Sequence[UnusableEvent] = ()
    if b"\n" in body or b"\r" in body:  # between tokens: inside of strings they are escaped
        texts = [bytes(text).translate(_LINE_BREAKS_TO_SPACES) for text in texts]
    try:
        keys = list(map(_decode_keys, texts))
        ids, instants = [each.id for each in keys], utc_instants([each.occurredAt for each in keys])
        longest = max(map(len, texts), default=0)
        if instants is None or longest > MAX_EVENT_BYTES:
            raise ValueError
        if sets_aside and any(is_deeper_than(MAX_LEVELS, bytes(text)) for text in texts):
            raise ValueError
    except ValueError:  # also msgspec's own errors
        ids, instants, texts, unusable = _columns_one_by_one(texts, sets_aside=sets_aside)
    return Page(
        ids,
        instants,
        texts,
        next_cursor=cursor or None,
        unusable=unusable,
        size=len(body),
        has_empty_cursor=cursor == "",
    )


def _columns_one_by_one(
    texts: Sequence[JsonText], *, sets_aside: bool
) -> tuple[list[str], list[Instant], list[JsonText], list[UnusableEvent]]:
    """The columns of the events that can be used, and the others."""
    ids: list[str] = []
    forms: list[str] = []
    usable: list[JsonText] = []
    unusable: list[UnusableEvent] = []
    for position, text in enumerate(texts):
        code = "AE-EVENT"
        try:
            if len(text) > MAX_EVENT_BYTES:
                code = "AE-EVENT-SIZE"
                raise ValueError(f"it has {len(text):,} bytes; the most is {MAX_EVENT_BYTES:,}")
            if sets_aside and is_deeper_than(MAX_LEVELS, bytes(text)):
                code = "AE-NESTING"
                raise ValueError(f"it has more than {MAX_LEVELS} levels")
            keys = _decode_keys(text)
            form = _utc_form(keys.occurredAt)
        except ValueError as error:
            details = f"event {position + 1} of the page: {error}: {excerpt(text)}"
            event = UnusableEvent(position, bytes(text), service_error(code, details=details))
            unusable.append(event)
            continue
        ids.append(keys.id)
        forms.append(form)
        usable.append(_with_time(text, keys.occurredAt, form))
    instants = cast("list[Instant]", utc_instants(forms))  # each is in UTC form now
    return ids, instants, usable, unusable


def _utc_form(time: str) -> str:
    try:
        return utc_text(time)
    except ValueError as error:
        raise ValueError(f"occurredAt {error}") from None


def _with_time(text: JsonText, time: str, form: str) -> JsonText:
    """The event with its time in another form; the same text if it has that form."""
    return text if form == time else encode({**decode_fields(text), "occurredAt": form})
