"""Connections that the service closes while they are idle, and connections that fail."""

import json

import pytest

from tap_audit_events.errors.exceptions import RetryableError
from tests.builders import an_event
from tests.running import run
from tests.service.scripted import (
    Peer,
    Scripted,
    client_of,
    keeps_open,
    scripted_service,
)

PAGES = 25


def serves_once(peer: Peer) -> None:
    """Closes the connection after a response, as with a keep-alive timeout of 0."""
    peer.hear()
    peer.respond()


def resets_second(peer: Peer) -> None:
    """Resets the connection as soon as a second request arrives."""
    peer.hear()
    peer.respond()
    peer.hear()
    peer.reset()


def breaks(peer: Peer) -> None:
    """Closes the connection after the request."""
    peer.hear()


@pytest.mark.parametrize("script", [serves_once, resets_second])
def test_a_connection_that_was_closed_while_idle_is_replaced(script: object) -> None:
    """This is not a failure: it costs no retry, and each request counts once."""
    with scripted_service(script) as service:  # type: ignore[arg-type]
        client = client_of(service)
        for _ in range(PAGES):
            client.fetch()
        assert client.limiter.run.sent == PAGES
        assert client.limiter.run.retries == 0
        assert client.logger.lines == []
        assert service.connections == PAGES


def test_a_service_that_closes_at_once_hears_each_request_once() -> None:
    """Even with a keep-alive timeout of 0, a run reads 25 pages with 25 requests."""

    def serve(peer: Peer) -> None:
        peer.hear()
        number = len(service.heard)
        body = {"auditEvents": [an_event(id=f"{number}", at=f"2024-05-06T07:08:{number:02}Z")]}
        more = {"nextCursor": f"c{number}"} if number < PAGES else {}
        peer.respond(json.dumps(body | more).encode())

    service: Scripted
    with scripted_service(serve) as service:
        settings = {
            "base_url": service.base_url,
            "organization_id": "6f1d4c1e-7f0b-4f3a-9d35-0c8a5b1e2d47",
            "access_token": "acme_pat_scripted",
            "max_retries": 0,
            "page_size": 1,
            "concurrency": 1,
        }
        done = run(settings).raise_for_exit_code()
    assert done.ids == [str(number) for number in range(1, PAGES + 1)]
    assert len(service.heard) == PAGES
    assert f"requests: {PAGES}, windows: 1, retries: 0;" in done.log


def test_a_connection_that_fails_on_its_first_request_is_a_failure() -> None:
    """Only a connection that has carried a response may have been idle."""
    with scripted_service(breaks) as service:
        with pytest.raises(RetryableError, match="AE-CONNECTION"):
            client_of(service).fetch()
        assert service.connections == 1


def hears_only(peer: Peer) -> None:
    """Reads requests and sends nothing."""
    while peer.hear():
        pass


def test_a_response_that_is_cut_costs_a_retry() -> None:
    """Its connection did not break while it was idle, but in the middle of a response."""

    def cuts_second(peer: Peer) -> None:
        peer.hear()
        peer.respond()
        peer.hear()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")

    with scripted_service(cuts_second, keeps_open) as service:
        client = client_of(service, max_retries=1)
        client.fetch()
        client.fetch()
    (line,) = client.logger.lines
    assert line.startswith("Retry 1 of 1 in ")
    assert "AE-CUT" in line
