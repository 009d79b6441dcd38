"""A response as a whole has a deadline, however slowly and in whatever form it arrives."""

import time

import pytest

from tap_audit_events.errors.exceptions import RetryableError
from tap_audit_events.service import connection
from tests.service.scripted import Peer, Script, client_of, head, keeps_open, scripted_service

CHUNKED = head("Transfer-Encoding: chunked")
PAGE = b'{"auditEvents": []}'


def dripping(start: bytes, piece: bytes) -> Script:
    """Sends a piece every few milliseconds for ever, so that no single read has to wait long."""

    def serve(peer: Peer) -> None:
        peer.hear()
        peer.send(start)
        while True:
            time.sleep(0.01)
            peer.send(piece)

    return serve


ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "100 Continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "103 Early Hints": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "status": (b"HTTP/1.1 2", b"0"),
    "header": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "length": (head("Content-Length: 100000"), b"x"),
    "no length": (head(), b"x"),
    "chunks": (CHUNKED, b"1\r\nx\r\n"),
    "chunk extension": (CHUNKED + b"1;", b"x"),
    "trailers": (CHUNKED + b"0\r\n", b"X: x\r\n"),
    "empty gzip members": (
        head("Content-Encoding: gzip"),
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0",
    ),
}
"""The start of a response, and the bytes that follow it without end."""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_response_without_end_is_a_timeout(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wait for bytes is short; only the response as a whole takes too long."""
    monkeypatch.setattr(connection, "DEADLINE_FACTOR", 0.5)
    with (
        scripted_service(dripping(*ENDLESS[kind])) as service,
        pytest.raises(RetryableError) as raised,
    ):
        client_of(service, request_timeout_seconds=0.6).fetch()
    assert raised.value.code == "AE-TIMEOUT"


class Time:
    """A clock that advances each time it is read."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self._step = step

    def monotonic(self) -> float:
        self.now += self._step
        return self.now


def test_each_response_of_a_connection_has_its_own_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Together, many responses may take longer than a single one may."""
    clock = Time(60.0)
    monkeypatch.setattr(connection, "time", clock)
    with scripted_service(keeps_open) as service:
        client = client_of(service, request_timeout_seconds=60)
        for _ in range(20):
            client.fetch()
        assert service.connections == 1
    assert clock.now > 2 * 60 * connection.DEADLINE_FACTOR


@pytest.mark.parametrize("status", ["100 Continue", "102 Processing", "103 Early Hints"])
def test_an_interim_response_is_skipped(status: str) -> None:
    """The final response follows an interim one (RFC 9110, section 15.2)."""

    def serve(peer: Peer) -> None:
        while peer.hear():
            peer.send(3 * f"HTTP/1.1 {status}\r\nLink: </style.css>\r\n\r\n".encode())
            peer.respond(b'{"auditEvents": [{"id": "a", "occurredAt": "2026-01-01T00:00:00Z"}]}')

    with scripted_service(serve) as service:
        client = client_of(service)
        assert [client.fetch(), client.fetch()] == [["a"], ["a"]]
        assert service.connections == 1


@pytest.mark.parametrize("name", ["Set-Cookie", "SET-COOKIE"])
def test_cookies_are_not_parsed(name: str) -> None:
    """Python would take seconds for long cookies, and warn of a bug of its own for such a year."""

    def serve(peer: Peer) -> None:
        while peer.hear():
            peer.respond(PAGE, f"{name}: a=b", f"{name}: c=d; expires=1 Jan {'1' * 5000}")

    with scripted_service(serve) as service:
        client = client_of(service)
        assert [client.fetch(), client.fetch()] == [[], []]
        assert all("Cookie" not in headers for headers in service.headers)


@pytest.mark.parametrize(
    "body",
    [
        b"x\r\n" + PAGE,
        b"\r\n" + PAGE,
        b"-1\r\n" + PAGE,
        b"-5\r\n" + PAGE,
        b"13\r\n" + PAGE + b"\r\nzz\r\n",
        b"ffffffffffffffffffffffff\r\n" + PAGE,
        b"1" * 70_000 + b"\r\n",
        b"13\r\n" + PAGE[:10],
        b"",
    ],
    ids=["letter", "none", "-1", "-5", "second", "huge", "long", "cut", "empty"],
)
def test_a_bad_chunk_size_is_a_cut_response(body: bytes) -> None:
    """The request is retried, and the next response is complete."""

    def cut(peer: Peer) -> None:
        peer.hear()
        peer.send(CHUNKED + body)

    with scripted_service(cut, keeps_open) as service:
        client = client_of(service, max_retries=1)
        assert client.fetch() == []
    (line,) = client.logger.lines
    assert "AE-CUT: The response is incomplete" in line
