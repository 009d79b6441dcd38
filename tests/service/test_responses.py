"""Which error a response is, by its status, its headers and its body."""

import json
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from requests import exceptions
from urllib3.exceptions import DecodeError, InvalidHeader, MaxRetryError, ProtocolError, SSLError
from urllib3.exceptions import ReadTimeoutError as ReadTimeout

from tap_audit_events.config.access_token import MAX_TOKEN_BYTES
from tap_audit_events.errors.exceptions import CursorRefusedError, RetryableError
from tap_audit_events.errors.redaction import register_secret
from tap_audit_events.service.responses import MAX_ERROR_BYTES, network_error, status_error
from tests.builders import a_response
from tests.service.scripted import WINDOW

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
BODY = json.dumps({"errCode": "no", "msg": "not\nnow", "vars": {"n": 1}}).encode()
RETRIED = (408, 429, 500, 501, 502, 503, 504, 507, 520, 599)


@pytest.mark.parametrize("status", [*range(300, 309), 399])
@pytest.mark.parametrize("has_cursor", [True, False])
def test_every_redirect_is_an_error(status: int, has_cursor: bool) -> None:
    """The token must not go to another URL; the error names it, as it may be a sign-in page."""
    response = a_response(status, headers={"Location": "https://a.example/\n", "Retry-After": "1"})
    error = status_error(response, BODY, window=WINDOW, has_cursor=has_cursor)
    assert isinstance(error, RetryableError)
    assert (error.code, error.is_gateway, error.retry_after_seconds) == ("AE-REDIRECT", True, 1.0)
    assert error.details == rf"status {status} to 'https://a.example/\n'"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        *((status, f"AE-{status}") for status in (400, 401, 403, 404, 429, 500)),
        *((status, "AE-500") for status in RETRIED[3:]),
        (408, "AE-TIMEOUT"),
        *((status, "AE-STATUS") for status in (402, 405, 410, 414, 418, 431, 499)),
    ],
)
def test_each_status_has_its_code(status: int, code: str) -> None:
    """Only temporary failures are retried."""
    error = status_error(a_response(status), BODY, window=WINDOW, has_cursor=False)
    assert error.code == code
    assert isinstance(error, RetryableError) == (status in RETRIED)
    assert error.details.startswith(rf"status {status}, errCode 'no', msg 'not\nnow', vars '{{")


NOT_THE_FORM = (
    b"",
    b"<html><head>\n<TITLE lang='en'> Sign \n in </TITLE>",
    b"[]",
    b'{"message": "Forbidden"}',
    b'{"errCode": "no", "msg": "not now"}',
    b'{"errCode": 403, "msg": "not now", "vars": null}',
    b'{"errCode": "no", "msg": null, "vars": null}',
    b'{"errCode": "no", "msg": "not now", "vars": []}',
    b'{"errCode": "no", "msg": "not now", "vars": {',
)


@pytest.mark.parametrize("status", [201, 204, 302, 304, 400, 401, 403, 404, 407, 418, 511])
@pytest.mark.parametrize("body", NOT_THE_FORM)
@pytest.mark.parametrize("has_cursor", [True, False])
def test_an_error_without_the_form_of_the_service_is_that_of_a_gateway(
    status: int, body: bytes, has_cursor: bool
) -> None:
    """Its status says nothing about the token, the organization or the cursor: it is retried."""
    response = a_response(status, headers={"Retry-After": "7"})
    error = status_error(response, body, window=WINDOW, has_cursor=has_cursor)
    assert isinstance(error, RetryableError)
    assert (error.code, error.is_gateway, error.retry_after_seconds) == ("AE-GATEWAY", True, 7.0)
    shown = "a page titled 'Sign in'" if b"TITLE" in body else "body "
    assert error.details.startswith(f"status {status}, {shown}")


@pytest.mark.parametrize(
    ("status", "code"), [(400, "AE-400"), (401, "AE-401"), (403, "AE-429"), (404, "AE-404")]
)
def test_the_service_can_limit_requests_with_status_403(status: int, code: str) -> None:
    """It then requests a wait; with other statuses, that does not count."""
    response = a_response(status, headers={"Retry-After": "7"})
    error = status_error(response, BODY, window=WINDOW, has_cursor=False)
    assert error.code == code
    assert not error.is_gateway
    if isinstance(error, RetryableError):
        assert error.retry_after_seconds == 7.0


@pytest.mark.usefixtures("no_secrets")
def test_a_secret_that_is_cut_at_the_end_of_an_error_is_not_shown() -> None:
    """Only the start of a body is read: a secret that is cut there cannot be recognized."""
    token = "pat_".ljust(MAX_TOKEN_BYTES - 2, "x")
    register_secret(token)
    body = (9 * f"{token} ").encode()[:MAX_ERROR_BYTES]
    assert body.endswith(b" pat_xxxx")
    error = status_error(a_response(500), body, window=WINDOW, has_cursor=False)
    assert "pat_" not in error.details


