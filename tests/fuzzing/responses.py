"""Clients that get given bytes as a response, with their requests, log lines and waits."""

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection

from tap_audit_events.config.settings import Settings
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.service.client import Client
from tap_audit_events.service.rate_limiter import RateLimiter, RequestCounts
from tap_audit_events.service.transport import Transport
from tests.builders import a_response


class Heard(logging.Logger):
    """What a client logs, and how long it waits."""

    def __init__(self) -> None:
        super().__init__("client")
        self.lines: list[str] = []
        self.waits: list[float] = []

    def handle(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def client_that_gets(response: bytes, settings: Settings) -> Iterator[tuple[Client, Heard]]:
    """A client of a plain http URL that gets this response to each request.

    The response is status line, headers and body, as they are sent; it has to fit into a socket's
    buffer, which holds 100 kB at least.
    """
    with ExitStack() as sockets:

        class Connection(HTTPConnection):
            def connect(self) -> None:
                self.sock, service = socket.socketpair()
                sockets.callback(self.sock.close)
                sockets.callback(service.close)
                service.sendall(response)
                service.shutdown(socket.SHUT_WR)

        class Pool(HTTPConnectionPool):
            ConnectionCls = Connection

        adapter = HTTPAdapter()
        adapter.poolmanager.pool_classes_by_scheme = {"http": Pool}
        with _client(settings, adapter) as client_and_heard:
            yield client_and_heard


@contextmanager
def client_that_records(
    settings: Settings, record: Callable[[requests.PreparedRequest], object]
) -> Iterator[Client]:
    """A client whose requests are passed to `record`, and which gets an empty page for each."""

    class Adapter(BaseAdapter):
        def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:  # type: ignore[override]
            record(request)
            return a_response(200, b'{"auditEvents": []}', {})

        def close(self) -> None:
            """Nothing is open."""

    with _client(settings, Adapter()) as (client, _):
        yield client


@contextmanager
def _client(settings: Settings, adapter: BaseAdapter) -> Iterator[tuple[Client, Heard]]:
    heard = Heard()
    transport = Transport(settings.base_url, lambda _: adapter)
    authenticator = AccessTokenAuthenticator(settings, heard)
    yield Client(settings, transport, authenticator, _RateLimiter(heard.waits), heard), heard
    adapter.close()


class _RateLimiter(RateLimiter):
    """Records how long it would hold requests back, without waiting."""

    def __init__(self, waits: list[float]) -> None:
        super().__init__(RequestCounts(1), lambda: sum(waits))
        self._waits = waits

    def _wait(self, seconds: float) -> None:
        self._waits.append(seconds)
