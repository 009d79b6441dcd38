"""A proxy that forwards connections and records the bytes that clients send through them."""

import http.server
import select
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[int]:
    """Run the server in a thread of its own, and yield its port."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    port: int = server.server_address[1]  # type: ignore[index, assignment]
    try:
        yield port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Proxy:
    """The requests to a proxy, and every byte that clients sent through it."""

    port: int = 0
    tunnels: list[str] = field(default_factory=list)
    seen: bytes = b""


@contextmanager
def connect_proxy(certificate: ssl.SSLContext | None = None) -> Iterator[Proxy]:
    """A proxy that supports only CONNECT; with a certificate, clients connect to it over TLS."""
    noted = Proxy()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            noted.tunnels.append(f"{self.requestline}\n{self.headers}")
            host, _, port = self.path.partition(":")
            with socket.create_connection((host, int(port))) as service:
                self.send_response(200)
                self.end_headers()
                self._pass_on(service)
            self.close_connection = True

        def _pass_on(self, service: socket.socket) -> None:
            ends = {self.connection: service, service: self.connection}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    data = end.recv(65536)
                    while isinstance(end, ssl.SSLSocket) and end.pending():
                        data += end.recv(65536)
                    if not data:
                        return
                    if end is self.connection:
                        noted.seen += data
                    ends[end].sendall(data)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        server.socket = certificate.wrap_socket(server.socket, server_side=True)
    with serving(server) as port:
        noted.port = port
        yield noted
