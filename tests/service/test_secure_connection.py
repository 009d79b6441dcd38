"""Encrypted connections, direct or through a proxy, are read in the same way as plain ones."""

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from tap_audit_events.service.rate_limiter import ClosedError
from tests.service.proxy import Proxy, connect_proxy
from tests.service.scripted import (
    Peer,
    Script,
    client_of,
    keeps_open,
    scripted_service,
)
from tests.service.test_client import resets_second, serves_once
from tests.service.test_closing import TIMEOUT_SECONDS, Reached, closed_while

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


@pytest.mark.parametrize("script", [Reached.before_status, Reached.in_body])
def test_a_hung_request_ends_at_once(
    script: Callable[[Reached, Peer], None], tls: ssl.SSLContext
) -> None:
    """This does not hold for a handshake or connect that hangs: it ends with its own timeout."""
    reached = Reached()
    with scripted_service(lambda peer: script(reached, peer), tls=tls) as service:
        client = client_of(service, request_timeout_seconds=TIMEOUT_SECONDS, max_retries=8)
        assert closed_while(client, reached.event) == [ClosedError.__name__]
