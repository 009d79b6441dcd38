"""The bearer authenticator (interface.md, section 5): the token is sent only to the service."""

from __future__ import annotations

import threading
from contextlib import suppress
from logging import Logger
from urllib.parse import urlsplit

from requests import PreparedRequest, Response
from requests.auth import AuthBase

from tap_audit_events.config.access_token import read_token_file
from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import service_error
from tap_audit_events.errors.redaction import register_secret


class AccessTokenAuthenticator(AuthBase):
    """Adds the access token to requests for the configured service, and masks it from now on.

    It is safe to use from several threads. The token file is read in the constructor, as the
    settings may be old or from another process, and again if the service refuses the token. A
    change of the token is logged.
    """

    def __init__(self, settings: Settings, logger: Logger) -> None:
        token = settings.access_token
        self._token_file = settings.access_token_file
        if self._token_file is not None:
            with suppress(ValueError):  # logged if the service refuses the older token
                token = read_token_file(self._token_file)
        register_secret(token)
        self._header = f"Bearer {token}"
        self._origin = _origin(settings.base_url)
        self._logger = logger
        self._lock = threading.Lock()

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the header; `RefusedError` if the request is for another scheme, host or port."""
        if _origin(request.url or "") != self._origin:
            raise service_error("AE-ADDRESS", details="the request is for another scheme or host")
        request.headers["Authorization"] = self._header
        return request

    def has_new_token(self, refused: Response) -> bool:
        """Whether a request that got status 401 can be sent again with another token.

        The token file is read, unless another thread has just read it.
        """
        if self._token_file is None:
            return False
        sent = refused.request.headers["Authorization"]
        with self._lock:
            if sent == self._header:
                self._read_token_file(self._token_file)
            return bool(sent != self._header)

    def _read_token_file(self, path: str) -> None:
        try:
            token = read_token_file(path)
        except ValueError as error:
            self._logger.warning("access_token_file %s", error)
            return
        register_secret(token)
        header = f"Bearer {token}"
        if header != self._header:
            self._logger.info("access_token_file holds a new token: the run continues with it")
            self._header = header


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
