"""The server that serves a sandbox over real sockets."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tap_audit_events.sandbox import Fault, Service, serve
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.sandbox.client import Client


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
