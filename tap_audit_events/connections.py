"""Connections on which a request can be sent before the last answer has been used."""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError


class AheadConnection(HTTPConnection):
    """Sends a request early; asked to send the same one later, it only takes its answer."""

    _target: str | None = None

    def send_ahead(self, target: str, headers: Mapping[str, str]) -> bool:
        """Send a GET now, whose answer is taken later; say whether it was sent.

        Only after the last answer was read to its end. It never opens a connection.

        Args:
            target: what stands in the request line.
            headers: as they will be given again.
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

    def request(self, method: str, url: str, *args: Any, **options: Any) -> None:
        """Send a request, unless it is on its way already."""
        target, self._target = self._target, None
        if (method, url) != ("GET", target):
            super().request(method, url, *args, **options)

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
        """Send a request whose answer `send` takes later; say whether it was sent.

        Args:
            connection: what carried the request before, whose answer was read to its end.
            request: a GET without a body; the next one to be sent.
            proxies: as they will be given again.
        """
        if not isinstance(connection, AheadConnection):
            return False
        target = self.request_url(request, dict(proxies or {}))
        return connection.send_ahead(target, request.headers)


def _use_ours(manager: PoolManager) -> None:
    """Give it our pools where it has the usual ones."""
    pools = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {
        scheme: _OURS.get(pool, pool) for scheme, pool in pools.items()
    }
