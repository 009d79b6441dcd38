"""For each reader of outside text, a small function that checks its promises for any bytes.

Each function accepts only the errors that the reader documents, and checks the result. Those for
JSON return whether the reader accepted the input.
"""

import ipaddress
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from tempfile import NamedTemporaryFile
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import msgspec
from requests import PreparedRequest
from requests.utils import default_headers
from singer_sdk.singerlib import Catalog
from urllib3.util import parse_url

from tap_audit_events.config.environment import read_environment
from tap_audit_events.config.input_files import read_json_file
from tap_audit_events.config.schema import ENVIRONMENT_PREFIX, SETTINGS_SCHEMA
from tap_audit_events.config.settings import Settings, read_settings, settings_warnings
from tap_audit_events.config.singer_shapes import check_catalog, check_state
from tap_audit_events.errors.exceptions import (
    ContractError,
    RefusedError,
    RetryableError,
    ServiceError,
    SettingsError,
    sanitize,
)
from tap_audit_events.errors.redaction import register_secret
from tap_audit_events.events.exact_json import encode, read_record
from tap_audit_events.events.instants import (
    Instant,
    parse_instant,
    text_of,
    utc_instants,
    utc_text,
)
from tap_audit_events.events.page import parse_page
from tap_audit_events.events.stream_names import STREAM
from tap_audit_events.events.text_repair import storable
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.run_state import types_never_requested
from tap_audit_events.service.retries import (
    MAX_RETRY_AFTER_SECONDS,
    http_date,
    retry_after_seconds,
)
from tap_audit_events.singer.state import from_bookmark, run_state_of, to_bookmark
from tests.builders import ORGANIZATION_ID
from tests.fuzzing.responses import client_that_gets, client_that_records

TOKEN: Final = "fuzzed_pat_that-opens-nothing"
GOOD: Final[dict[str, Any]] = {
    "base_url": "http://127.0.0.1:8080",
    "organization_id": ORGANIZATION_ID,
    "access_token": TOKEN,
    "max_retries": 1,
}
SETTINGS: Final = read_settings(GOOD)
WINDOW: Final = Window(None, Instant("2026-01-31T00:00:00"))
MAX_LINE_LENGTH: Final = 20_000
"""Characters of a line for people: each text in it is bounded, and an escape may take ten."""

_TOKEN_FORM = re.compile(r"[A-Za-z0-9._~+/-]{16,}")


def settings(data: bytes) -> bool:
    """A configuration: given settings replace good ones; `cursor` is a cursor of the service."""
    register_secret(TOKEN)
    given = _object(data)
    if given is None:
        return False
    cursor = given.pop("cursor", None)
    for line in settings_warnings(given, SETTINGS_SCHEMA["properties"]):
        _check_line(line)
    read = _settings(GOOD | given)
    if read:
        _check_request(read, cursor if _is_text(cursor) else None)
    return read is not None


def environment(data: bytes) -> None:
    """Lines ``name=value``, each as an environment variable."""
    register_secret(TOKEN)
    pairs = [line.partition("=") for line in _text(data).split("\n")]
    variables = {f"{ENVIRONMENT_PREFIX}{name.upper()}": text for name, _, text in pairs}
    read = _settings(GOOD | read_environment(variables, SETTINGS_SCHEMA["properties"]))
    if read:
        _check_request(read, None)


def documents(data: bytes) -> None:
    """A file given as configuration, state or catalog."""
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        try:
            assert isinstance(read_json_file("config", file.name), dict)
        except SettingsError as error:
            _check_error(error)


def state(data: bytes) -> bool:
    """A state and its bookmark: the watermark read from it is the same after it was written."""
    register_secret(TOKEN)
    document = _object(data)
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
        _check_error(error)
        return False
    for line in lines:
        _check_line(line)
    written = to_bookmark(watermark, organization_id=ORGANIZATION_ID, action_types=[])
    json.dumps(written, ensure_ascii=False).encode()
    again = from_bookmark(written, organization_id=ORGANIZATION_ID, lookback_seconds=60)
    assert (again.bookmark, again.groups) == (watermark.bookmark, watermark.groups)
    return True


def catalog(data: bytes) -> bool:
    """A catalog: an accepted one has the stream, and the SDK can read it."""
    document = _object(data)
    if document is None:
        return False
    try:
        taken = check_catalog(document)
    except SettingsError as error:
        _check_error(error)
        return False
    assert STREAM in Catalog.from_dict(taken)
    json.dumps(taken, ensure_ascii=False).encode()
    return True


def timestamps(data: bytes) -> None:
    """Lines that may be times, read one by one and all at once."""
    texts = _text(data).split("\n")
    instants = [_check_time(text) for text in texts]
    together = utc_instants(texts)
    assert together is None or together == instants
    texts = [_text(data)]
    assert utc_instants(texts) in (None, [_check_time(texts[0])])


def retry_after(data: bytes) -> None:
    """A line with the value of ``Retry-After``, and one with the value of ``Date``."""
    header, _, date = data.decode("latin-1").partition("\n")
    now = http_date(date) or datetime(2026, 1, 31, tzinfo=UTC)
    assert now.utcoffset() is not None
    seconds = retry_after_seconds(header, now=now)
    assert seconds is None or seconds >= 0


def responses(data: bytes) -> None:
    """A whole response as it is sent: status line, headers, body."""
    _check_response(data)


def error_bodies(data: bytes) -> None:
    """The body of a response with status 400."""
    _check_response(b"HTTP/1.1 400 Bad Request\r\n\r\n" + data)


