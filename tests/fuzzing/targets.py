"""For each reader of outside text, a small function that checks its promises for any bytes.

Each function accepts only the errors that the reader documents, and checks the result. Those for
JSON return whether the reader accepted the input.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from tempfile import NamedTemporaryFile
from typing import Final

import msgspec
from singer_sdk.singerlib import Catalog

from tap_audit_events.config.environment import read_environment
from tap_audit_events.config.input_files import read_json_file
from tap_audit_events.config.schema import ENVIRONMENT_PREFIX, SETTINGS, SETTINGS_SCHEMA
from tap_audit_events.config.settings import register_secrets
from tap_audit_events.config.singer_shapes import check_catalog, check_state
from tap_audit_events.config.unknown_settings import problems_of_names
from tap_audit_events.errors.exceptions import (
    ContractError,
    RetryableError,
    SettingsError,
    sanitize,
)
from tap_audit_events.errors.redaction import register_secret
from tap_audit_events.events.instants import utc_instants
from tap_audit_events.events.page import parse_page
from tap_audit_events.events.stream_names import STREAM
from tap_audit_events.events.text_repair import storable
from tap_audit_events.reporting.start_warnings import types_never_requested
from tap_audit_events.service.retries import (
    http_date,
    retry_after_seconds,
)
from tap_audit_events.singer.state import from_bookmark, run_state_of, to_bookmark
from tests.builders import ORGANIZATION_ID
from tests.fuzzing.checks import (
    GOOD,
    TOKEN,
    any_text,
    check_error,
    check_event,
    check_line,
    check_request,
    check_response,
    check_time,
    exact_json,
    is_text,
    json_object,
    read_or_refuse,
)

_TOKEN_FORM = re.compile(r"[A-Za-z0-9._~+/-]{16,}")


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


def environment(data: bytes) -> None:
    """Lines ``name=value``, each as an environment variable."""
    register_secret(TOKEN)
    pairs = [line.partition("=") for line in any_text(data).split("\n")]
    variables = {f"{ENVIRONMENT_PREFIX}{name.upper()}": text for name, _, text in pairs}
    read = read_or_refuse(GOOD | read_environment(variables, SETTINGS_SCHEMA["properties"]))
    if read:
        check_request(read, None)


def documents(data: bytes) -> None:
    """A file given as configuration, state or catalog."""
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        try:
            assert isinstance(read_json_file("config", file.name), dict)
        except SettingsError as error:
            check_error(error)


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
        watermark = from_bookmark(
            bookmark, organization_id=ORGANIZATION_ID, lookback_seconds=60, warn=lines.append
        )
    except SettingsError as error:
        check_error(error)
        return False
    for line in lines:
        check_line(line)
    written = to_bookmark(watermark, organization_id=ORGANIZATION_ID, action_types=[])
    json.dumps(written, ensure_ascii=False).encode()
    again = from_bookmark(written, organization_id=ORGANIZATION_ID, lookback_seconds=60)
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


def timestamps(data: bytes) -> None:
    """Lines that may be times, read one by one and all at once."""
    texts = any_text(data).split("\n")
    instants = [check_time(text) for text in texts]
    together = utc_instants(texts)
    assert together is None or together == instants
    texts = [any_text(data)]
    assert utc_instants(texts) in (None, [check_time(texts[0])])


def retry_after(data: bytes) -> None:
    """A line with the value of ``Retry-After``, and one with the value of ``Date``."""
    header, _, date = data.decode("latin-1").partition("\n")
    now = http_date(date) or datetime(2026, 1, 31, tzinfo=UTC)
    assert now.utcoffset() is not None
    seconds = retry_after_seconds(header, now=now)
    assert seconds is None or seconds >= 0


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
    except (RetryableError, ContractError) as error:
        check_error(error)
        return False
    try:
        envelope_as_json = exact_json(data)
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


def shown_texts(data: bytes) -> None:
    """A line with a secret, and a text that may contain it."""
    secret, _, text = any_text(data).partition("\n")
    if not _TOKEN_FORM.fullmatch(secret):
        secret = TOKEN
    register_secret(secret)
    for each in (text, f"{text}{secret}{text}", json.dumps({text: secret})):
        line = sanitize(each)
        assert line.isprintable()
        assert secret not in line
        assert len(line) <= 10 * 300 + 3
    assert len(sanitize(text, 7)) <= 10 * 7 + 3


TARGETS: Final[dict[str, Callable[[bytes], bool | None]]] = {
    target.__name__: target
    for target in (
        settings,
        environment,
        documents,
        state,
        catalog,
        timestamps,
        retry_after,
        responses,
        error_bodies,
        pages,
        shown_texts,
    )
}
