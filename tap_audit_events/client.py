"""One page from the service: the request, its retries, and what the answer means."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from logging import Logger
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import backoff
import requests
from requests import exceptions
from requests.adapters import BaseAdapter
from urllib3.exceptions import (
    DecodeError,
    HTTPError,
    MaxRetryError,
    ProtocolError,
    ReadTimeoutError,
)

from tap_audit_events.auth import AccessTokenAuthenticator
from tap_audit_events.errors import RetryableError, ServiceError, service_error, shown
from tap_audit_events.events import Envelope, split_page
from tap_audit_events.gate import Gate, Turn
from tap_audit_events.pacing import (
    LONGEST_BACKOFF_SECONDS,
    LONGEST_RETRY_AFTER_SECONDS,
    http_date,
    pause_seconds,
    retry_after_seconds,
)
from tap_audit_events.pagination import NextCursorPaginator
from tap_audit_events.settings import Settings
from tap_audit_events.windows import Window

MOST_EMPTY_PAGES: Final = 1000
MOST_NEW_TOKENS: Final = 3
"""How often one request is sent with another token: its file may be read while it is written."""
LARGEST_BODY_BYTES: Final = 256 * 1024 * 1024
_PIECE_BYTES: Final = 8 * 1024 * 1024


class _Connection(NamedTuple):
    """A request that needs only its parameters, and what carries it.

    `Session.send` would prepare each request anew, keep cookies, and look where redirects lead.
    """

    request: requests.PreparedRequest
    adapter: BaseAdapter


class Client:
    """Reads pages of audit events (interface.md 4.1); each thread has a connection of its own.

    Args:
        settings: where to ask, as whom, and how patiently.
        new_session: makes a connection.
        gate: every request goes through it.
        logger: is told of each retry.
        order: ``asc`` or ``desc``.

    Attributes:
        date: the Date header of the newest answer, None where it had none.
    """

    date: str | None = None

    def __init__(
        self,
        settings: Settings,
        new_session: Callable[[], requests.Session],
        *,
        gate: Gate,
        logger: Logger,
        order: str = "asc",
    ) -> None:
        self._settings = settings
        self._order = order
        self._new_session = new_session
        self._gate = gate
        self._logger = logger
        self._of_thread = threading.local()
        self._authenticator = AccessTokenAuthenticator(
            token=settings.access_token,
            base_url=settings.base_url,
            token_file=settings.access_token_file,
        )
        self._url = f"{settings.base_url}/v1/organizations/{settings.organization_id}/audit_events"
        # Proxies and certificate bundles, read from the environment once. Plain http is to this
        # machine: no proxy may see the token.
        self._environment: dict[str, Any] = dict(
            new_session().merge_environment_settings(self._url, {"http": ""}, True, None, None)
        )

    def envelopes(self, window: Window) -> Iterator[Envelope]:
        """Every page of a window, in the service's order; the last is the one without a cursor.

        Raises:
            ServiceError: as `fetch`; or the service gave a cursor twice, or empty pages without
                end.
        """
        paginator, empty_pages = NextCursorPaginator(), 0
        while not paginator.finished:
            envelope = self.fetch(window, paginator.current_value)
            yield envelope
            empty_pages = 0 if envelope.texts else empty_pages + 1
            with about(window):
                if empty_pages > MOST_EMPTY_PAGES:
                    raise service_error("AE-EMPTY-PAGES", details=f"{empty_pages} in a row")
                paginator.advance(envelope)  # type: ignore[arg-type]  # see there

    def fetch(self, window: Window, cursor: str | None) -> Envelope:
        """One page of a window, asked for again as often as `max_retries` allows.

        Raises:
            ServiceError: what the last answer was, or what kept it from coming.
        """
        backoffs = backoff.expo(max_value=LONGEST_BACKOFF_SECONDS)
        next(backoffs)
        retries = 0
        while True:
            try:
                with self._gate.turn() as turn, about(window):
                    envelope = self._ask(window, cursor)
                    turn.is_good = True
                    return envelope
            except RetryableError as error:
                if retries >= self._settings.max_retries:
                    raise _used_up(error, retries) from None
                retries += 1
                self._put_off(turn, error, backoff.full_jitter(next(backoffs)), retries)

    def _ask(self, window: Window, cursor: str | None) -> Envelope:
        query = self._query(window, cursor)
        response, body = self._send(query)
        for _ in range(MOST_NEW_TOKENS):
            is_refused = response.status_code == HTTPStatus.UNAUTHORIZED
            if not is_refused or not self._authenticator.has_another_token(response):
                break
            self._gate.sent_again()
            response, body = self._send(query)
        self.date = response.headers.get("Date")
        if response.status_code != HTTPStatus.OK:
            raise self._failure(response, body, cursor)
        return split_page(body)

    def _query(self, window: Window, cursor: str | None) -> str:
        settings = self._settings
        parameters = {
            "order": self._order,
            "startTime": window.start_time,
            "endTime": window.end_time,
            "pageSize": str(settings.page_size),
            "actionTypes": ",".join(settings.action_types) or None,
            "cursor": cursor,
        }
        given = {name: value for name, value in parameters.items() if value is not None}
        return urlencode(given, quote_via=quote, safe="")

    def _send(self, query: str) -> tuple[requests.Response, bytes]:
        """Send one request and read the whole answer, whatever its status."""
        timeout = self._settings.request_timeout_seconds
        try:
            connection = self._connection
            request = connection.request.copy()
            request.url = f"{request.url}?{query}"
            self._authenticator(request)
            response = connection.adapter.send(
                request, timeout=(timeout, timeout), **self._environment
            )
            return response, self._read(response)
        except (exceptions.RequestException, HTTPError, UnicodeError, OSError) as error:
            raise _no_answer(error) from None

    @property
    def _connection(self) -> _Connection:
        """The connection of the thread that asks for it."""
        if not hasattr(self._of_thread, "connection"):
            session = self._new_session()
            request = requests.Request(
                "GET",
                self._url,
                headers={"User-Agent": self._settings.user_agent, "Accept": "application/json"},
                auth=lambda request: request,  # keeps out what .netrc says
            )
            self._of_thread.connection = _Connection(
                session.prepare_request(request), session.get_adapter(self._url)
            )
        connection: _Connection = self._of_thread.connection
        return connection

    def _read(self, response: requests.Response) -> bytes:
        """The body, in large pieces: `response.content` would read it 10 kB at a time.

        Raises:
            ContractError: it is larger than `LARGEST_BODY_BYTES`, unpacked.
        """
        length = response.headers.get("Content-Length", "")
        is_packed = "Content-Encoding" in response.headers
        is_small = length.isdecimal() and len(length) <= 18 and int(length) <= LARGEST_BODY_BYTES
        if is_small and not is_packed:
            body: bytes = response.raw.read()  # twice as fast as in pieces
            return body
        pieces, size = [], 0
        while piece := response.raw.read(_PIECE_BYTES, decode_content=True):
            pieces.append(piece)
            size += len(piece)
            if size > LARGEST_BODY_BYTES:
                raise service_error(
                    "AE-TOO-LARGE", details=f"more than {LARGEST_BODY_BYTES:,} bytes"
                )
        return b"".join(pieces)

    def _failure(
        self, response: requests.Response, body: bytes, cursor: str | None
    ) -> ServiceError:
        """The error of an answer whose status is not 200 (interface.md, section 7)."""
        status = response.status_code
        said = f"status {status}, {self._said(body)}"
        if 300 <= status < 400:
            location = shown(response.headers.get("Location", ""))
            return service_error("AE-REDIRECT", details=f"status {status} to {location}")
        if status == HTTPStatus.BAD_REQUEST and cursor is not None:
            return service_error("AE-CURSOR-REFUSED", details=said)
        if status == HTTPStatus.REQUEST_TIMEOUT:
            return service_error("AE-TIMEOUT", details=said)
        case = "AE-500" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else f"AE-{status}"
        error = service_error(case if case in _STATUSES else "AE-STATUS", details=said)
        if isinstance(error, RetryableError):
            now = http_date(response.headers.get("Date")) or datetime.now(UTC)
            header = response.headers.get("Retry-After")
            error.retry_after_seconds = retry_after_seconds(header, now=now)
        return error

    def _said(self, body: bytes) -> str:
        """The service's errCode, msg and vars, or the start of what came instead."""
        try:
            error = json.loads(body)
            parts = [f"{key} {shown(_text(error[key]))}" for key in ("errCode", "msg", "vars")]
        except (ValueError, KeyError, TypeError, RecursionError):
            return f"body {shown(body.decode('utf-8', 'backslashreplace'))}"
        return ", ".join(parts)

    def _put_off(
        self, turn: Turn, error: RetryableError, backoff_seconds: float, retry: int
    ) -> None:
        """Wait before a request is sent again; with 429, all of them wait."""
        asked = error.retry_after_seconds
        if asked is not None and asked > LONGEST_RETRY_AFTER_SECONDS:
            too_long = service_error(
                "AE-RETRY-AFTER", details=f"Retry-After of {asked:.0f} seconds; {error.details}"
            )
            too_long.where = error.where
            raise too_long from None
        seconds = pause_seconds(asked, backoff_seconds)
        self._logger.warning(
            "Asking again in %.1f s, retry %d of %d: %s",
            seconds, retry, self._settings.max_retries, error.happened,
        )  # fmt: skip
        if error.code == "AE-429":
            self._gate.hold(turn, seconds)
        else:
            self._gate.pause(seconds)


