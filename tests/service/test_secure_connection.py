"""Encrypted connections, direct or through a proxy, and the variables that set these up."""

import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from tap_audit_events.errors.exceptions import RefusedError
from tap_audit_events.service.rate_limiter import ClosedError
from tests.builders import an_event
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

TOKEN = b"acme_pat_scripted"
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "CURL_CA_BUNDLE")


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The certificate of ``localhost``, which clients of the test trust."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    authority.issue_cert("localhost").configure_cert(context)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "authority.pem"))
    return context


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with connect_proxy() as proxy:
        yield proxy


@pytest.fixture
def through_proxy(
    request: pytest.FixtureRequest, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Whether the clients of the test use the proxy."""
    if request.param:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
    return bool(request.param)


THROUGH_PROXY = pytest.mark.parametrize(
    "through_proxy", [False, True], ids=["direct", "proxy"], indirect=True
)


@THROUGH_PROXY
@pytest.mark.parametrize("script", [serves_once, resets_second])
def test_a_connection_that_was_closed_while_idle_is_replaced(
    script: Script, tls: ssl.SSLContext, proxy: Proxy, through_proxy: bool
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


@pytest.mark.parametrize(
    ("name", "value"),
    [("REQUESTS_CA_BUNDLE", ""), ("CURL_CA_BUNDLE", ""), ("PYTHONHTTPSVERIFY", "0")],
)
def test_no_variable_turns_off_certificate_checks(
    name: str, value: str, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables of other programs change nothing, and neither does an empty variable."""
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    monkeypatch.setenv(name, value)
    with scripted_service(keeps_open, tls=tls) as service:
        with pytest.raises(RefusedError, match="AE-CERTIFICATE"):
            client_of(service).fetch()
        assert service.heard == []


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_forwards_bytes_that_it_cannot_read(
    name: str, scheme: str, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every page comes through one tunnel, encrypted, even if the proxy itself uses TLS."""
    page = json.dumps({"auditEvents": [an_event(id="a")]}).encode()

    def serve(peer: Peer) -> None:
        while peer.hear():
            peer.respond(page)

    with (
        scripted_service(serve, tls=tls) as service,
        connect_proxy(tls if scheme == "https" else None) as proxy,
    ):
        monkeypatch.setenv(name, f"{scheme}://localhost:{proxy.port}")
        client = client_of(service)
        assert [client.fetch(), client.fetch("cursor-1")] == [["a"], ["a"]]
    (tunnel,) = proxy.tunnels
    assert tunnel.startswith(f"CONNECT {service.base_url.removeprefix('https://')} ")
    assert [each["Authorization"].encode() for each in service.headers] == [b"Bearer " + TOKEN] * 2
    assert proxy.seen
    assert TOKEN not in tunnel.encode() + proxy.seen
    assert b"cursor-" not in proxy.seen


@pytest.mark.parametrize("hosts", ["localhost", "elsewhere.example,localhost", "*"])
def test_no_proxy_names_hosts_that_are_requested_directly(
    hosts: str, tls: ssl.SSLContext, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("NO_PROXY", hosts)
    with scripted_service(keeps_open, tls=tls) as service:
        client_of(service).fetch()
        assert len(service.heard) == 1
    assert proxy.tunnels == []
