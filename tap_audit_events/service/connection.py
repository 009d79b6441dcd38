"""Connections whose responses have a deadline, however they are framed."""

from __future__ import annotations

import io
import socket
import time
from functools import partial
from http.client import HTTPResponse
from math import inf
from typing import Any, Final

from requests import Session
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util.ssltransport import SSLTransport

from tap_audit_events.service.open_sockets import OpenSockets

DEADLINE_FACTOR: Final = 10
"""A response as a whole may take so many times ``request_timeout_seconds``."""

_BUFFER_BYTES: Final = 1 << 16
_INTERIM: Final = range(102, 200)
"""Interim statuses, which are skipped; 101 is not one of them, since no upgrade is requested."""


class _DeadlineReader(io.RawIOBase):
    """Reads from a socket until a deadline; every read waits for bytes as long as the socket may.

    Whatever a service sends slowly (status lines, headers, chunk sizes, a body, trailers) is read
    through it.
    """

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._socket = sock
        self._timeout_seconds = sock.gettimeout() or inf  # None if it may wait for ever
        self._deadline = time.monotonic() + DEADLINE_FACTOR * self._timeout_seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what is there.

        Raises:
            TimeoutError: the deadline has passed, or no byte came in time.
        """
        seconds_left = self._deadline - time.monotonic()
        if seconds_left <= 0:
            raise TimeoutError(
                f"the response was not complete after {DEADLINE_FACTOR}"
                f" x {self._timeout_seconds:g} s"
            )
        if seconds_left < self._timeout_seconds:
            self._socket.settimeout(seconds_left)
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(HTTPResponse):
    """A response that is read through a `_DeadlineReader`.

    Interim responses such as ``103 Early Hints`` are skipped; Python's own class skips only
    ``100 Continue``. A negative chunk size is an error; Python's own class would read without end.
    """

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        reader = _DeadlineReader(self.fp.detach(), sock)
        self.fp = io.BufferedReader(reader, _BUFFER_BYTES)

    def begin(self) -> None:
        super().begin()
        while self.status in _INTERIM:
            self.headers = self.msg = None  # type: ignore[assignment]  # else nothing is read
            super().begin()

    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if size < 0:
            raise ValueError  # the caller makes it an incomplete response
        return size


class _Connection(HTTPConnection):
    """A connection whose socket is in `open_sockets` from the start, before any handshake."""

    response_class = _Response
    open_sockets: OpenSockets

    def _new_conn(self) -> socket.socket:
        return self.open_sockets.add(super()._new_conn())


class _SecureConnection(_Connection, HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        sock: Any = self.sock  # another object than before the handshake
        if isinstance(sock, SSLTransport):  # TLS inside TLS, as the proxy's URL begins with https
            sock = sock.socket
        self.open_sockets.add(sock)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection

    def __init__(self, *args: Any, open_sockets: OpenSockets, **options: Any) -> None:
        super().__init__(*args, **options)
        self._open_sockets = open_sockets

    def _new_conn(self) -> Any:
        connection: Any = super()._new_conn()
        connection.open_sockets = self._open_sockets
        return connection


class _SecurePool(_Pool, HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class _Adapter(HTTPAdapter):
    """Carries the requests for one URL over connections with a deadline, direct or by proxy."""

    def __init__(self) -> None:
        self.open_sockets = OpenSockets()
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        _use_deadlines(self.poolmanager, self.open_sockets)

    def proxy_manager_for(self, *args: Any, **options: Any) -> Any:
        manager = super().proxy_manager_for(*args, **options)
        _use_deadlines(manager, self.open_sockets)
        return manager


def _use_deadlines(manager: PoolManager, open_sockets: OpenSockets) -> None:
    """Replace the usual pools; a manager for SOCKS proxies keeps its own."""
    replacements: dict[type, Any] = {
        HTTPConnectionPool: partial(_Pool, open_sockets=open_sockets),
        HTTPSConnectionPool: partial(_SecurePool, open_sockets=open_sockets),
    }
    manager.pool_classes_by_scheme = {
        scheme: replacements.get(pool, pool)
        for scheme, pool in manager.pool_classes_by_scheme.items()
    }


def new_session() -> Session:
    """A session of `requests` for one thread."""
    session = Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, _Adapter())
    return session


def abort(session: Session) -> None:
    """End what another thread waits for on the connections of a session; it sends no more."""
    for adapter in session.adapters.values():
        if isinstance(adapter, _Adapter):
            adapter.open_sockets.abort()
