"""The sockets from which responses are read, so that another thread can end what waits on them."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from urllib3.util.ssltransport import SSLTransport


class OpenSockets:
    """Sockets that are in use; safe to use from several threads.

    Attributes:
        is_aborted: whether every wait for bytes has been ended.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant, as in `Workers`
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self.is_aborted = False

    def add(self, sock: Any) -> None:
        """Add a socket before it is read.

        Raises:
            ConnectionAbortedError: `abort` was called.
        """
        if isinstance(sock, SSLTransport):  # TLS inside TLS, as the proxy's URL begins with https
            sock = sock.socket
        with self._lock:
            if self.is_aborted:
                raise ConnectionAbortedError("the run is over")
            self._sockets.add(sock)

    def abort(self) -> None:
        """End every wait for bytes, with an error, and let no other begin."""
        with self._lock:
            self.is_aborted = True
            for sock in self._sockets:
                with suppress(OSError):  # it is closed
                    # Not the method of a TLS socket, which changes the socket while it is read.
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)
