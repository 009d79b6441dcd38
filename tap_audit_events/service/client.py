"""Fetches one page from the service: the request, its retries, and its response."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from logging import Logger
from typing import Final
from urllib.parse import quote, urlencode

from requests import PreparedRequest, Response

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import RetryableError
from tap_audit_events.events.page import Page, parse_page
from tap_audit_events.events.window import Window
from tap_audit_events.service import no_content
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.service.rate_limiter import ClosedError, Permit, RateLimiter
from tap_audit_events.service.responses import (
    NETWORK_ERRORS,
    network_error,
    read_body,
    read_error,
    status_error,
)
from tap_audit_events.service.retries import Retries
from tap_audit_events.service.transport import Transport

MAX_NEW_TOKENS: Final = 3
"""Maximum number of times that a request is sent again with a newer token. More than one, because
the token's file may be read while it is written."""

MEGABYTE: Final = 1_000_000


@dataclass(eq=False)
class Client:
    """Requests pages of one organization's events; safe to use from several threads.

    Attributes:
        date: the Date header of the newest response, None if it had none.
    """

    settings: Settings
    transport: Transport
    authenticator: AccessTokenAuthenticator
    limiter: RateLimiter
    logger: Logger
    order: str = "asc"
    date: str | None = None
    _nothing_follows: no_content.NothingFollows = field(default_factory=no_content.NothingFollows)

    def fetch(self, window: Window, cursor: str | None) -> Page:
        """One page of a window, retried up to `max_retries` times.

        Raises:
            ServiceError: the error of the last response, or the reason why no response arrived.
            ClosedError: the run is over.
        """
        retries = Retries(self.settings.max_retries, self.logger)
        while True:
            with self.limiter.permit() as permit:
                try:
                    page = self._page(window, cursor)
                except RetryableError as error:
                    seconds = self._seconds_before_retry(error, permit, retries)
                    if seconds is None:
                        raise
                else:
                    permit.succeeded = True
                    self._nothing_follows.check(page)  # a retry would not help
                    return page
            self.limiter.pause(seconds)

    def _seconds_before_retry(
        self, error: RetryableError, permit: Permit, retries: Retries
    ) -> float | None:
        """How long to wait after an error; None if no retry is left."""
        if self.limiter.run.is_closed:
            raise ClosedError from None
        seconds = retries.seconds_before_next(error)
        is_limited = error.code == "AE-429"  # all requests wait, even if this one is not retried
        if is_limited or (error.is_gateway and error.retry_after_seconds):
            self.limiter.rate_limited(permit, seconds or error.retry_after_seconds or 0.0)
        return seconds

    def _page(self, window: Window, cursor: str | None) -> Page:
        status, body = self._response(window, cursor)
        if status == HTTPStatus.NO_CONTENT:
            return self._empty_page(window)
        return self._parsed(body)

    def _parsed(self, body: bytes) -> Page:
        return parse_page(body, sets_aside=self.settings.quarantine_file is not None)

    def _empty_page(self, window: Window) -> Page:
        """The page for status 204, if a second response shows that there is nothing."""
        rest = no_content.rest_of_range(window)
        self.limiter.count_resend()
        status, body = self._response(rest, None)
        if status == HTTPStatus.NO_CONTENT:
            self._nothing_follows.after(window.start)
            return Page()
        page = self._parsed(body)
        if rest == window:
            return page
        if not no_content.is_empty(window, page):
            raise no_content.untrue()
        return Page(unusable=page.unusable)  # their times are not known

    def _response(self, window: Window, cursor: str | None) -> tuple[int, bytes]:
        """The status and the body of the response; `ServiceError` unless it is 200 or 204.

        Status 204 is an error if there was a cursor, as a cursor announces events.
        """
        response, body = self._exchange(window, cursor)
        for _ in range(MAX_NEW_TOKENS):
            is_refused = response.status_code == HTTPStatus.UNAUTHORIZED
            if not is_refused or not self.authenticator.has_new_token(response):
                break
            self.limiter.count_resend()
            response, body = self._exchange(window, cursor)
        self.date = response.headers.get("Date")
        accepted = (HTTPStatus.OK,) if cursor else (HTTPStatus.OK, HTTPStatus.NO_CONTENT)
        if response.status_code not in accepted:
            raise status_error(response, body, window=window, has_cursor=cursor is not None)
        return response.status_code, body

    def _exchange(self, window: Window, cursor: str | None) -> tuple[Response, bytes]:
        """Send one request and read its response, whatever the status.

        `ServiceError` if no response arrived, or if a page is incomplete or too large.
        """
        settings = self.settings
        try:
            with self.transport.response_to(
                self._request(window, cursor), timeout_seconds=settings.request_timeout_seconds
            ) as response:
                if response.status_code == HTTPStatus.OK:
                    most_bytes = settings.max_response_megabytes * MEGABYTE
                    return response, read_body(response, most_bytes)
                return response, read_error(response)
        except NETWORK_ERRORS as error:
            raise network_error(error) from None

    def _request(self, window: Window, cursor: str | None) -> PreparedRequest:
        settings = self.settings
        path = f"/v1/organizations/{settings.organization_id}/audit_events"
        headers = {
            "User-Agent": settings.user_agent,
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "Connection": "keep-alive",
        }
        request = PreparedRequest()
        request.prepare(
            method="GET",
            url=f"{settings.base_url}{path}?{self._query(window, cursor)}",
            headers=headers,
            auth=self.authenticator,
        )
        return request

    def _query(self, window: Window, cursor: str | None) -> str:
        settings = self.settings
        parameters = {
            "order": self.order,
            "startTime": window.start_time,
            "endTime": window.end_time,
            "pageSize": settings.page_size,
            "actionTypes": ",".join(settings.action_types) or None,
            "cursor": cursor,
        }
        given = {name: value for name, value in parameters.items() if value is not None}
        return urlencode(given, quote_via=quote)
