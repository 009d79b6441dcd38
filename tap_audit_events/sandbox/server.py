"""The service on a port of this machine, in a thread of its own."""

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tap_audit_events.sandbox.response import Response
from tap_audit_events.sandbox.service import KEEP_ALIVE_SECONDS, Service
from tap_audit_events.sandbox.several import SeveralServices

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]
_Peer: TypeAlias = tuple[str, int]

HOST: Final = "127.0.0.1"
_WRONG_LENGTH: Final = b"10"
_NO_LINGER: Final = struct.pack("ii", 1, 0)


@dataclass
class Connection:
    """An open connection, and how many requests it has carried."""

    transport: asyncio.Transport
    requests: int = 0

    def reset(self) -> None:
        """Close the connection with RST instead of FIN."""
        raw_socket = self.transport.get_extra_info("socket")
        # With a linger time of zero, closing sends RST.
        raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()


class _Server(uvicorn.Server):
    """Uvicorn that stops at once: it waits neither for its next tick nor for open responses."""

    def __init__(self, config: uvicorn.Config, connections: dict[_Peer, Connection]) -> None:
        super().__init__(config)
        self.stopping = asyncio.Event()
        self._open = connections

    async def main_loop(self) -> None:
        ticks = asyncio.create_task(super().main_loop())
        await self.stopping.wait()
        ticks.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in sockets or []:
            asyncio.get_running_loop().remove_reader(listening)
        # Each other task handles a request, or a connection that was just accepted.
        while self._open or len(asyncio.all_tasks()) > 1:
            for connection in self._open.values():
                connection.transport.abort()
            await asyncio.sleep(0)
        for server in self.servers:
            server.close()


class SandboxServer:
    """A running server; `serve` creates and stops it.

    Attributes:
        service: The service that responds; it may be replaced while the server runs.
        base_url: The URL at which it is served.
        connections: The open connections by the client's host and port.
    """

    def __init__(self, service: Service | SeveralServices, port: int) -> None:
        self.service = service
        self.connections: dict[_Peer, Connection] = {}
        self._socket = socket.create_server((HOST, port), backlog=128)
        self.base_url = f"http://{HOST}:{self._socket.getsockname()[1]}"
        self._server = _Server(self._config(), self.connections)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="audit-events-sandbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close every connection, also those with a response in progress, and end the thread."""
        with suppress(RuntimeError):  # The loop is closed already.
            self._loop.call_soon_threadsafe(self._server.stopping.set)
        self._thread.join()

    def _config(self) -> uvicorn.Config:
        return uvicorn.Config(
            self._application,
            http=_protocol(self),
            loop="asyncio",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )

    def _run(self) -> None:
        self._loop.run_until_complete(self._server.serve(sockets=[self._socket]))
        self._loop.close()

    async def _application(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        connection = self.connections.get(tuple(scope["client"]))
        if connection is None:  # It was closed before its request was handled.
            return
        connection.requests += 1
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        response = self.service.respond(
            scope["method"],
            scope["path"],
            scope["query_string"],
            headers,
            reused=connection.requests > 1,
        )
        if response.wait_seconds and await _closed_within(response.wait_seconds, receive):
            return
        if response.reset:
            connection.reset()
            await _closed_within(None, receive)
        else:
            await _send_response(response, connection.transport, receive, send)


def _protocol(server: SandboxServer) -> type[asyncio.Protocol]:
    """Uvicorn's protocol that registers each connection and keeps it alive as the service says."""

    class SandboxProtocol(HttpToolsProtocol):
        def connection_made(  # type: ignore[override]
            self, transport: asyncio.Transport
        ) -> None:
            self._peer: _Peer = transport.get_extra_info("peername")[:2]
            server.connections[self._peer] = Connection(transport)
            # Else the body of a small response may wait for the acknowledgement of its headers.
            raw_socket = transport.get_extra_info("socket")
            raw_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            super().connection_made(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            # The client may have a new connection from the same port already.
            if server.connections[self._peer].transport is self.transport:
                del server.connections[self._peer]
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            self.timeout_keep_alive = server.service.keep_alive_seconds  # type: ignore[assignment]
            super().on_response_complete()

    return SandboxProtocol


async def _closed_within(seconds: float | None, receive: _Receive) -> bool:
    """Wait, for ever without `seconds`; whether the client closed the connection meanwhile."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while (await receive())["type"] != "http.disconnect":
                pass
            return True
    return False


async def _send_response(
    response: Response, transport: asyncio.Transport, receive: _Receive, send: _Send
) -> None:
    headers = [(name.encode(), value.encode()) for name, value in response.headers]
    if response.wrong_length:
        # In this order, uvicorn sends both headers and a chunked body.
        headers += [(b"transfer-encoding", b"chunked"), (b"content-length", _WRONG_LENGTH)]
    else:
        headers.append((b"content-length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    body = response.body[: response.cut_after]
    if response.drip is not None:
        part_bytes, seconds = response.drip
        while len(body) > part_bytes:
            await send({"type": "http.response.body", "body": body[:part_bytes], "more_body": True})
            body = body[part_bytes:]
            if await _closed_within(seconds, receive):
                return
    cut = response.cut_after is not None
    await send({"type": "http.response.body", "body": body, "more_body": cut})
    if cut:
        transport.close()
        await _closed_within(None, receive)
