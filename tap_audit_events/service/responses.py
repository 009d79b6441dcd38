"""Reads the body of a response; turns an error response, or a failed request, into an error."""

from __future__ import annotations

import json
import re
import ssl
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
    sanitize_start,
    service_error,
)
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
_CURSOR_REFUSED: Final = (400, 414, 431)
"""A gateway sends 414 or 431 if the cursor makes the request too long for it."""

_STATUSES: Final = frozenset({"AE-400", "AE-401", "AE-403", "AE-404", "AE-429", "AE-500"})


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
    return b"".join(chunks)


def status_error(response: requests.Response, body: bytes, *, has_cursor: bool) -> ServiceError:
    """The error of a response whose status is not 200 (interface.md, section 7)."""
    status = response.status_code
    message = f"status {status}, {_message(body)}"
    if status == HTTPStatus.REQUEST_URI_TOO_LONG:
        message += "; the URL is too long, perhaps because of action_types"
    location = response.headers.get("Location")
    if 300 <= status < 400 and location:
        return service_error("AE-REDIRECT", details=f"status {status} to {sanitize(location)}")
    if status in _CURSOR_REFUSED and has_cursor:
        return service_error("AE-CURSOR-REFUSED", details=message)
    error = service_error(_code_of_status(status), details=message)
    if isinstance(error, RetryableError):
        now = http_date(response.headers.get("Date")) or datetime.now(UTC)
        header = response.headers.get("Retry-After")
        error.retry_after_seconds = retry_after_seconds(header, now=now)
    return error


def _code_of_status(status: int) -> str:
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return "AE-TIMEOUT"
    code = "AE-500" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else f"AE-{status}"
    return code if code in _STATUSES else "AE-STATUS"


def _message(body: bytes) -> str:
    """The service's errCode, msg and vars, or the start of a body that has another form."""
    try:
        error = json.loads(body)
        parts = [f"{key} {sanitize(_text(error[key]))}" for key in ("errCode", "msg", "vars")]
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"body {sanitize_start(body, is_cut=len(body) >= MAX_ERROR_BYTES)}"
    return ", ".join(parts)


def network_error(error: Exception) -> ServiceError:
    """The error for a response that did not arrive, or not completely."""
    cause = _innermost(error)
    message = str(cause).removeprefix("None: ")  # urllib3 begins with the pool, which may be None
    message = re.sub(r"\b\w+Connection\((host=[^()]*)\)", r"\1", message)  # or the connection
    return service_error(
        _code_of(error, cause), details=f"{type(cause).__name__}: {sanitize(message)}"
    )


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
