"""Encrypted connections, direct or through a proxy, are read in the same way as plain ones."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from urllib3 import connectionpool
from urllib3.connection import HTTPSConnection
from urllib3.util.wait import wait_for_read

from tap_audit_events.errors.exceptions import RetryableError
from tap_audit_events.service import connection
from tests.service.proxy import Proxy, connect_proxy
from tests.service.scripted import (
    Peer,
    Script,
    client_of,
    keeps_open,
    scripted_service,
)
from tests.service.test_client import resets_second, serves_once
from tests.service.test_connection import dripping

THROUGH_PROXY = pytest.mark.parametrize("through_proxy", [False, True], ids=["direct", "proxy"])


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The certificate of ``localhost``, which clients of the test trust."""
    for name in ("HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    authority.issue_cert("localhost").configure_cert(context)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "authority.pem"))
    return context


@pytest.fixture
def proxy(through_proxy: bool, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy, which the clients of a test use if `through_proxy` is set."""
    with connect_proxy() as proxy:
        if through_proxy:
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        yield proxy


@THROUGH_PROXY
def test_a_connection_serves_many_pages(
    through_proxy: bool, tls: ssl.SSLContext, proxy: Proxy
) -> None:
    """A new page does not need a new connection."""
    with scripted_service(keeps_open, tls=tls) as service:
        client = client_of(service)
        for _ in range(5):
            assert client.fetch() == []
        assert len(service.heard) == 5
        assert service.connections == 1
    assert len(proxy.tunnels) == through_proxy


@THROUGH_PROXY
@pytest.mark.parametrize("script", [serves_once, resets_second])
def test_a_connection_that_was_closed_while_idle_is_replaced(
    script: Script, through_proxy: bool, tls: ssl.SSLContext, proxy: Proxy
) -> None:
    """The old connection may close before or during the request; the new one uses TLS too."""
    with scripted_service(script, tls=tls) as service:
        client = client_of(service)
        for _ in range(3):
            client.fetch()
        assert service.connections == 3
    assert len(proxy.tunnels) == 3 * through_proxy
    assert client.limiter.run.retries == 0


def resets_at_once(peer: Peer) -> None:
    """Resets the connection after a response."""
    peer.hear()
    peer.respond()
    peer.reset()


def test_a_connection_that_is_reset_before_the_request_is_written_is_replaced(
    tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python then raises a TLS error, which it does not for a plain connection."""

    def is_still_open(used: HTTPSConnection) -> bool:
        """What urllib3 finds just before the reset arrives."""
        assert wait_for_read(used.sock, timeout=60)
        return False

    monkeypatch.setattr(connectionpool, "is_connection_dropped", is_still_open)
    with scripted_service(resets_at_once, tls=tls) as service:
        client = client_of(service, max_retries=0)
        for _ in range(3):
            client.fetch()
        assert service.connections == 3


def check_deadline(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a response whose bytes never end is a timeout."""
    monkeypatch.setattr(connection, "DEADLINE_FACTOR", 0.5)
    endless = dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x")
    with (
        scripted_service(endless, tls=tls) as service,
        pytest.raises(RetryableError) as raised,
    ):
        client_of(service, request_timeout_seconds=0.6).fetch()
    assert raised.value.code == "AE-TIMEOUT"


@THROUGH_PROXY
@pytest.mark.timeout(60)
def test_a_response_without_end_is_a_timeout(
    through_proxy: bool, tls: ssl.SSLContext, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each wait for bytes is short; only the response as a whole takes too long."""
    check_deadline(tls, monkeypatch)
    assert len(proxy.tunnels) == through_proxy
