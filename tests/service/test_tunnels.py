"""Proxies and certificate bundles, which are set by the usual environment variables."""

import http.server
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.builders import ORGANIZATION_ID, an_event
from tests.errors.test_errors import only_error
from tests.running import Run, run
from tests.service.proxy import Proxy, connect_proxy, serving

TOKEN = "acme_pat_for-the-service-alone"


@pytest.fixture(autouse=True)
def without_the_machines_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the machine's own proxies and bundles from the environment."""
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    for name in (*names, "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@dataclass(frozen=True)
class Service:
    """A service over TLS, and the bundle of the authority that has signed its certificate.

    Attributes:
        pages: the bodies of the next responses; all further responses are empty pages.
        certificate: the certificate that it shows, for the name ``localhost``.
    """

    port: int
    bundle: Path
    tokens: list[str]
    pages: list[bytes]
    certificate: ssl.SSLContext

    @property
    def base_url(self) -> str:
        return f"https://localhost:{self.port}"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service over TLS that records the Authorization header of each request."""
    tokens: list[str] = []
    pages: list[bytes] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            tokens.append(self.headers["Authorization"])
            body = pages.pop(0) if pages else b'{"auditEvents": []}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    authority = trustme.CA()
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server) as port:
        yield Service(port, path, tokens, pages, context)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A new proxy for each test."""
    with connect_proxy() as proxy:
        yield proxy


def run_with(service: Service, **environment: str) -> Run:
    """Run the tap against the service."""
    settings = {"base_url": service.base_url, "organization_id": ORGANIZATION_ID}
    given: dict[str, Any] = settings | {"access_token": TOKEN, "max_retries": 0, "concurrency": 1}
    return run(given, environment=environment)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REQUESTS_CA_BUNDLE", ""),
        ("CURL_CA_BUNDLE", ""),
        ("PYTHONHTTPSVERIFY", "0"),
    ],
)
def test_no_variable_turns_off_certificate_checks(name: str, value: str, service: Service) -> None:
    """Variables of other programs change nothing, and neither does an empty variable."""
    assert only_error(run_with(service, **{name: value})).startswith("AE-CERTIFICATE: ")
    assert service.tokens == []


def test_a_bundle_that_the_user_names_is_trusted(service: Service) -> None:
    """Without the bundle, the service is not trusted."""
    trusted = run_with(service, REQUESTS_CA_BUNDLE=str(service.bundle))
    assert trusted.raise_for_exit_code().records == []
    assert service.tokens == [f"Bearer {TOKEN}"]
    assert only_error(run_with(service)).startswith("AE-CERTIFICATE: ")
    assert len(service.tokens) == 1


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_forwards_bytes_that_it_cannot_read(
    name: str, service: Service, proxy: Proxy
) -> None:
    """The tap requests a tunnel, and sends the token through it, encrypted."""
    bundle = {"REQUESTS_CA_BUNDLE": str(service.bundle)}
    run_with(service, **bundle, **{name: f"http://127.0.0.1:{proxy.port}"}).raise_for_exit_code()
    assert service.tokens == [f"Bearer {TOKEN}"]
    (tunnel,) = proxy.tunnels
    assert tunnel.startswith(f"CONNECT localhost:{service.port} ")
    assert proxy.seen
    assert TOKEN.encode() not in tunnel.encode() + proxy.seen


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_every_page_goes_through_the_same_tunnel(scheme: str, service: Service) -> None:
    """One connection serves every page and ends without an error, even if the proxy uses TLS."""
    ids = [f"{number}" for number in range(5)]
    for number, event_id in enumerate(ids):
        body = {"auditEvents": [an_event(id=event_id)], "nextCursor": f"cursor-{number}"}
        service.pages.append(json.dumps(body).encode())
    bundle = {"REQUESTS_CA_BUNDLE": str(service.bundle)}
    with connect_proxy(service.certificate if scheme == "https" else None) as proxy:
        done = run_with(service, **bundle, HTTPS_PROXY=f"{scheme}://localhost:{proxy.port}")
    assert done.raise_for_exit_code().ids == ids
    assert service.tokens == [f"Bearer {TOKEN}"] * 6
    assert len(proxy.tunnels) == 1
    assert TOKEN.encode() not in proxy.seen
    assert b"cursor-" not in proxy.seen


@pytest.mark.parametrize("hosts", ["localhost", "elsewhere.example,localhost", "*"])
def test_no_proxy_names_hosts_that_are_requested_directly(
    hosts: str, service: Service, proxy: Proxy
) -> None:
    """Requests to these hosts do not go through the proxy."""
    done = run_with(
        service,
        REQUESTS_CA_BUNDLE=str(service.bundle),
        HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}",
        NO_PROXY=hosts,
        no_proxy=hosts,
    )
    done.raise_for_exit_code()
    assert service.tokens == [f"Bearer {TOKEN}"]
    assert proxy.tunnels == []
