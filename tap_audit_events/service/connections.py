"""Connections on which a request can be sent before the last answer has been used."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus, client
from http.client import HTTPException
from typing import Any, Final

from requests import PreparedRequest, Response, exceptions
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3 import (
    HTTPConnectionPool,
    HTTPHeaderDict,
    HTTPResponse,
    HTTPSConnectionPool,
    PoolManager,
)
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

_LOGGER: Final = logging.getLogger(__name__)
_LONGEST_LENGTH: Final = 18
"""Digits of a length that is taken for one."""


class AheadConnection(HTTPConnection):
    """Sends a request early, and takes its answer later."""

    _target: str | None = None

    def send_ahead(self, target: str, headers: Mapping[str, str]) -> bool:
        """Send a GET now, whose answer is taken later; say whether it was sent.

        Only after the last answer was read to its end. It never opens a connection.

        Args:
            target: what stands in the request line.
            headers: those of the request.
        """
        if self.is_closed or not self.is_connected:
            return False
        try:
            super().request(
                "GET", target, headers=headers, preload_content=False, decode_content=False
            )
        except (OSError, HTTPException, HTTPError):
            self.close()
            return False
        self._target = target
        return True

    def take_answer(self, timeout_seconds: float) -> client.HTTPResponse:
        """The answer to what was sent ahead, as Python's library has it, which takes less time."""
        target, self._target = self._target, None
        self.sock.settimeout(timeout_seconds)
        answer = client.HTTPConnection.getresponse(self)
        _LOGGER.debug("GET %s: status %s, %s bytes", target, answer.status, answer.length)
        return answer

    @property
    def is_connected(self) -> bool:
        """Whether it can be used: with an answer on its way, something to read is no bad sign."""
        return self._target is not None or super().is_connected

    def close(self) -> None:
        """Close it, with all that is on its way."""
        self._target = None
        super().close()


class _SecureAheadConnection(AheadConnection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = AheadConnection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureAheadConnection


_OURS = {HTTPConnectionPool: _Pool, HTTPSConnectionPool: _SecurePool}


class AheadAdapter(HTTPAdapter):
    """The adapter of `requests` for one address, with connections that send ahead."""

    _pool_of_address: Any = None

    def get_connection_with_tls_context(self, *args: Any, **options: Any) -> Any:
        """The pool, which is looked up once: address, certificates and proxy stay the same."""
        if self._pool_of_address is None:
            self._pool_of_address = super().get_connection_with_tls_context(*args, **options)
        return self._pool_of_address

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the manager of direct connections."""
        super().init_poolmanager(*args, **options)
        _use_ours(self.poolmanager)

    def proxy_manager_for(self, *args: Any, **options: Any) -> Any:
        """The manager of connections through a proxy."""
        manager = super().proxy_manager_for(*args, **options)
        _use_ours(manager)
        return manager

    def send_ahead(
        self, connection: object, request: PreparedRequest, proxies: Mapping[str, str] | None
    ) -> bool:
        """Send a request whose answer `take_answer` takes later; say whether it was sent.

        Args:
            connection: what carried the request before, whose answer was read to its end.
            request: a GET without a body; the next one to be sent.
            proxies: those of the request before.
        """
        if not isinstance(connection, AheadConnection):
            return False
        is_direct = not any((proxies or {}).values())
        target = request.path_url if is_direct else self.request_url(request, dict(proxies or {}))
        return connection.send_ahead(target, request.headers)

    def take_answer(
        self, connection: AheadConnection, request: PreparedRequest, timeout_seconds: float
    ) -> Response:
        """The answer to what was sent ahead, as `send` gives it, without cookies.

        The connection has to be closed where the answer is not read to its end.

        Raises:
            RequestException: none came.
        """
        try:
            answer = connection.take_answer(timeout_seconds)
        except TimeoutError as error:
            raise exceptions.ReadTimeout(error, request=request) from error
        except (OSError, HTTPException) as error:
            raise exceptions.ConnectionError(error, request=request) from error
        response = Response()
        response.request, response.url = request, str(request.url)
        response.status_code = answer.status
        response.headers = CaseInsensitiveDict(answer.headers.items())
        is_plain = answer.status == HTTPStatus.OK and told_bytes(response.headers) is not None
        response.raw = answer if is_plain else _unpacking(answer)
        return response


def told_bytes(headers: Mapping[str, str]) -> int | None:
    """How many bytes a body has that comes as it is; None where they do not tell."""
    length = headers.get("Content-Length", "")
    is_told = length.isdecimal() and len(length) <= _LONGEST_LENGTH
    return int(length) if is_told and "Content-Encoding" not in headers else None


def _unpacking(answer: client.HTTPResponse) -> HTTPResponse:
    """An answer whose body may be packed, or come in chunks, as `urllib3` reads it."""
    return HTTPResponse(
        body=answer,
        headers=HTTPHeaderDict(answer.headers.items()),
        status=answer.status,
        preload_content=False,
        original_response=answer,
        request_method="GET",
    )


def _use_ours(manager: PoolManager) -> None:
    """Give it our pools where it has the usual ones."""
    pools = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {
        scheme: _OURS.get(pool, pool) for scheme, pool in pools.items()
    }