_STATUSES = frozenset({"AE-400", "AE-401", "AE-403", "AE-404", "AE-429", "AE-500"})


@contextmanager
def about(window: Window) -> Iterator[None]:
    """Says in an error which window it is about."""
    try:
        yield
    except ServiceError as error:
        error.where = f"in {window}"
        raise


def _no_answer(error: Exception) -> ServiceError:
    """What kept an answer from coming, or from coming whole."""
    cause = _innermost(error)
    return service_error(
        _case_of(error, cause), details=f"{type(cause).__name__}: {shown(str(cause))}"
    )


def _case_of(error: Exception, cause: BaseException) -> str:
    if isinstance(error, exceptions.Timeout) or isinstance(cause, ReadTimeoutError | TimeoutError):
        return "AE-TIMEOUT"
    if isinstance(error, ProtocolError | DecodeError):
        return "AE-CUT"
    if isinstance(cause, ssl.SSLCertVerificationError) or getattr(cause, "library", "") == "X509":
        return "AE-CERTIFICATE"
    if isinstance(error, exceptions.ConnectionError | HTTPError | ConnectionError):
        return "AE-CONNECTION"
    if isinstance(error, OSError) and not isinstance(error, exceptions.RequestException):
        return "AE-CERTIFICATE"  # the bundle that REQUESTS_CA_BUNDLE names is not there
    return "AE-ADDRESS"


def _used_up(error: RetryableError, retries: int) -> RetryableError:
    gave_up = f"; gave up after {retries} retries" if retries else ""
    final = RetryableError(error.code, details=f"{error.details}{gave_up}")
    final.where = error.where
    return final


def _innermost(error: BaseException) -> BaseException:
    """The exception that requests and urllib3 wrapped."""
    while True:
        inner = error.reason if isinstance(error, MaxRetryError) else _first_argument(error)
        if not isinstance(inner, BaseException):
            return error
        error = inner


def _first_argument(error: BaseException) -> object:
    return next((argument for argument in error.args if isinstance(argument, BaseException)), None)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
