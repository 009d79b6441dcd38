"""The service on a port of this machine, in a thread of its own."""

import asyncio
import socket
import struct
import threading
from contextlib import suppress
from email.utils import formatdate
from http.client import responses
from typing import Final

import httptools

from tap_audit_events.sandbox.response import Response
from tap_audit_events.sandbox.service import Service
from tap_audit_events.sandbox.several import SeveralServices

HOST: Final = "127.0.0.1"
_NO_LINGER: Final = struct.pack("ii", 1, 0)
_NOT_HTTP: Final = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class SandboxServer:
    """A running server; `serve` creates and stops it.

    Attributes:
        service: The service that responds; it may be replaced while the server runs.
        base_url: The URL at which it is served.
    """

    def __init__(self, service: Service | SeveralServices, port: int) -> None:
        self.service = service
        self.connections: set[_Connection] = set()
        self._socket = socket.create_server((HOST, port), backlog=128)
        self.base_url = f"http://{HOST}:{self._socket.getsockname()[1]}"
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._accepted: set[asyncio.Task[object]] = set()
        self._thread = threading.Thread(target=self._run, name="audit-events-sandbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close every connection, also those with a response in progress, and end the thread."""
        with suppress(RuntimeError):  # The loop is closed already.
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        # Not `create_server`: closing it in the moment of an accept leaves that connection open.
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._accept)
        await self._stopping.wait()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        # Each other task sends a response, or has just accepted a connection.
        while self.connections or len(asyncio.all_tasks()) > 1:
            for connection in self.connections:
                connection.transport.abort()
            await asyncio.sleep(0)

    def _accept(self) -> None:
        with suppress(BlockingIOError, ConnectionError):  # The client has gone.
            client, _ = self._socket.accept()
            connect = self._loop.connect_accepted_socket(lambda: _Connection(self), client)
            task = self._loop.create_task(connect)
            self._accepted.add(task)  # else it may be collected
            task.add_done_callback(self._accepted.discard)


class _Connection(asyncio.Protocol):
    """A connection with a client, which sends one request after the other."""

    def __init__(self, server: SandboxServer) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._requests = 0
        self._response: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self._server.connections.add(self)
        # Else the body of a small response may wait for the acknowledgement of its headers.
        self._set_option(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._server.connections.discard(self)
        if self._response is not None:
            self._response.cancel()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise error.__context__ or error from None
        except httptools.HttpParserError:
            self.transport.write(_NOT_HTTP)
            self.transport.close()

    def on_message_begin(self) -> None:
        """Prepare for a request; the parser calls this and the methods that follow."""
        self._url = b""
        self._headers: dict[str, str] = {}

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1")] = value.decode("latin-1")

    def on_message_complete(self) -> None:
        method = self._parser.get_method().decode()
        path, _, query = self._url.partition(b"?")
        reused = self._requests > 0
        self._requests += 1
        response = self._server.service.respond(
            method, path.decode("latin-1"), query, self._headers, reused
        )
        keeps_open = self._parser.should_keep_alive()
        self._response = asyncio.ensure_future(self._send(response, method, keeps_open))

    async def _send(self, response: Response, method: str, keeps_open: bool) -> None:
        if response.wait_seconds:
            await asyncio.sleep(response.wait_seconds)
        if response.reset:
            # With a linger time of zero, closing sends RST instead of FIN.
            self._set_option(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self.transport.abort()
            return
        lines = [
            f"HTTP/1.1 {response.status} {responses.get(response.status, '')}",
            f"date: {formatdate(usegmt=True)}",
            *(f"{name}: {value}" for name, value in response.headers),
            f"content-length: {len(response.body)}",
            *([] if keeps_open else ["connection: close"]),
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode())
        if method != "HEAD":
            self.transport.write(response.body[: response.cut_after])
        if response.cut_after is not None or not keeps_open:
            self.transport.close()

    def _set_option(self, level: int, name: int, value: int | bytes) -> None:
        self.transport.get_extra_info("socket").setsockopt(level, name, value)
