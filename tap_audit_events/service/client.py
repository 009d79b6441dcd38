"""One page from the service: the request, its retries, and what the response means."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from http import HTTPStatus
from logging import Logger
from typing import Any, Final
from urllib.parse import quote, urlencode

from requests import PreparedRequest, Request, Response, Session, exceptions
from urllib3.exceptions import MaxRetryError, ProtocolError, ProxyError

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import RetryableError, ServiceError
from tap_audit_events.events.page import Page, parse_page
from tap_audit_events.events.window import Window
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.service.body import LARGEST_ERROR_BYTES, read_body, read_start
from tap_audit_events.service.connection import abort
from tap_audit_events.service.proxies import check_proxy
from tap_audit_events.service.rate_limiter import ClosedError, RateLimiter
from tap_audit_events.service.responses import NETWORK_ERRORS, network_error, status_error
from tap_audit_events.service.retries import Retries

MOST_NEW_TOKENS: Final = 3
"""How often a request is sent with a newer token: its file may be read while it is written."""

MEGABYTE: Final = 1_000_000


class _Connection(threading.local):
    """What each thread has for itself: a session, and whether it has carried a request."""

    session: Session | None = None
    is_used = False


class Client:
    """Requests pages of audit events (interface.md 4.1); safe to use from several threads.

    Args:
        settings: which organization, with which token, with how much patience.
        new_session: makes a session for a thread.
        limiter: holds every request back until it may be sent.
        logger: is told of each retry.
        order: ``asc`` or ``desc``.

    Raises:
        RefusedError: the environment names a proxy that cannot be used.

    Attributes:
        date: the Date header of the newest response, None if it had none.
    """

    date: str | None = None

    def __init__(
        self,
        settings: Settings,
        new_session: Callable[[], Session],
        *,
        limiter: RateLimiter,
        logger: Logger,
        order: str = "asc",
    ) -> None:
        self._settings = settings
        self._order = order
        self._new_session = new_session
        self._limiter = limiter
        self._logger = logger
        self._connection = _Connection()
        self._sessions: list[Session] = []
        self._lock = threading.Lock()
        self._is_closed = False
        self._authenticator = AccessTokenAuthenticator(
            token=settings.access_token,
            base_url=settings.base_url,
            token_file=settings.access_token_file,
            logger=logger,
        )
        self._url = f"{settings.base_url}/v1/organizations/{settings.organization_id}/audit_events"
        # Proxies and certificate bundles, read from the environment once.
        self._transport: dict[str, Any] = dict(
            new_session().merge_environment_settings(self._url, {}, True, None, None)
        )
        if self._url.startswith("http://"):  # only to loopback: no proxy may see the token
            self._transport["proxies"] = {}
        check_proxy(self._url, self._transport["proxies"], os.environ)

    def fetch(self, window: Window, cursor: str | None) -> Page:
        """One page of a window, retried up to `max_retries` times.

        Raises:
            ServiceError: the last response's error, or why none arrived.
        """
        retries = Retries(self._settings.max_retries, self._logger)
        with errors_name(window):
            while True:
                page = self._attempt(window, cursor, retries)
                if page is not None:
                    return page

    def close(self) -> None:
        """End every request that waits for its response, with `ClosedError`."""
        with self._lock:
            self._is_closed = True
            for session in self._sessions:
                abort(session)

    def _attempt(self, window: Window, cursor: str | None, retries: Retries) -> Page | None:
        """The page; None, after a wait, if the request should be sent again."""
        with self._limiter.permit() as permit:
            try:
                page = parse_page(self._body_of_page(window, cursor))
                if page.malformed is not None:
                    page.malformed.window = str(window)
            except RetryableError as error:
                if self._is_closed:
                    raise ClosedError from None
                seconds = retries.seconds_before_next(error)
                if error.code == "AE-429":
                    self._limiter.rate_limited(permit, seconds)
                    return None
            else:
                permit.succeeded = True
                return page
        self._limiter.pause(seconds)
        return None

    def _body_of_page(self, window: Window, cursor: str | None) -> bytes:
        response, body = self._exchange(window, cursor)
        for _ in range(MOST_NEW_TOKENS):
            is_refused = response.status_code == HTTPStatus.UNAUTHORIZED
            if not is_refused or not self._authenticator.has_new_token(response):
                break
            self._limiter.count_resend()
            response, body = self._exchange(window, cursor)
        self.date = response.headers.get("Date")
        if response.status_code != HTTPStatus.OK:
            raise status_error(response, body, has_cursor=cursor is not None)
        return body

    def _exchange(self, window: Window, cursor: str | None) -> tuple[Response, bytes]:
        """Send one request and read its response, whatever the status.

        Raises:
            ServiceError: no response arrived, or not all of it.
        """
        try:
            response = self._send(self._request(window, cursor))
            if response.status_code == HTTPStatus.OK:
                return response, read_body(
                    response, self._settings.max_response_megabytes * MEGABYTE
                )
            body = read_start(response, LARGEST_ERROR_BYTES)
            response.raw.close()  # the rest is not read; without a rest, the connection stays open
            return response, body
        except NETWORK_ERRORS as error:
            raise network_error(error) from None

    def _send(self, request: PreparedRequest) -> Response:
        """The start of a response.

        A connection that the service closed while it was idle is replaced once, at once: that is
        no failure, and costs no retry.
        """
        connection = self._connection
        was_used, connection.is_used = connection.is_used, False
        try:
            response = self._send_once(request)
        except exceptions.ConnectionError as error:
            if not was_used or self._is_closed or not _was_closed(error):
                raise
            self._logger.debug("An idle connection was closed: the request is sent on a new one")
            self._session().close()
            response = self._send_once(request)
        connection.is_used = True
        return response

    def _send_once(self, request: PreparedRequest) -> Response:
        """Send it past `Session.send`, which follows redirects, keeps cookies and costs time."""
        timeout = self._settings.request_timeout_seconds
        adapter = self._session().get_adapter(self._url)
        return adapter.send(request, timeout=(timeout, timeout), **self._transport)

    def _session(self) -> Session:
        connection = self._connection
        if connection.session is None:
            connection.session = self._new_session()
            with self._lock:
                self._sessions.append(connection.session)
                if self._is_closed:
                    abort(connection.session)
        return connection.session

    def _request(self, window: Window, cursor: str | None) -> PreparedRequest:
        request = self._prepared.copy()
        request.url = f"{request.url}?{self._query(window, cursor)}"
        return self._authenticator(request)

    @cached_property
    def _prepared(self) -> PreparedRequest:
        """What all requests have in common."""
        settings = self._settings
        request = Request(
            "GET",
            self._url,
            headers={"User-Agent": settings.user_agent, "Accept": "application/json"},
            auth=lambda request: request,  # so that .netrc is not read
        )
        return self._session().prepare_request(request)

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
        return urlencode(given, quote_via=quote)


def _was_closed(error: exceptions.ConnectionError) -> bool:
    """Whether a connection broke; that none could be made is something else."""
    causes = map(_unwrapped, error.args)
    return any(isinstance(cause, ProtocolError | ConnectionError) for cause in causes)


def _unwrapped(error: object) -> object:
    """What urllib3 wrapped: it blames the proxy if a connection through one breaks."""
    reason = error.reason if isinstance(error, MaxRetryError) else error
    return reason.original_error if isinstance(reason, ProxyError) else reason


@contextmanager
def errors_name(window: Window) -> Iterator[None]:
    """Errors say which window they are about."""
    try:
        yield
    except ServiceError as error:
        error.window = str(window)
        raise
