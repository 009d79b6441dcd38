"""The service on a port of this machine, in a thread of its own."""

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tap_audit_events.sandbox.answers import Answer
from tap_audit_events.sandbox.service import Service

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]
_Transports: TypeAlias = dict[tuple[str, int], asyncio.Transport]

HOST: Final = "127.0.0.1"
_KEEP_ALIVE_SECONDS: Final = 3600
_LINGER_NOT: Final = struct.pack("ii", 1, 0)


@contextmanager
def serve(service: Service, port: int = 0) -> Iterator["SandboxServer"]:
    """Serve until the block ends; port 0 is a free one.

    Raises OSError where the port is taken.
    """
    server = SandboxServer(service, port)
    try:
        yield server
    finally:
        server.stop()


class SandboxServer:
    """A running server; made and ended by `serve`.

    Attributes:
        service: What answers; it may be replaced while the server runs.
        base_url: Where it is served.
    """

    def __init__(self, service: Service, port: int = 0) -> None:
        self.service = service
        self._transports: _Transports = {}
        self._socket = socket.create_server((HOST, port), backlog=128)
        self.base_url = f"http://{HOST}:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(self._config())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="audit-events-sandbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close every connection, also those with an answer under way, and end the thread."""
        self._server.should_exit = True
        while self._thread.is_alive():
            # Again each time: a connection may have been accepted since.
            with suppress(RuntimeError):  # The loop is closed already.
                self._loop.call_soon_threadsafe(self._abort_connections)
            self._thread.join(timeout=0.02)

    def _config(self) -> uvicorn.Config:
        return uvicorn.Config(
            self._application,
            http=_protocol(self._transports),
            loop="asyncio",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        )

    def _run(self) -> None:
        self._loop.run_until_complete(self._server.serve(sockets=[self._socket]))
        self._loop.close()

    def _abort_connections(self) -> None:
        for transport in self._transports.values():
            transport.abort()

    async def _application(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        answer = self.service.answer(scope["method"], scope["path"], scope["query_string"], headers)
        if answer.wait_seconds and await _closed_within(answer.wait_seconds, receive):
            return
        transport = self._transports[tuple(scope["client"])]
        if answer.reset:
            await _reset(transport, receive)
        else:
            await _send_answer(answer, transport, receive, send)


def _protocol(transports: _Transports) -> type[asyncio.Protocol]:
    """Uvicorn's protocol that also notes the transport of each connection."""

    class NotingProtocol(HttpToolsProtocol):
        def connection_made(  # type: ignore[override]
            self, transport: asyncio.Transport
        ) -> None:
            transports[transport.get_extra_info("peername")[:2]] = transport
            # Else the body of a small answer may wait for the acknowledgement of its headers.
            taken = transport.get_extra_info("socket")
            taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            super().connection_made(transport)

    return NotingProtocol


async def _closed_within(seconds: float | None, receive: _Receive) -> bool:
    """Wait, and say whether the connection was closed meanwhile; None waits for just that."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while (await receive())["type"] != "http.disconnect":
                pass
            return True
    return False


async def _reset(transport: asyncio.Transport, receive: _Receive) -> None:
    # With a linger time of zero, closing sends RST instead of FIN.
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
    transport.abort()
    await _closed_within(None, receive)


async def _send_answer(
    answer: Answer, transport: asyncio.Transport, receive: _Receive, send: _Send
) -> None:
    headers = [(name.encode(), value.encode()) for name, value in answer.headers]
    headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    cut = answer.cut_after is not None
    body = answer.body[: answer.cut_after]
    await send({"type": "http.response.body", "body": body, "more_body": cut})
    if cut:
        transport.close()
        await _closed_within(None, receive)
