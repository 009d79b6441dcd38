"""The requests of a client that is closed end at once, whatever they wait for."""

import logging
import threading
from collections.abc import Callable

import pytest

from tap_audit_events.errors.exceptions import RetryableError
from tap_audit_events.service.rate_limiter import ClosedError
from tests.service.scripted import (
    ClientOfService,
    Peer,
    client_of,
    head,
    keeps_open,
    scripted_service,
)

WAIT_SECONDS = 15
TIMEOUT_SECONDS = 300


class Reached:
    """Scripts that hang at some point of a response, and set an event when they do."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def _hang(self, peer: Peer) -> None:
        self.event.set()
        peer.hear()  # until the other side closes

    def before_status(self, peer: Peer) -> None:
        peer.hear()
        self._hang(peer)

    def in_headers(self, peer: Peer) -> None:
        peer.hear()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-")
        self._hang(peer)

    def in_body(self, peer: Peer) -> None:
        peer.hear()
        peer.send(head("Content-Length: 100") + b"{")
        self._hang(peer)

    def in_last_body(self, peer: Peer) -> None:
        """With this header, the client drops its socket object before it reads the body."""
        peer.hear()
        peer.send(head("Content-Length: 100", "Connection: close") + b"{")
        self._hang(peer)

    def on_used_connection(self, peer: Peer) -> None:
        """Hang at a connection's second request, which a client would send again if it broke."""
        peer.hear()
        peer.respond()
        self.before_status(peer)


def closed_while(client: ClientOfService, reached: threading.Event, requests: int = 1) -> list[str]:
    """The errors that end a thread's requests if the client is closed while the service hangs."""
    ends: list[str] = []

    def fetch() -> None:
        for _ in range(requests):
            try:
                client.fetch()
            except Exception as error:  # noqa: BLE001 - the test judges it
                ends.append(type(error).__name__)

    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()
    assert reached.wait(WAIT_SECONDS)
    client.limiter.run.close()
    client.client.transport.close()
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive()
    return ends


@pytest.mark.parametrize(
    ("script", "requests"),
    [
        (Reached.before_status, 1),
        (Reached.in_headers, 1),
        (Reached.in_body, 1),
        (Reached.in_last_body, 1),
        (Reached.on_used_connection, 2),
    ],
)
def test_a_hung_request_ends_at_once(
    script: Callable[[Reached, Peer], None], requests: int
) -> None:
    """It is not retried, and the log has no line about it."""
    reached = Reached()

    def serve(peer: Peer) -> None:
        script(reached, peer)

    with scripted_service(serve, keeps_open) as service:
        client = client_of(service, request_timeout_seconds=TIMEOUT_SECONDS, max_retries=8)
        client.logger.setLevel(logging.DEBUG)  # a request that is sent again is logged too
        assert closed_while(client, reached.event, requests) == [ClosedError.__name__]
        assert client.logger.lines == []
        assert service.connections == 1


def test_no_request_begins_after_the_close() -> None:
    """This holds for a thread that has a connection and for one that has none."""
    with scripted_service(keeps_open) as service:
        client = client_of(service)
        client.fetch()
        client.client.transport.close()
        with pytest.raises(RetryableError, match="the run is over"):
            client.fetch()
        ends: list[BaseException] = []

        def fetch() -> None:
            with pytest.raises(RetryableError, match="the run is over") as raised:
                client.fetch()
            ends.append(raised.value)

        thread = threading.Thread(target=fetch)
        thread.start()
        thread.join(WAIT_SECONDS)
        assert len(ends) == 1
        assert len(service.heard) == 1