def pages(data: bytes) -> bool:
    """The body of a response with status 200."""
    register_secret(TOKEN)
    try:
        page = parse_page(data)
    except (RetryableError, ContractError) as error:
        _check_error(error)
        return False
    assert page.next_cursor == (_exact(data).get("nextCursor") or None)
    envelope = msgspec.json.decode(storable(data), type=dict[str, msgspec.Raw])
    events = msgspec.json.decode(envelope["auditEvents"], type=list[msgspec.Raw])
    assert len(page.ids) == len(page.instants) == len(page.texts) <= len(events)
    assert (page.malformed is None) == (len(page.texts) == len(events))
    if page.malformed:
        _check_error(page.malformed)
    columns = zip(page.ids, page.instants, page.texts, strict=True)
    for came, (event_id, instant, text) in zip(events, columns, strict=False):
        _check_event(bytes(came), event_id, instant, bytes(text))
    return page.malformed is None


def shown_texts(data: bytes) -> None:
    """A line with a secret, and a text that may contain it."""
    secret, _, text = _text(data).partition("\n")
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


def _text(data: bytes) -> str:
    """Any text, including lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _is_text(value: object) -> bool:
    """Whether a value is a text without lone surrogates."""
    return isinstance(value, str) and value.encode("utf-8", "replace").decode() == value


def _check_line(line: str) -> None:
    """Check that a text is one line of bounded length, without control codes and the token."""
    assert line.isprintable()
    assert TOKEN not in line
    assert len(line) <= MAX_LINE_LENGTH


def _check_error(error: SettingsError | ServiceError) -> None:
    for line in getattr(error, "lines", [str(error)]):
        _check_line(line)


def _settings(config: dict[str, Any]) -> Settings | None:
    try:
        return read_settings(config)
    except SettingsError as error:
        _check_error(error)
        return None


def _check_request(read: Settings, cursor: str | None) -> None:
    """Check that a request is sent to the URL in the settings, with their parameters."""
    requests: list[PreparedRequest] = []
    with client_that_records(read, requests.append) as client:
        try:
            client.fetch(WINDOW, cursor)
        except RefusedError as error:
            _check_error(error)
            if error.code != "AE-ADDRESS":  # it is well-formed, but nothing can be sent to it
                raise
            return
    (request,) = requests
    parts, given = parse_url(str(request.url)), urlsplit(read.base_url)
    assert (parts.scheme, (parts.host or "").strip("[]")) == (given.scheme, given.hostname)
    assert parts.auth is None
    if parts.scheme == "http":
        host = given.hostname or ""
        assert host == "localhost" or ipaddress.ip_address(host).is_loopback
    end = f"/v1/organizations/{read.organization_id}/audit_events"
    assert (parts.path or "").endswith(end)
    assert parts.fragment is None
    assert request.headers == {
        **default_headers(),
        "User-Agent": read.user_agent,
        "Accept": "application/json",
        "Authorization": f"Bearer {read.access_token}",
    }
    parameters = parse_qs(parts.query or "", strict_parsing=True, keep_blank_values=True)
    expected = {
        "order": ["asc"],
        "endTime": [WINDOW.end_time],
        "pageSize": [str(read.page_size)],
        "actionTypes": [",".join(read.action_types)] if read.action_types else None,
        "cursor": None if cursor is None else [cursor],
    }
    assert parameters == {name: value for name, value in expected.items() if value}


def _check_time(text: str) -> Instant | None:
    """The instant of a text, None if it is not a time; checks that all ways to read it agree."""
    try:
        instant = parse_instant(text)
    except ValueError as error:
        _check_line(str(error))
        assert utc_instants([text]) is None
        return None
    form = utc_text(text)
    assert utc_text(form) == form
    assert parse_instant(form) == parse_instant(text_of(instant)) == instant
    assert utc_instants([form]) == [instant]
    return instant


def _check_response(response: bytes) -> None:
    """Check that only errors of the service are raised, as plain lines, and that waits end."""
    register_secret(TOKEN)
    with client_that_gets(response, SETTINGS) as (client, heard):
        try:
            client.fetch(WINDOW, None)
        except ServiceError as error:
            _check_error(error)
    assert len(heard.waits) <= SETTINGS.max_retries
    assert all(0 <= seconds <= MAX_RETRY_AFTER_SECONDS for seconds in heard.waits)
    for line in heard.lines:
        _check_line(line)


def _check_event(came: bytes, event_id: str, instant: Instant, left: bytes) -> None:
    """Check that an event is unchanged: in every byte, or in all but its time, now in UTC form."""
    sent, read = _exact(came), _exact(left)
    assert not {b"\n", b"\r"} & {left[i : i + 1] for i in range(len(left))}
    assert read["id"] == event_id
    assert read["occurredAt"] == utc_text(sent["occurredAt"])
    assert parse_instant(read["occurredAt"]) == instant
    assert read == sent | {"occurredAt": read["occurredAt"]}
    if read["occurredAt"] == sent["occurredAt"]:
        assert left == came.replace(b"\n", b" ").replace(b"\r", b" ")
    try:
        assert _exact(encode(read_record(left))) == read
    except ContractError as error:
        _check_error(error)


def _exact(text: bytes) -> Any:
    """JSON as Python's own parser reads it, with exact numbers."""
    return json.loads(
        text.decode("utf-8-sig", "surrogatepass"), parse_int=Decimal, parse_float=_decimal
    )


def _decimal(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent that Decimal cannot hold
        return text
