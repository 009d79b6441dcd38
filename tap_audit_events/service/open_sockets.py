"""The open sockets of a session, so that another thread can end what waits on them."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from weakref import WeakSet


class OpenSockets:
    """Sockets that are in use; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._is_aborted = False

    def add(self, sock: socket.socket) -> socket.socket:
        """Add a socket, and return it.

        Raises:
            ConnectionAbortedError: `abort` was called; the socket is closed.
        """
        with self._lock:
            if not self._is_aborted:
                self._sockets.add(sock)
                return sock
        sock.close()
        raise ConnectionAbortedError("the run is over")

    def abort(self) -> None:
        """End every wait for bytes, with an error, and let no other begin."""
        with self._lock:
            self._is_aborted = True
            for sock in self._sockets:
                with suppress(OSError):  # it is closed, or its file belongs to a TLS socket now
                    # Not the method of a TLS socket, which changes the socket while it is read.
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)
