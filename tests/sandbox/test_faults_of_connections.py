"""Faults while a response is sent, over real sockets."""

import gzip
import http.client
import socket
from urllib.parse import urlsplit

import pytest
import requests

from tests.builders import an_event
from tests.sandbox.conftest import Sandbox

ABCD = [an_event(id=name) for name in "abcd"]


def raw_response(url: str, token: str) -> bytes:
    """Send one request on a new connection, and return all bytes until the connection ends."""
    parts = urlsplit(url)
    request = f"GET {parts.path} HTTP/1.1\r\nHost: sandbox\r\nConnection: close\r\n"
    request += f"Authorization: Bearer {token}\r\n\r\n"
    with socket.create_connection((parts.hostname or "", parts.port or 0)) as connection:
        connection.sendall(request.encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_reset_breaks_the_connection_without_a_response(sandbox: Sandbox) -> None:
    """The client sees a reset, not an orderly end, and may connect again."""
    client = sandbox(*ABCD, faults=["reset@1"])
    with pytest.raises(requests.exceptions.ConnectionError, match="Connection reset by peer"):
        client.get()
    assert client.get().status_code == 200
    assert [request.status for request in client.service.requests] == [0, 200]


def test_only_a_reused_connection_is_reset(sandbox: Sandbox) -> None:
    """The first request on each connection succeeds; the second is reset without a byte."""
    client = sandbox(*ABCD, faults=["reset-reused@*"])
    for _ in range(2):
        assert client.get().status_code == 200
        with pytest.raises(requests.exceptions.ConnectionError, match="Connection reset by peer"):
            client.get()
    requests_seen = client.service.requests
    assert [request.status for request in requests_seen] == [200, 0, 200, 0]
    assert [request.reused for request in requests_seen] == [False, True, False, True]


def test_an_idle_connection_is_closed_with_fin(sandbox: Sandbox) -> None:
    """The client reads an orderly end after `keep_alive_seconds`. No header announces it."""
    client = sandbox(*ABCD, keep_alive_seconds=0)
    with client.session.get(client.url, stream=True) as response:
        assert "Connection" not in response.headers
        assert response.raw.connection is not None
        connection = response.raw.connection.sock
        connection.settimeout(10)
        assert len(response.content) == int(response.headers["Content-Length"])
        assert connection.recv(1) == b""


def test_a_cut_body_is_shorter_than_its_length(sandbox: Sandbox) -> None:
    """Content-Length is that of the whole body, but the connection ends earlier."""
    client = sandbox(*ABCD, faults=["cut:bytes=10@1", "cut@2"])
    for _ in range(2):
        with pytest.raises(requests.exceptions.ChunkedEncodingError, match="IncompleteRead"):
            client.get()
    with client.session.get(client.url, stream=True) as whole:
        assert int(whole.headers["Content-Length"]) == len(whole.content)


def test_a_hang_keeps_the_client_waiting(sandbox: Sandbox) -> None:
    """No byte arrives before the client gives up; the next request is served."""
    client = sandbox(*ABCD, faults=["hang:seconds=600@1"])
    with pytest.raises(requests.exceptions.ReadTimeout):
        client.session.get(client.url, timeout=(60, 0.05))
    assert client.get().status_code == 200


def test_a_dripping_body_arrives_in_parts(sandbox: Sandbox) -> None:
    """Each part but the last has the requested size, and no byte is missing."""
    client = sandbox(*ABCD, faults=["drip:bytes=500,seconds=0.01@1"])
    dripped = client.session.get(client.url, stream=True)
    parts = list(iter(lambda: dripped.raw.read1(65536), b""))
    assert b"".join(parts) == client.get().content
    assert len(parts) > 1
    assert {len(part) % 500 for part in parts[:-1]} == {0}


def test_a_wrong_length_is_sent_with_a_chunked_body(sandbox: Sandbox) -> None:
    """Both headers are sent; the chunks hold the whole body, and the connection stays open."""
    client = sandbox(*ABCD, faults=["wrong-length@1-2"])
    raw = raw_response(client.url, client.service.access_token)
    head, _, chunked = raw.partition(b"\r\n\r\n")
    assert b"content-length: 10\r\n" in head + b"\r\n"
    assert b"transfer-encoding: chunked\r\n" in head + b"\r\n"
    chunked_response = client.get()
    assert len(chunked_response.json()["auditEvents"]) == 4
    assert chunked.endswith(b"\r\n0\r\n\r\n")
    assert chunked_response.content in chunked
    assert client.get().content == chunked_response.content
    assert client.service.requests[-1].reused


def test_bodies_are_compressed_for_clients_that_accept_it(sandbox: Sandbox) -> None:
    """This concerns pages and errors; the bytes that are sent are gzip."""
    client = sandbox(*ABCD, gzip=True)
    with client.session.get(client.url, stream=True) as page:
        assert page.headers["Content-Encoding"] == "gzip"
        assert len(gzip.decompress(page.raw.read(decode_content=False))) > 1000
    assert client.get(order="up").headers["Content-Encoding"] == "gzip"


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("*", True),
        ("identity", False),
        ("gzip;q=0", False),
        (None, False),
    ],
)
def test_only_accepted_encodings_are_used(
    sandbox: Sandbox, accepted: str | None, compressed: bool
) -> None:
    """RFC 9110, 12.5.3: a weight of 0 means "not acceptable"."""
    client = sandbox(*ABCD, gzip=True)
    client.session.headers["Accept-Encoding"] = accepted  # type: ignore[assignment]
    assert ("Content-Encoding" in client.get().headers) is compressed


def test_several_faults_can_concern_one_request(sandbox: Sandbox) -> None:
    """The response has the status of one fault, and drips and is cut by the two others."""
    faults = ["status:code=500@1", "drip:bytes=2@1", "cut:bytes=5@1"]
    client = sandbox(faults=faults, gzip=True)
    with client.session.get(client.url, stream=True) as response:
        assert response.status_code == 500
        assert response.raw._fp is not None
        with pytest.raises(http.client.IncompleteRead) as broken:
            response.raw._fp.read()
    assert len(broken.value.partial) == 5
