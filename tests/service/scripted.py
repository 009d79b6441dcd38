"""A service that sends exactly the bytes that a test specifies, and a client of it."""

import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tap_audit_events.config.settings import read_settings
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.window import Window
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.service.client import Client
from tap_audit_events.service.connection import Adapter
from tap_audit_events.service.rate_limiter import RateLimiter, RequestCounts
from tap_audit_events.service.transport import Transport
from tests.builders import ORGANIZATION_ID

WINDOW = Window(None, Instant("2026-01-31T00:00:00"))
EMPTY_PAGE = b'{"auditEvents": []}'


@dataclass
class Scripted:
    """A running service.

    Attributes:
        heard: the first line of each request.
        headers: the headers of each request.
        connections: the number of connections so far.
    """

    base_url: str
    heard: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    connections: int = 0


class Peer:
    """The service's side of one connection."""

    def __init__(self, connection: socket.socket, service: Scripted) -> None:
        self._socket = connection
        self._file = connection.makefile("rb")
        self._service = service
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)

    def hear(self) -> bool:
        """Read a request, and return whether there was one."""
        if not self._file.peek(1):
            return False
        line, *headers = [line.decode() for line in iter(self._file.readline, b"\r\n")]
        self._service.heard.append(line)
        pairs = (header.rstrip().split(": ", 1) for header in headers)
        self._service.headers.append(dict(pairs))
        return True

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def respond(self, body: bytes = EMPTY_PAGE, *headers: str) -> None:
        """Send a response with status 200."""
        self.send(head(f"Content-Length: {len(body)}", *headers) + body)

    def reset(self) -> None:
        """Close the connection with RST instead of FIN."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._socket.shutdown(socket.SHUT_RD)


Script = Callable[[Peer], object]
"""Serves one connection, which is closed when it returns."""


def head(*headers: str) -> bytes:
    """The start of a response with status 200."""
    return "\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode()


def keeps_open(peer: Peer) -> None:
    """Serves every request of the connection with an empty page."""
    while peer.hear():
        peer.respond()


@contextmanager
def scripted_service(*scripts: Script, tls: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    """Serve each connection with the next script, and all further ones with the last script.

    With `tls`, its host is ``localhost`` and its connections are encrypted.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    origin = "https://localhost" if tls else "http://127.0.0.1"
    service = Scripted(f"{origin}:{listener.getsockname()[1]}")
    threads: list[threading.Thread] = []
    open_connections: list[socket.socket] = []

    def serve(connection: socket.socket, script: Script) -> None:
        with connection, suppress(OSError):
            script(Peer(connection, service))

    def listen() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                if tls:
                    connection = tls.wrap_socket(  # the first read performs the handshake
                        connection, server_side=True, do_handshake_on_connect=False
                    )
                script = scripts[min(service.connections, len(scripts) - 1)]
                service.connections += 1
                open_connections.append(connection)
                threads.append(threading.Thread(target=serve, args=(connection, script)))
                threads[-1].start()

    threads.append(threading.Thread(target=listen))
    threads[0].start()
    try:
        yield service
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        threads[0].join()  # from here on, no connection is added
        listener.close()
        for each in open_connections:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()


class LoggedLines(logging.Logger):
    """A logger that keeps its messages."""

    def __init__(self) -> None:
        super().__init__("scripted", logging.INFO)
        self.lines: list[str] = []

    def handle(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class NoWaits(RateLimiter):
    """A rate limiter that does not wait before a retry."""

    def pause(self, seconds: float) -> None:
        super().pause(0.0)


@dataclass
class ClientOfService:
    """A client, with its rate limiter and its logger."""

    client: Client
    limiter: RateLimiter
    logger: LoggedLines

    def fetch(self, cursor: str | None = None) -> Sequence[str]:
        """Fetch a page, and return the ids of its events."""
        return self.client.fetch(WINDOW, cursor).ids


def client_of(service: Scripted, **settings: Any) -> ClientOfService:
    """A client that does not retry, unless the settings say so."""
    given = {
        "base_url": service.base_url,
        "organization_id": ORGANIZATION_ID,
        "access_token": "acme_pat_scripted",
        "max_retries": 0,
    }
    limiter, logger = NoWaits(RequestCounts(4)), LoggedLines()
    read = read_settings(given | settings)
    transport = Transport(read.base_url, Adapter)
    client = Client(read, transport, AccessTokenAuthenticator(read, logger), limiter, logger)
    return ClientOfService(client, limiter, logger)
