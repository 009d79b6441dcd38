"""The bearer authenticator (interface.md, section 5): the token goes to one place only."""

from __future__ import annotations

from urllib.parse import urlsplit

import requests
from singer_sdk.authenticators import BearerTokenAuthenticator

from tap_audit_events.errors import service_error


class AccessTokenAuthenticator(BearerTokenAuthenticator):
    """Puts the access token into the Authorization header of requests to the configured service.

    Args:
        token: the personal access token, without ``Bearer``.
        base_url: its scheme, host and port are the only ones the token is sent to.
    """

    def __init__(self, *, token: str, base_url: str) -> None:
        super().__init__(token=token)
        self._origin = _origin(base_url)

    def authenticate_request(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the header.

        Raises:
            RefusedError: the request goes elsewhere.
        """
        if _origin(request.url or "") != self._origin:
            raise service_error("AE-REDIRECT", details="the request is for another scheme or host")
        request.headers.update(self.auth_headers)
        return request


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
