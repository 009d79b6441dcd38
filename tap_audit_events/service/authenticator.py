"""The bearer authenticator (interface.md, section 5): the token goes to one place only."""

from __future__ import annotations

import threading
from urllib.parse import urlsplit

import requests
from singer_sdk.authenticators import BearerTokenAuthenticator

from tap_audit_events.config.token_file import read_token_file
from tap_audit_events.errors.exceptions import service_error
from tap_audit_events.errors.redaction import register_secret


class AccessTokenAuthenticator(BearerTokenAuthenticator):
    """Puts the access token into the Authorization header of requests to the configured service.

    Args:
        token: the personal access token, without ``Bearer``.
        base_url: its scheme, host and port are the only ones the token is sent to.
        token_file: the file that holds the token, where it may change.
    """

    def __init__(self, *, token: str, base_url: str, token_file: str | None = None) -> None:
        super().__init__(token=token)
        self._base = f"{base_url}/"
        self._origin = _origin(base_url)
        self._token_file = token_file
        self._lock = threading.Lock()

    def authenticate_request(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the header.

        Raises:
            RefusedError: the request goes elsewhere.
        """
        url = request.url or ""
        if not url.startswith(self._base) and _origin(url) != self._origin:
            raise service_error("AE-REDIRECT", details="the request is for another scheme or host")
        request.headers.update(self.auth_headers)
        return request

    def has_another_token(self, refused: requests.Response) -> bool:
        """Whether a request that was refused can be sent with another token, which is then used.

        The file is read again, unless another thread has just done so.
        """
        if self._token_file is None:
            return False
        sent = refused.request.headers["Authorization"]
        with self._lock:
            if sent == self.auth_headers["Authorization"]:
                self._read_again(self._token_file)
            return bool(sent != self.auth_headers["Authorization"])

    def _read_again(self, path: str) -> None:
        try:
            token = read_token_file(path)
        except ValueError as error:
            self.logger.warning("access_token_file %s", error)
            return
        register_secret(token)
        bearer = f"Bearer {token}"
        if bearer != self.auth_headers["Authorization"]:
            self.logger.info("access_token_file holds another token now: the run goes on with it")
            self.auth_headers["Authorization"] = bearer


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
