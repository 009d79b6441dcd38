"""Reads the body of a response; turns an error response, or a failed request, into an error."""

from __future__ import annotations

import json
import os
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPException, IncompleteRead
from typing import Any, Final

import requests
from requests import exceptions
from urllib3.exceptions import (
    DecodeError,
    HTTPError,
    InvalidHeader,
    MaxRetryError,
    ProtocolError,
    ReadTimeoutError,
)

from tap_audit_events.errors.exceptions import (
    RetryableError,
    ServiceError,
    sanitize,
    sanitize_body,
    service_error,
)
from tap_audit_events.events.window import Window
from tap_audit_events.service.advice import advice_on_bounds, advice_on_certificate
from tap_audit_events.service.retries import http_date, retry_after_seconds

MAX_ERROR_BYTES: Final = 64 * 1024
"""Maximum number of bytes that are read of an error response."""

_CHUNK_BYTES: Final = 64 * 1024
"""Bytes to read at a time. For each member of a gzip stream, urllib3 copies the rest of these
bytes, and a body may consist of empty members."""

NETWORK_ERRORS: Final = (
    exceptions.RequestException,
    HTTPError,
    HTTPException,
    UnicodeError,
    OSError,
)
"""Exceptions of `requests` and the libraries below it if a response does not arrive completely."""

