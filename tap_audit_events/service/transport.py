"""What all requests have in common: connections, proxies, certificates."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ssl import SSLEOFError
from typing import Any, Self, TypeAlias

from requests import PreparedRequest, Response, Session, exceptions
from requests.adapters import BaseAdapter
from urllib3.exceptions import MaxRetryError, ProtocolError, ProxyError, SSLError

from tap_audit_events.service.connection import OpenSockets
from tap_audit_events.service.proxies import check_proxy

NewAdapter: TypeAlias = Callable[[OpenSockets], BaseAdapter]


class _Connection:
    """An adapter with one connection, for one thread at a time.

    Attributes:
        is_used: whether its last request got a response, so that the next one uses it again.
    """

    def __init__(self, new_adapter: NewAdapter) -> None:
        self.sockets = OpenSockets()
        self.adapter = new_adapter(self.sockets)
        self.is_used = False

    def close(self) -> None:
        self.adapter.close()
        self.is_used = False


class Connections:
    """Idle connections, for the next request of any thread and of any run; `close` closes them.

    It has no lock: the garbage collector may end an abandoned run in any line. Each connection
    stays referenced, so that no thread frees one while Python exits, which is not safe.
    """

    def __init__(self) -> None:
        self._idle: deque[_Connection] = deque()
        self._all: list[_Connection] = []
        self._is_closed = False

    def take(self, new_adapter: NewAdapter) -> _Connection:
        """An idle connection, or else a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            connection = _Connection(new_adapter)
            self._all.append(connection)
            return connection

    def add(self, connection: _Connection) -> None:
        """Keep a connection that is idle now, or close it after `close`."""
        self._idle.append(connection)
        if self._is_closed:
            self.close()

    def close(self) -> None:
        """Close the idle connections; those in use are closed when they are idle."""
        self._is_closed = True
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Transport:
    """Sends the requests of one run to one service; safe to use from several threads.

    Args:
        base_url: URL of the service.
        new_adapter: creates a connection.
        connections: kept from run to run by the caller. By default, the run has its own, which
            `close` closes.

    Raises:
        RefusedError: the environment names a proxy that cannot be used.
    """

    def __init__(
        self, base_url: str, new_adapter: NewAdapter, connections: Connections | None = None
    ) -> None:
        self._url = f"{base_url}/v1/organizations"
        self._new_adapter = new_adapter
        self._is_owner = connections is None
        self._connections = connections or Connections()
        self._in_use: set[_Connection] = set()
        self._lock = threading.RLock()  # reentrant, as in `Workers`
        self._process_id = os.getpid()
        self._is_closed = False
        # Proxies and certificate bundles, read from the environment once.
        self._options: dict[str, Any] = dict(
            Session().merge_environment_settings(self._url, {}, True, None, None)
        )
        if base_url.startswith("http://"):  # only to loopback: no proxy may see the token
            self._options["proxies"] = {}
        check_proxy(self._url, self._options["proxies"], os.environ)

    def close(self) -> None:
        """End every request that waits for its response, and close the run's connections.

        A connection in use is closed by its own thread, as soon as its request has ended. In a
        forked process, the connections stay open, as the parent process still uses them.
        """
        if os.getpid() != self._process_id:
            self._is_closed = True
            return
        with self._lock:
            self._is_closed = True
            for connection in self._in_use:
                connection.sockets.abort()
        if self._is_owner:
            self._connections.close()

    @contextmanager
    def response_to(
        self, request: PreparedRequest, *, timeout_seconds: float
    ) -> Iterator[Response]:
        """Send a request to the service, for a block that reads the body of the response.

        If the block does not read all of it, the connection is closed. A connection that the
        service closed while it was idle is replaced immediately, once: that is not a failure and
        not counted as a retry. The timeout limits the wait for a connection, and for each further
        part of the response.
        """
        with self._connection() as connection:
            response = self._send(connection, request, timeout_seconds)
            try:
                yield response
            finally:
                response.raw.close()  # has no effect if all of it was read

    @contextmanager
    def _connection(self) -> Iterator[_Connection]:
        """A connection for one request; it is closed afterwards if the run is over."""
        connection = self._connections.take(self._new_adapter)
        with self._lock:
            self._in_use.add(connection)
        try:
            yield connection
        finally:
            with self._lock:
                self._in_use.discard(connection)
            if self._is_closed:
                connection.close()
                connection.sockets.reset()
            self._connections.add(connection)

    def _send(
        self, connection: _Connection, request: PreparedRequest, timeout_seconds: float
    ) -> Response:
        was_used, connection.is_used = connection.is_used, False
        try:
            response = self._send_once(connection, request, timeout_seconds)
        except exceptions.ConnectionError as error:
            if not was_used or not _was_closed(error):
                raise
            response = self._send_once(connection, request, timeout_seconds)
        connection.is_used = True
        return response

    def _send_once(
        self, connection: _Connection, request: PreparedRequest, timeout_seconds: float
    ) -> Response:
        """Send without a `Session`, which follows redirects, keeps cookies and costs time."""
        if self._is_closed:
            raise exceptions.ConnectionError("the run is over")
        timeouts = timeout_seconds, timeout_seconds
        return connection.adapter.send(request, timeout=timeouts, **self._options)


def _was_closed(error: exceptions.ConnectionError) -> bool:
    """Whether an open connection broke; False if no connection was made."""
    return any(map(_is_broken, map(_unwrapped, error.args)))


def _is_broken(cause: object) -> bool:
    if isinstance(cause, ProtocolError | ConnectionError | SSLEOFError):
        return True
    # OpenSSL 3.6 reports the end of a connection as an error of TLS.
    return getattr(cause, "reason", None) == "UNEXPECTED_EOF_WHILE_READING"


def _unwrapped(error: object) -> object:
    """What urllib3 wrapped: it blames the proxy if a connection through one breaks."""
    reason = error.reason if isinstance(error, MaxRetryError) else error
    cause = reason.original_error if isinstance(reason, ProxyError) else reason
    return cause.args[0] if isinstance(cause, SSLError) else cause
