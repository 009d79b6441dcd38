"""One page from the service: the request, its retries, and what the answer means."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from logging import Logger
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import backoff
import requests
from requests import exceptions
from requests.adapters import BaseAdapter
from urllib3.exceptions import (
    HTTPError,
)

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import RetryableError, ServiceError, service_error
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.page import Envelope, split_page
from tap_audit_events.events.window import AsksAhead, Window
from tap_audit_events.service.adaptive_rate import (
    LONGEST_BACKOFF_SECONDS,
    LONGEST_RETRY_AFTER_SECONDS,
    pause_seconds,
)
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.service.connections import AheadAdapter, told_bytes
from tap_audit_events.service.likely import likely_cursor, likely_newest
from tap_audit_events.service.pagination import NextCursorPaginator
from tap_audit_events.service.rate_limiter import Gate, Turn
from tap_audit_events.service.responses import failure, no_answer

MOST_EMPTY_PAGES: Final = 1000
MOST_NEW_TOKENS: Final = 3
"""How often one request is sent with another token: its file may be read while it is written."""
LARGEST_ERROR_BYTES: Final = 64 * 1024
"""Of an answer that is no page: what it says is shown in part, and the rest is not read."""
FAILED_AHEAD_SHARE: Final = 0.05
"""Of the requests sent ahead; where more get no answer, none is sent ahead."""
MEGABYTE: Final = 1_000_000
_PIECE_BYTES: Final = 8 * 1024 * 1024


def never(newest: Instant | None) -> bool:
    """No."""
    del newest
    return False


class _Ahead(NamedTuple):
    """A request that was sent before the page before it was looked at."""

    cursor: str | None
    request: requests.PreparedRequest
    adapter: AheadAdapter
    turn: Turn


@dataclass(slots=True)
class _Line:
    """A request that needs only its parameters, and what carries it, one at a time.

    `Session.send` would prepare each request anew, keep cookies, and look where redirects lead.

    Attributes:
        carried_by: what carried the newest request.
        ahead: what was sent and not answered yet.
        sent_ahead: how often a request was sent ahead.
        failed_ahead: of them, how many got no answer.
    """

    request: requests.PreparedRequest
    adapter: BaseAdapter
    carried_by: Any = None
    ahead: _Ahead | None = None
    sent_ahead: int = 0
    failed_ahead: int = 0

    def take_ahead(self) -> _Ahead | None:
        ahead, self.ahead = self.ahead, None
        return ahead

    def leave(self, response: requests.Response) -> None:
        """Close the connection, for the rest of an answer is not read."""
        response.close()
        if self.carried_by is not None:
            self.carried_by.close()


class Client:
    """Reads pages of audit events (interface.md 4.1); whoever reads has a connection of its own.

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
        self._free_lines: list[_Line] = []
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

    def envelopes(
        self, window: Window, asks_ahead: AsksAhead = never
    ) -> Generator[Envelope, None, None]:
        """Every page of a window, in the service's order; the last is the one without a cursor.

        Args:
            window: what to ask for.
            asks_ahead: whether the page after the one that has just come may be asked for before
                that one is looked at, which saves time where the service replies quickly.

        Raises:
            ServiceError: as `fetch`; or the service gave a cursor twice, or empty pages without
                end.
        """
        paginator, empty_pages = NextCursorPaginator(), 0
        line = None
        try:
            with about(window):
                while not paginator.finished:
                    line = line or self._line()
                    answer = [self._fetch(line, window, paginator.current_value, asks_ahead)]
                    if line.ahead is None:
                        self._set_free(line)
                        line = None
                    empty_pages = 0 if answer[0].texts else empty_pages + 1
                    end = answer[0].without_events
                    yield answer.pop()  # it must not be kept here until the next is wanted
                    if empty_pages > MOST_EMPTY_PAGES:
                        raise service_error("AE-EMPTY-PAGES", details=f"{empty_pages} in a row")
                    paginator.advance(end)  # type: ignore[arg-type]  # see there
        finally:
            if line:
                self._set_free(line)

    def fetch(self, window: Window, cursor: str | None) -> Envelope:
        """One page of a window, asked for again as often as `max_retries` allows.

        Raises:
            ServiceError: what the last answer was, or what kept it from coming.
        """
        with about(window):
            line = self._line()
            try:
                return self._fetch(line, window, cursor, never)
            finally:
                self._set_free(line)

    def _fetch(
        self, line: _Line, window: Window, cursor: str | None, asks_ahead: AsksAhead
    ) -> Envelope:
        backoffs = backoff.expo(max_value=LONGEST_BACKOFF_SECONDS)
        next(backoffs)
        retries = 0
        while True:
            try:
                with self._gate.turn(self._turn_of_ahead(line, cursor)) as turn:
                    body = self._ask(line, window, cursor)
                    turn.is_good = True
                may_ask = asks_ahead(likely_newest(body))
                is_next_asked = may_ask and self._send_ahead(line, window, body)
                return split_page(body, is_next_asked=is_next_asked)
            except RetryableError as error:
                if retries >= self._settings.max_retries:
                    raise _used_up(error, retries) from None
                retries += 1
                self._put_off(turn, error, backoff.full_jitter(next(backoffs)), retries)

    def _ask(self, line: _Line, window: Window, cursor: str | None) -> bytes:
        """The body of an answer that is a page."""
        response, body = self._send(line, window, cursor)
        for _ in range(MOST_NEW_TOKENS):
            is_refused = response.status_code == HTTPStatus.UNAUTHORIZED
            if not is_refused or not self._authenticator.has_another_token(response):
                break
            self._gate.sent_again()
            response, body = self._send(line, window, cursor)
        self.date = response.headers.get("Date")
        if response.status_code != HTTPStatus.OK:
            raise failure(response, body, has_cursor=cursor is not None)
        return body

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

    def _send(
        self, line: _Line, window: Window, cursor: str | None
    ) -> tuple[requests.Response, bytes]:
        """Send one request and read the whole answer, whatever its status."""
        timeout = self._settings.request_timeout_seconds
        ahead = line.take_ahead()
        try:
            if ahead:
                response = ahead.adapter.take_answer(line.carried_by, ahead.request, timeout)
            else:
                request = self._request(line, window, cursor)
                response = line.adapter.send(
                    request, timeout=(timeout, timeout), **self._environment
                )
                line.carried_by = response.raw.connection
            if response.status_code != HTTPStatus.OK:
                return response, _start_of(response, line)
            return response, self._read(response, line)
        except (
            exceptions.RequestException, HTTPError, HTTPException, UnicodeError, OSError,
        ) as error:  # fmt: skip
            if ahead:
                line.failed_ahead += 1
                line.carried_by.close()
            raise no_answer(error) from None

    def _request(self, line: _Line, window: Window, cursor: str | None) -> requests.PreparedRequest:
        request = line.request.copy()
        request.url = f"{request.url}?{self._query(window, cursor)}"
        self._authenticator(request)
        return request

    # What is sent ahead

    def _send_ahead(self, line: _Line, window: Window, body: bytes) -> bool:
        """Ask for the page behind a body that was not looked at; say whether it was asked for."""
        cursor = likely_cursor(body)
        if cursor is None or not isinstance(line.adapter, AheadAdapter):
            return False
        if line.failed_ahead > line.sent_ahead * FAILED_AHEAD_SHARE:
            return False  # it seems to close connections without saying so
        turn = self._gate.turn_at_once()
        if turn is None:
            return False
        request = self._request(line, window, cursor)
        if not line.adapter.send_ahead(line.carried_by, request, self._environment["proxies"]):
            self._gate.end(turn)
            return False
        line.ahead = _Ahead(cursor, request, line.adapter, turn)
        line.sent_ahead += 1
        return True

    def _turn_of_ahead(self, line: _Line, cursor: str | None) -> Turn | None:
        """The turn of a request if it was sent ahead; what was sent instead is forgotten."""
        if line.ahead and line.ahead.cursor == cursor:
            return line.ahead.turn
        self._forget_ahead(line)
        return None

    def _forget_ahead(self, line: _Line) -> None:
        """Close the connection that waits for an answer nobody needs."""
        if ahead := line.take_ahead():
            self._gate.end(ahead.turn)
            line.carried_by.close()

    def _line(self) -> _Line:
        """A line for whoever asks for it, until it is set free.

        Raises:
            ServiceError: no request can be made for that address.
        """
        with suppress(IndexError):
            return self._free_lines.pop()
        session = self._new_session()
        request = requests.Request(
            "GET",
            self._url,
            headers={"User-Agent": self._settings.user_agent, "Accept": "application/json"},
            auth=lambda request: request,  # keeps out what .netrc says
        )
        try:
            return _Line(session.prepare_request(request), session.get_adapter(self._url))
        except (exceptions.RequestException, UnicodeError) as error:
            raise no_answer(error) from None

    def _set_free(self, line: _Line) -> None:
        """Let others have it; nothing is under way on it any more."""
        self._forget_ahead(line)
        self._free_lines.append(line)

    def _read(self, response: requests.Response, line: _Line) -> bytes:
        """The body, in large pieces: `response.content` would read it 10 kB at a time.

        Raises:
            ContractError: it is larger than `max_response_megabytes`, unpacked.
        """
        most = self._settings.max_response_megabytes * MEGABYTE
        told = told_bytes(response.headers)
        if told is not None and told <= most:
            body: bytes = response.raw.read()  # twice as fast as in pieces
            return body
        pieces, size = [], told or 0
        while size <= most and (piece := response.raw.read(_PIECE_BYTES, decode_content=True)):
            pieces.append(piece)
            size += len(piece)
        if size > most:
            line.leave(response)
            raise service_error("AE-TOO-LARGE", details=f"more than {most:,} bytes")
        return b"".join(pieces)

    def _put_off(
        self, turn: Turn, error: RetryableError, backoff_seconds: float, retry: int
    ) -> None:
        """Wait before a request is sent again; with 429, all of them wait."""
        asked = error.retry_after_seconds
        if asked is not None and asked > LONGEST_RETRY_AFTER_SECONDS:
            too_long = service_error(
                "AE-RETRY-AFTER", details=f"Retry-After of {asked:.0f} seconds; {error.details}"
            )
            too_long.window = error.window
            raise too_long from None
        seconds = pause_seconds(asked, backoff_seconds)
        self._logger.warning(
            "Asking again in %.1f s, retry %d of %d: %s",
            seconds, retry, self._settings.max_retries, error.summary,
        )  # fmt: skip
        if error.code == "AE-429":
            self._gate.hold(turn, seconds)
        else:
            self._gate.pause(seconds)


def _start_of(response: requests.Response, line: _Line) -> bytes:
    """What an answer that is no page begins with; if there is more, the connection is closed."""
    pieces: list[bytes] = []
    size = 0
    while size <= LARGEST_ERROR_BYTES:
        piece = response.raw.read(LARGEST_ERROR_BYTES, decode_content=True)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
    line.leave(response)
    return b"".join(pieces)[:LARGEST_ERROR_BYTES]


@contextmanager
def about(window: Window) -> Iterator[None]:
    """Says in an error which window it is about."""
    try:
        yield
    except ServiceError as error:
        error.window = str(window)
        raise


def _used_up(error: RetryableError, retries: int) -> RetryableError:
    gave_up = f"; gave up after {retries} retries" if retries else ""
    final = RetryableError(error.code, details=f"{error.details}{gave_up}")
    final.window = error.window
    return final