_PROXY_REFUSES: Final = "Tunnel connection failed: 407"
_TOO_LONG: Final = (HTTPStatus.REQUEST_URI_TOO_LONG, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
"""A gateway sends these statuses if a cursor, or action_types, makes a request too long for it."""

_STATUSES: Final = frozenset({"AE-400", "AE-401", "AE-403", "AE-404"})


def read_body(response: requests.Response, most_bytes: int) -> bytes:
    """The whole body, decompressed; `ContractError` if it is larger than `most_bytes`."""
    body = read_start(response, most_bytes + 1)
    if len(body) <= most_bytes:
        return body
    raise service_error("AE-TOO-LARGE", details=f"more than {most_bytes:,} bytes")


def read_error(response: requests.Response) -> bytes:
    """The start of an error's body; empty if it does not arrive, because the status suffices."""
    try:
        return read_start(response, MAX_ERROR_BYTES)
    except NETWORK_ERRORS:
        return b""


def read_start(response: requests.Response, most_bytes: int) -> bytes:
    """The first bytes of the body, decompressed, at most `most_bytes`."""
    chunks: list[bytes] = []
    left = most_bytes
    while chunk := response.raw.read(min(_CHUNK_BYTES, left), decode_content=True):
        chunks.append(chunk)
        left -= len(chunk)
    if left and _is_cut(getattr(response.raw, "_decoder", None)):
        raise DecodeError("the compressed body is incomplete")
    return b"".join(chunks)


def _is_cut(decoder: Any) -> bool:
    """Whether a decoder of urllib3 waits for more bytes, which urllib3 itself does not check.

    Even if it does not, the body may be cut between two members or frames; then it is not JSON.
    """
    decoders = getattr(decoder, "_decoders", [decoder])
    ended = (getattr(each, "_obj", None) for each in decoders)
    return not all(getattr(each, "eof", True) for each in ended)


def status_error(
    response: requests.Response, body: bytes, *, window: Window, has_cursor: bool
) -> ServiceError:
    """The error of a response whose status is not 200 (interface.md, section 7).

    If it does not have the form of the service's errors, something else has sent it: then its
    status says nothing about the request, and it is retried.
    """
    status = response.status_code
    location = response.headers.get("Location")
    date = http_date(response.headers.get("Date"))
    wait = retry_after_seconds(response.headers.get("Retry-After"), now=date or datetime.now(UTC))
    own = _own_error(body)
    if 300 <= status < 400 and location:
        error = service_error("AE-REDIRECT", details=f"status {status} to {sanitize(location)}")
    else:
        code = _code_of_status(status, is_own=own is not None, waits=wait is not None)
        if has_cursor and (code == "AE-400" or status in _TOO_LONG):
            code = "AE-CURSOR-REFUSED"
        error = service_error(code, details=f"status {status}, {_message(own, body)}")
        if code == "AE-500" and own is None:
            error.details += "; not in the form of the service's errors: perhaps from a gateway"
    if error.code == "AE-400":
        error.advice = f"{advice_on_bounds(window, date)} {error.next_step}"
    if status == HTTPStatus.REQUEST_URI_TOO_LONG:
        error.details += "; the URL is too long, perhaps because of action_types"
    if isinstance(error, RetryableError):
        error.retry_after_seconds = wait
    return error


def _code_of_status(status: int, *, is_own: bool, waits: bool) -> str:
    """The code for a status of a response that has the form of the service's errors or not.

    Some services send status 403 if there are too many requests, with a Retry-After header.
    """
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return "AE-TIMEOUT"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "AE-429"
    # RFC 6585, section 6: only something in between sends status 511.
    is_failure = status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if is_failure and (is_own or status != HTTPStatus.NETWORK_AUTHENTICATION_REQUIRED):
        return "AE-500"
    if status not in _TOO_LONG and (not is_own or status < HTTPStatus.BAD_REQUEST):
        return "AE-GATEWAY"
    if status == HTTPStatus.FORBIDDEN and waits:
        return "AE-429"
    code = f"AE-{status}"
    return code if code in _STATUSES else "AE-STATUS"


def _own_error(body: bytes) -> dict[str, Any] | None:
    """The service's error, None if a body does not have its form (interface.md, section 7)."""
    try:
        error = json.loads(body)
    except (ValueError, RecursionError):
        return None
    match error:
        case {"errCode": str(), "msg": str(), "vars": dict() | None}:
            return dict(error)
    return None


def _message(own: Mapping[str, Any] | None, body: bytes) -> str:
    """The service's errCode, msg and vars, or what another body is."""
    if own is None:
        return sanitize_body(body, is_cut=len(body) >= MAX_ERROR_BYTES)
    return ", ".join(f"{key} {sanitize(_text(own[key]))}" for key in ("errCode", "msg", "vars"))


def network_error(error: Exception) -> ServiceError:
    """The error for a response that did not arrive, or not completely."""
    cause = _innermost(error)
    message = str(cause).removeprefix("None: ")  # urllib3 begins with the pool, which may be None
    message = re.sub(r"\b\w+Connection\((host=[^()]*)\)", r"\1", message)  # or the connection
    code = _code_of(error, cause)
    advice = advice_on_certificate(cause, os.environ) if code == "AE-CERTIFICATE" else ""
    details = f"{type(cause).__name__}: {sanitize(message)}"
    return service_error(code, details=details, advice=advice)


def _code_of(error: Exception, cause: BaseException) -> str:
    if isinstance(error, exceptions.Timeout) or isinstance(cause, ReadTimeoutError | TimeoutError):
        return "AE-TIMEOUT"
    is_cut = isinstance(error, ProtocolError | IncompleteRead | DecodeError)
    has_two_lengths = isinstance(cause, InvalidHeader)
    if is_cut or has_two_lengths:
        return "AE-CUT"
    is_unreadable = isinstance(error, exceptions.SSLError) and not isinstance(cause, ssl.SSLError)
    is_no_bundle = getattr(cause, "library", "") == "X509"
    if isinstance(cause, ssl.SSLCertVerificationError) or is_unreadable or is_no_bundle:
        return "AE-CERTIFICATE"
    is_refused = str(cause).startswith(_PROXY_REFUSES)  # a retry might lock the account
    is_connection = isinstance(error, exceptions.ConnectionError | HTTPError | ConnectionError)
    if is_connection and not is_refused:
        return "AE-CONNECTION"
    if isinstance(error, OSError) and not isinstance(error, exceptions.RequestException):
        return "AE-CERTIFICATE"  # the bundle that REQUESTS_CA_BUNDLE names does not exist
    return "AE-ADDRESS"


def _innermost(error: BaseException) -> BaseException:
    """The exception that requests and urllib3 wrapped."""
    arguments = [error.reason] if isinstance(error, MaxRetryError) else error.args
    inner = next((each for each in arguments if isinstance(each, BaseException)), None)
    return error if inner is None else _innermost(inner)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
