"""What must hold for each input that a target reads: requests, times, responses, events, lines."""

import ipaddress
import json
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from requests import PreparedRequest
from urllib3.util import parse_url

from tap_audit_events.config.settings import Settings, read_settings
from tap_audit_events.errors.exceptions import (
    ContractError,
    RefusedError,
    ServiceError,
    SettingsError,
)
from tap_audit_events.errors.redaction import register_secret
from tap_audit_events.events.exact_json import encode, read_record
from tap_audit_events.events.instants import (
    Instant,
    parse_instant,
    utc_text,
)
from tap_audit_events.events.window import Window
from tap_audit_events.service.retries import MAX_RETRY_AFTER_SECONDS
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


def json_object(data: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def is_text(value: object) -> bool:
    """Whether a value is a text without lone surrogates."""
    return isinstance(value, str) and value.encode("utf-8", "replace").decode() == value


def check_line(line: str) -> None:
    """Check that a text is one line of bounded length, without control codes and the token."""
    assert line.isprintable()
    assert TOKEN not in line
    assert len(line) <= MAX_LINE_LENGTH


def check_error(error: SettingsError | ServiceError) -> None:
    for line in getattr(error, "lines", [str(error)]):
        check_line(line)


def read_or_refuse(config: dict[str, Any]) -> Settings | None:
    try:
        return read_settings(config)
    except SettingsError as error:
        check_error(error)
        return None


def check_request(read: Settings, cursor: str | None) -> None:
    """Check that a request is sent to the URL in the settings, with their parameters."""
    requests: list[PreparedRequest] = []
    with client_that_records(read, requests.append) as client:
        try:
            client.fetch(WINDOW, cursor)
        except RefusedError as error:
            check_error(error)
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
        "User-Agent": read.user_agent,
        "Accept": "application/json",
        "Accept-Encoding": "gzip",
        "Connection": "keep-alive",
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


def check_response(response: bytes) -> None:
    """Check that only errors of the service are raised, as plain lines, and that waits end."""
    register_secret(TOKEN)
    with client_that_gets(response, SETTINGS) as (client, heard):
        try:
            client.fetch(WINDOW, None)
        except ServiceError as error:
            check_error(error)
    assert len(heard.waits) <= SETTINGS.max_retries
    assert all(0 <= seconds <= MAX_RETRY_AFTER_SECONDS for seconds in heard.waits)
    for line in heard.lines:
        check_line(line)


def check_event(came: bytes, event_id: str, instant: Instant, left: bytes) -> None:
    """Check that an event is unchanged: in every byte, or in all but its time, now in UTC form."""
    sent, read = exact_json(came), exact_json(left)
    assert not {b"\n", b"\r"} & {left[i : i + 1] for i in range(len(left))}
    assert read["id"] == event_id
    assert read["occurredAt"] == utc_text(sent["occurredAt"])
    assert parse_instant(read["occurredAt"]) == instant
    assert read == sent | {"occurredAt": read["occurredAt"]}
    if read["occurredAt"] == sent["occurredAt"]:
        assert left == came.replace(b"\n", b" ").replace(b"\r", b" ")
    try:
        assert exact_json(encode(read_record(left))) == read
    except ContractError as error:
        check_error(error)


def exact_json(text: bytes) -> Any:
    """JSON as Python's own parser reads it, with exact numbers."""
    return json.loads(
        text.decode("utf-8-sig", "surrogatepass"), parse_int=Decimal, parse_float=decimal
    )


def decimal(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent that Decimal cannot hold
        return text
