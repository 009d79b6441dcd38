"""The connection to a receiver: one request at a time, compressed, with the secret in a header."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from requests import PreparedRequest

from tap_audit_events.errors.exceptions import ServiceError
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.outputs.receivers.endpoint import Endpoint
from tap_audit_events.outputs.receivers.responses import (
    Concerns,
    Received,
    ReceiverError,
    no_response,
    received,
)
from tap_audit_events.service.connection import Adapter
from tap_audit_events.service.responses import NETWORK_ERRORS, read_error, read_start
from tap_audit_events.service.transport import Transport

GRACE_SECONDS: Final = 5.0
"""After a signal, a response is waited for at most so long."""

MAX_RESPONSE_BYTES: Final = 64_000_000
"""The response to a bulk request names each event."""

_OF_THE_SECRET: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
"""Splunk responds 403 to a token that is unknown or disabled."""

_GZIP: Final = 16 + zlib.MAX_WBITS
_LEVEL: Final = 1


class Connection:
    """Sends requests to one receiver.

    Args:
        endpoint: where it is.
        scheme: what comes before the secret in the Authorization header.
        stop: ends waiting at a signal.
        user_agent: the value of the User-Agent header.
        timeout_seconds: for a connection, and for each further part of a response.
        compresses: whether bodies are compressed with gzip.
        line_type: the Content-Type of JSON Lines, for receivers of them.

    Raises:
        ReceiverError: the environment names a proxy that cannot be used.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        scheme: str,
        *,
        stop: Stop,
        user_agent: str,
        timeout_seconds: float,
        compresses: bool,
        line_type: str,
    ) -> None:
        self.stop = stop
        self.line_type = line_type
        self._endpoint = endpoint
        self._scheme = scheme
        self._user_agent = user_agent
        self._timeout_seconds = timeout_seconds
        self._compresses = compresses
        try:
            self._transport = Transport(_origin(endpoint.url), Adapter)
        except ServiceError as error:
            raise ReceiverError(f"{self.name}: {error.details}", Concerns.EVERYTHING) from None

    @property
    def name(self) -> str:
        """What messages call the receiver."""
        return self._endpoint.name

    @property
    def url(self) -> str:
        """The URL, which may have the placeholder of a secret."""
        return self._endpoint.url

    def at(self, url: str) -> Connection:
        """This connection with another path or query."""
        self._endpoint = replace(self._endpoint, url=url)
        return self

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Received:
        """Send a request, whatever the status of its response.

        If the receiver refuses a secret from a file and the file holds another one now, the request
        is sent again with that.

        Args:
            path: what follows the URL of the receiver; may be empty.
            body: the body, not compressed.
            headers: further headers.

        Raises:
            ReceiverError: no response has arrived.
            StoppedError: nor has it after a signal.
        """
        response = self._post(path, body, headers)
        if response.status in _OF_THE_SECRET and self._has_new_secret():
            response = self._post(path, body, headers)
        return response

    def close(self) -> None:
        self._transport.close()

    def _has_new_secret(self) -> bool:
        secret = self._endpoint.secret.renewed()
        if secret is not None:
            self._endpoint = Endpoint(self._endpoint.url, secret, self.name)
        return secret is not None

    def _post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Received:
        own = {"User-Agent": self._user_agent, "Accept-Encoding": "gzip"}
        if self._compresses and body:
            compressor = zlib.compressobj(_LEVEL, wbits=_GZIP)
            body = compressor.compress(body) + compressor.flush()
            own["Content-Encoding"] = "gzip"
        request = PreparedRequest()
        request.prepare(
            method="POST",
            url=self._endpoint.full_url(path),
            headers={**own, **headers, **self._endpoint.headers(self._scheme)},
            data=body,
        )
        try:
            with (
                self.stop.grace(GRACE_SECONDS),
                self._transport.response_to(
                    request, timeout_seconds=self._timeout_seconds
                ) as response,
            ):
                if not response.ok:
                    return received(response, read_error(response))
                return received(response, read_start(response, MAX_RESPONSE_BYTES))
        except NETWORK_ERRORS as error:
            raise no_response(self.name, error) from None


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