@pytest.mark.parametrize("status", [400, 414, 431])
def test_only_a_request_with_a_cursor_can_have_its_cursor_refused(status: int) -> None:
    """The service may refuse a cursor, and a gateway may refuse it as too long."""
    with_cursor = status_error(a_response(status), BODY, window=WINDOW, has_cursor=True)
    assert (type(with_cursor), with_cursor.code) == (CursorRefusedError, "AE-CURSOR-REFUSED")
    assert with_cursor.details.startswith(f"status {status}, errCode 'no'")
    without = status_error(a_response(status), BODY, window=WINDOW, has_cursor=False)
    assert not isinstance(without, CursorRefusedError)


@pytest.mark.parametrize("status", RETRIED)
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "901"}, 901.0),
        ({"Retry-After": format_datetime(NOW + timedelta(seconds=9), usegmt=True)}, 9.0),
        ({"Retry-After": format_datetime(NOW - timedelta(seconds=9), usegmt=True)}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_whatever_the_status(
    status: int, headers: dict[str, str], seconds: float | None
) -> None:
    """It is read with every status that is retried; a date counts from the service's own clock."""
    date = {"Date": format_datetime(NOW, usegmt=True)}
    error = status_error(
        a_response(status, headers=headers | date), BODY, window=WINDOW, has_cursor=False
    )
    assert isinstance(error, RetryableError)
    assert error.retry_after_seconds == seconds


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"<html>\n", r"body '<html>\n'"),
        (b"", "body ''"),
        (b"caf\xe9", r"body 'caf\\xe9'"),
        (b"[]", "body '[]'"),
        (b'"text"', "body '\"text\"'"),
        (b'{"errCode": 1, "msg": null}', 'body \'{"errCode": 1, "msg": null}\''),
        (b'{"errCode": "1", "msg": "no", "vars": {}}', "errCode '1', msg 'no', vars '{}'"),
        (b"<title>" + b"x" * 301 + b"</title>", "body '<title>xxx"),
        (b"<title></title>", "body '<title></title>'"),
        (b"[" * 100_000, "body '" + "[" * 300),
    ],
)
def test_an_error_shows_what_the_service_sent(body: bytes, shown: str) -> None:
    """It shows errCode, msg and vars, or the start of a body that does not have all three."""
    details = status_error(a_response(503), body, window=WINDOW, has_cursor=False).details
    assert details.startswith(f"status 503, {shown}")
    assert len(details) < 1000


def wrapped(cause: Exception, *wrappers: type[Exception]) -> Exception:
    """An exception as `requests` and the libraries below it nest them."""
    for wrapper in wrappers:
        cause = wrapper(cause)
    return cause


@pytest.mark.parametrize(
    ("error", "code", "details"),
    [
        (exceptions.ReadTimeout("slow"), "AE-TIMEOUT", "ReadTimeout: 'slow'"),
        (ReadTimeout(None, "/", "slow"), "AE-TIMEOUT", "ReadTimeoutError: 'slow'"),  # type: ignore[arg-type]
        (
            wrapped(TimeoutError("slow"), ProtocolError, exceptions.ConnectionError),
            "AE-TIMEOUT",
            "TimeoutError: 'slow'",
        ),
        (ProtocolError("cut"), "AE-CUT", "ProtocolError: 'cut'"),
        (DecodeError("no gzip"), "AE-CUT", "DecodeError: 'no gzip'"),
        (InvalidHeader("two"), "AE-CUT", "InvalidHeader: 'two'"),
        (
            wrapped(ssl.SSLCertVerificationError("unknown"), exceptions.SSLError),
            "AE-CERTIFICATE",
            "SSLCertVerificationError: ",
        ),
        (
            wrapped(PermissionError("secret bundle"), SSLError, exceptions.SSLError),
            "AE-CERTIFICATE",
            "PermissionError: 'secret bundle'",
        ),
        (OSError("no such bundle"), "AE-CERTIFICATE", "OSError: 'no such bundle'"),
        (
            wrapped(ssl.SSLError(1, "bad record"), exceptions.SSLError),
            "AE-CONNECTION",
            "SSLError: ",
        ),
        (ConnectionResetError("reset"), "AE-CONNECTION", "ConnectionResetError: 'reset'"),
        (
            exceptions.ConnectionError(MaxRetryError(None, "/", ValueError("inner"))),  # type: ignore[arg-type]
            "AE-CONNECTION",
            "ValueError: 'inner'",
        ),
        (
            ConnectionError("HTTPSConnection(host='a.example', port=9): refused"),
            "AE-CONNECTION",
            "ConnectionError: \"host='a.example', port=9: refused\"",
        ),
        (exceptions.InvalidURL("odd"), "AE-ADDRESS", "InvalidURL: 'odd'"),
        (
            wrapped(OSError("Tunnel connection failed: 407 No"), exceptions.ProxyError),
            "AE-ADDRESS",  # not retried: the same password again might lock the account
            "OSError: 'Tunnel connection failed: 407 No'",
        ),
    ],
)
def test_each_failure_of_the_network_has_its_code(
    error: Exception, code: str, details: str
) -> None:
    """The innermost exception says what happened."""
    found = network_error(error)
    assert found.code == code
    assert found.details.startswith(details)
