"""Connections whose responses have a deadline and can be aborted by another thread."""

from __future__ import annotations

import io
import socket
import threading
import time
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from math import inf
from typing import Any, Final
from weakref import WeakSet

from requests.adapters import HTTPAdapter
from urllib3.exceptions import InvalidHeader
from urllib3.util.ssltransport import SSLTransport

DEADLINE_FACTOR: Final = 10
"""A response as a whole may take this many times ``request_timeout_seconds``."""

_BUFFER_BYTES: Final = 1 << 16
_INTERIM: Final = range(102, 200)
"""Interim statuses, which are skipped; 101 is not one of them, since no upgrade is requested."""


class OpenSockets:
    """Sockets of one connection that responses are read from; `abort` ends these responses."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant, as in `Workers`
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._is_aborted = False

    def add(self, sock: Any) -> None:
        """Add a socket before it is read; `ConnectionAbortedError` after `abort`."""
        if isinstance(sock, SSLTransport):  # TLS inside TLS, as the proxy's URL begins with https
            sock = sock.socket
        with self._lock:
            if self._is_aborted:
                raise ConnectionAbortedError("the run is over")
            self._sockets.add(sock)

    def abort(self) -> None:
        """End every wait for bytes with an error, and prevent new waits; any thread may call it.

        The sockets are shut down, and stay open until the thread that reads them closes them.
        """
        with self._lock:
            self._is_aborted = True
            for sock in self._sockets:
                with suppress(OSError):  # it is closed
                    # Not the method of a TLS socket, which changes the socket while it is read.
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def reset(self) -> None:
        """Allow responses again."""
        self._is_aborted = False


class _DeadlineReader(io.RawIOBase):
    """Reads from a socket until a deadline; no read waits longer than the timeout of the socket.

    All parts of a response (status lines, headers, chunk sizes, body, trailers) are read through
    it: a service may send each of them slowly.
    """

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._socket = sock
        self._timeout_seconds = sock.gettimeout() or inf  # None if it may wait for ever
        self._deadline = time.monotonic() + DEADLINE_FACTOR * self._timeout_seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read available bytes; `TimeoutError` after the deadline, or if none arrive in time."""
        seconds_left = self._deadline - time.monotonic()
        if seconds_left <= 0:
            raise TimeoutError(
                f"the response was not complete after {DEADLINE_FACTOR}"
                f" x {self._timeout_seconds:g} s"
            )
        if seconds_left < self._timeout_seconds:
            self._socket.settimeout(seconds_left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(HTTPResponse):
    """A response that is read through a `_DeadlineReader`, and ends if its socket is aborted.

    Interim responses such as ``103 Early Hints`` are skipped; Python's own class skips only
    ``100 Continue``. A negative chunk size is an error; Python's own class would read without end.
    Headers that hide the end of the body are an error; Python's own class would read until the
    connection closes, which may never happen. Cookies are left out: they are never sent back, and
    `requests` would parse each of them, which can take far longer than reading them.
    """

    def __init__(
        self, sock: socket.socket, *args: Any, open_sockets: OpenSockets, **options: Any
    ) -> None:
        self.fp = None  # type: ignore[assignment]  # `close` needs it, even if the next line raises
        open_sockets.add(sock)
        super().__init__(sock, *args, **options)
        reader = _DeadlineReader(self.fp.detach(), sock)
        self.fp = io.BufferedReader(reader, _BUFFER_BYTES)

    def begin(self) -> None:
        super().begin()
        while self.status in _INTERIM:
            self.headers = self.msg = None  # type: ignore[assignment]  # else nothing is read
            super().begin()
        del self.headers["Set-Cookie"]  # nothing happens if there is none
        if self.length is None and not self.chunked and self._has_unread_framing():
            raise InvalidHeader(
                f"the headers do not say where the body ends (status {self.status})"
            )

    def _has_unread_framing(self) -> bool:
        """Whether a header for the body's end cannot be parsed, or headers were ignored.

        Python ignores the headers after a line that is not a header.
        """
        names = ("Content-Length", "Transfer-Encoding")
        return bool(self.headers.defects) or any(name in self.headers for name in names)

    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if size < 0:
            raise ValueError  # the caller raises `IncompleteRead` instead
        return size


class Adapter(HTTPAdapter):
    """A connection of `requests`, direct or through a proxy, for one thread at a time.

    It reads each response as a `_Response`, and adds each socket to `open_sockets` before.
    """

    def __init__(self, open_sockets: OpenSockets) -> None:
        self._response_class = partial(_Response, open_sockets=open_sockets)
        self._connections: WeakSet[HTTPConnection] = WeakSet()
        super().__init__()

    def get_connection_with_tls_context(self, *args: Any, **options: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **options)
        pool.ConnectionCls = partial(self._new_connection, type(pool))
        return pool

    def _new_connection(self, pool: Any, **options: Any) -> Any:
        connection = pool.ConnectionCls(**options)
        connection.response_class = self._response_class
        self._connections.add(connection)
        return connection

    def close(self) -> None:
        """Close the connections; the next request opens one again.

        urllib3 would only drop its pools: the garbage collector closes their connections later.
        """
        for connection in list(self._connections):
            connection.close()
