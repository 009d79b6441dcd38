"""For each reader of outside text, a small function that checks its promises for any bytes.

Each function accepts only the errors that the reader documents, and checks the result. Those for
JSON return whether the reader accepted the input.
"""

import json
from collections.abc import Callable
from typing import Final

import msgspec
from singer_sdk.singerlib import Catalog

from tap_audit_events.config.schema import SETTINGS
from tap_audit_events.config.settings import register_secrets
from tap_audit_events.config.singer_shapes import check_catalog, check_state
from tap_audit_events.config.unknown_settings import problems_of_names
from tap_audit_events.errors.exceptions import (
    ContractError,
    RetryableError,
    SettingsError,
)
from tap_audit_events.errors.redaction import register_secret
from tap_audit_events.events.page import parse_page
from tap_audit_events.events.stream_names import STREAM
from tap_audit_events.events.text_repair import storable
from tap_audit_events.run.start_warnings import types_never_requested, types_no_longer_excluded
from tap_audit_events.singer.state import run_state_of
from tests.extraction.watermarks import bookmark_of, read_bookmark
from tests.fuzzing import checks
from tests.fuzzing.checks import (
    GOOD,
    TOKEN,
    check_error,
    check_event,
    check_line,
    check_request,
    check_response,
    exact_json,
    is_text,
    json_object,
    read_or_refuse,
)


def settings(data: bytes) -> bool:
    """A configuration: given settings replace good ones; `cursor` is a cursor of the service."""
    register_secret(TOKEN)
    given = json_object(data)
    if given is None:
        return False
    cursor = given.pop("cursor", None)
    register_secrets(given)
    for line in problems_of_names(given, SETTINGS):
        check_line(line)
    read = read_or_refuse(GOOD | {name: given[name] for name in given.keys() & set(SETTINGS)})
    if read:
        check_request(read, cursor if is_text(cursor) else None)
    return read is not None


def state(data: bytes) -> bool:
    """A state and its bookmark: the watermark read from it is the same after it was written."""
    register_secret(TOKEN)
    document = json_object(data)
    if document is None:
        return False
    lines: list[str] = []
    try:
        check_state(document)
        bookmark = document.get("bookmarks", {}).get(STREAM, {})
        types_never_requested(run_state_of(bookmark), ["x"])
        types_no_longer_excluded(run_state_of(bookmark), checks.SETTINGS)
        watermark = read_bookmark(bookmark, lookback_seconds=60, warn=lines.append)
    except SettingsError as error:
        check_error(error)
        return False
    for line in lines:
        check_line(line)
    written = bookmark_of(watermark)
    json.dumps(written, ensure_ascii=False).encode()
    again = read_bookmark(written, lookback_seconds=60)
    assert (again.bookmark, again.groups) == (watermark.bookmark, watermark.groups)
    return True


def catalog(data: bytes) -> bool:
    """A catalog: an accepted one has the stream, and the SDK can read it."""
    document = json_object(data)
    if document is None:
        return False
    try:
        taken = check_catalog(document)
    except SettingsError as error:
        check_error(error)
        return False
    assert STREAM in Catalog.from_dict(taken)
    json.dumps(taken, ensure_ascii=False).encode()
    return True


def responses(data: bytes) -> None:
    """A whole response as it is sent: status line, headers, body."""
    check_response(data)


def error_bodies(data: bytes) -> None:
    """The body of a response with status 400."""
    check_response(b"HTTP/1.1 400 Bad Request\r\n\r\n" + data)


def pages(data: bytes) -> bool:
    """The body of a response with status 200."""
    register_secret(TOKEN)
    try:
        page = parse_page(data)
        rest = parse_page(data, sets_aside=True)
    except (RetryableError, ContractError) as error:
        check_error(error)
        return False
    assert rest.unusable or (page.malformed, [*page.ids]) == (None, [*rest.ids])
    try:
        envelope_as_json = exact_json(data)
    except RecursionError:  # deeper than Python's own parser can read
        return False
    except ValueError:  # one of its events is not JSON
        assert page.malformed is not None
        check_error(page.malformed)
        return False
    assert page.next_cursor == (envelope_as_json.get("nextCursor") or None)
    envelope = msgspec.json.decode(storable(data), type=dict[str, msgspec.Raw])
    events = msgspec.json.decode(envelope["auditEvents"], type=list[msgspec.Raw])
    assert len(page.ids) == len(page.instants) == len(page.texts) <= len(events)
    assert (page.malformed is None) == (len(page.texts) == len(events))
    if page.malformed:
        check_error(page.malformed)
    columns = zip(page.ids, page.instants, page.texts, strict=True)
    for came, (event_id, instant, text) in zip(events, columns, strict=False):
        check_event(bytes(came), event_id, instant, bytes(text))
    return page.malformed is None


TARGETS: Final[dict[str, Callable[[bytes], bool | None]]] = {
    target.__name__: target for target in (settings, state, catalog, responses, error_bodies, pages)
}
