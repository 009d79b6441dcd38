"""The server that serves a sandbox over real sockets."""

import gc
import logging
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import requests

from tap_audit_events.sandbox import Fault, Service, serve
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.builders import an_event
from tests.sandbox.client import Client
from tests.sandbox.conftest import Sandbox


def test_the_server_listens_on_loopback_only() -> None:
    with serve(Service()) as server:
        assert server.base_url.startswith("http://127.0.0.1:")


def test_a_port_in_use_is_an_error() -> None:
    """The server does not choose another port instead."""
    with serve(Service()) as server:
        port = int(server.base_url.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"), serve(Service(), port):
            pass


def test_the_server_stops_while_a_client_waits() -> None:
    """The client's connection breaks, the server's thread ends, and the port is closed."""
    arrived = threading.Event()

    def notice(_: ReceivedRequest) -> bool:
        arrived.set()
        return True

    service = Service(faults=[Fault(kind="hang", seconds=600, only=notice)])
    before = threading.active_count()
    with ThreadPoolExecutor(1) as pool:
        with serve(service) as server, Client(server.base_url, service) as client:
            waiting = pool.submit(client.get)
            assert arrived.wait(timeout=60)
        with pytest.raises(requests.exceptions.ConnectionError):
            waiting.result()
    assert threading.active_count() == before
    address = ("127.0.0.1", int(server.base_url.rpartition(":")[2]))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


def test_the_server_can_stop_without_a_request() -> None:
    """It can be stopped immediately after its start."""
    with serve(Service()):
        pass


def test_the_server_stops_while_clients_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that was accepted just before the end is closed."""
    left_open: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", left_open.append)
    with ExitStack() as clients:
        for _ in range(20):
            with serve(Service()) as server:
                host, port = server.base_url.removeprefix("http://").split(":")
                clients.enter_context(socket.create_connection((host, int(port))))
        gc.collect()
    assert not left_open


def test_the_service_can_be_replaced(sandbox: Sandbox) -> None:
    """One server can serve many tests, each with its own service."""
    first = sandbox(an_event(id="a"))
    assert first.ids() == ["a"]
    second = sandbox(an_event(id="b"))
    assert first.ids() == ["b"]
    assert second.service.requests
    assert len(first.service.requests) == 1


def test_the_server_serves_many_clients_at_once(sandbox: Sandbox) -> None:
    """Every request has its own number and its own response."""
    client = sandbox(*(an_event(id=f"e-{number}") for number in range(50)))

    def export(_: int) -> int:
        with Client(client.url.partition("/v1")[0], client.service) as own:
            return len(own.ids(pageSize=10))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(export, range(16))) == {50}
    numbers = [request.number for request in client.service.requests]
    assert numbers == list(range(1, 81))
    assert client.service.violations == []


def test_a_small_response_is_sent_without_delay() -> None:
    """With TCP_NODELAY, the body does not wait 40 ms for an acknowledgement of the headers."""
    service = Service()
    with serve(service) as server, Client(server.base_url, service) as client:
        client.get()
        (connection,) = server.connections.values()
        taken = connection.transport.get_extra_info("socket")
        assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_server_does_not_change_or_use_the_log(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    """It adds no handler and logs no warning or error, even if connections break."""
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "uvicorn.error")
    service = Service(faults=["reset@1", "cut@2", "status:code=500@3"])
    with serve(service) as server, Client(server.base_url, service) as client:
        for _ in range(2):
            with pytest.raises(requests.exceptions.RequestException):
                client.get()
        client.get()
    ours = [record for record in caplog.records if record.name.startswith(("uvicorn", "asyncio"))]
    assert [record for record in ours if record.levelno > logging.INFO] == []
    assert list(root.handlers) == before[1]
