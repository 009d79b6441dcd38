"""However a response is framed, a run reads it within its bounds, or ends with an error in time."""

from collections.abc import Sequence

import pytest

from tests.builders import ORGANIZATION_ID, an_event
from tests.errors.test_errors import only_error
from tests.events.bodies import an_envelope
from tests.events.test_page import _encode as encoded
from tests.running import Run, run
from tests.service.scripted import (
    EMPTY_PAGE,
    Peer,
    Script,
    Scripted,
    head,
    keeps_open,
    scripted_service,
)
from tests.service.test_body import FRAMINGS, MEGABYTE, sends
from tests.service.test_connection import ENDLESS, dripping

PAGE = an_envelope(encoded(an_event(id="a")))


def run_against(service: Scripted, **more: object) -> Run:
    """Run the tap with a small bound for responses, and without retries."""
    settings = {
        "base_url": service.base_url,
        "organization_id": ORGANIZATION_ID,
        "access_token": "acme_pat_framing",
        "max_retries": 0,
        "max_response_megabytes": 1,
    }
    return run(settings | more)


# Size


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_page_of_the_largest_size_is_delivered(framing: str) -> None:
    """The bound counts the bytes of the decompressed body."""
    with scripted_service(sends(FRAMINGS[framing](PAGE.ljust(MEGABYTE)))) as service:
        assert run_against(service).raise_for_exit_code().ids == ["a"]


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_page_that_is_a_byte_larger_ends_the_run(framing: str) -> None:
    """The length that the headers state does not matter."""
    with scripted_service(sends(FRAMINGS[framing](PAGE.ljust(MEGABYTE + 1)))) as service:
        line = only_error(run_against(service, max_retries=3))
        assert len(service.heard) == 1
    assert line.startswith("AE-TOO-LARGE: ")
    assert "more than 1,000,000 bytes" in line


def endless(start: bytes, piece: bytes = b" " * 100_000) -> Script:
    """Sends pieces without end, as fast as they are read."""

    def serve(peer: Peer) -> None:
        peer.hear()
        peer.send(start)
        while True:
            peer.send(piece)

    return serve


CHUNK = b"186a0\r\n" + b" " * 100_000 + b"\r\n"

ENDLESS_BODIES: dict[str, tuple[Sequence[str], bytes]] = {
    "no length": ((), b" " * 100_000),
    "a length next to chunks": (("Content-Length: 10", "Transfer-Encoding: chunked"), CHUNK),
    "a length after chunks": (("Transfer-Encoding: chunked", "Content-Length: 10"), CHUNK),
    "two lengths": (("Content-Length: 10", "Content-Length: 5000000000"), b" " * 100_000),
    "two lengths in one": (("Content-Length: 10, 5000000000",), b" " * 100_000),
    "a length that is not a number": (("Content-Length: many",), b" " * 100_000),
    "a length below zero": (("Content-Length: -1",), b" " * 100_000),
    "a huge length": (("Content-Length: " + "9" * 5000,), b" " * 100_000),
    "a negative chunk": (("Transfer-Encoding: chunked",), b"-1\r\n" + b" " * 100_000),
    "an unknown encoding": (("Transfer-Encoding: gzip",), b" " * 100_000),
    "a line of a chunk's size": (("Transfer-Encoding: chunked",), b"1" * 100_000),
}


@pytest.mark.parametrize("kind", ENDLESS_BODIES)
def test_a_body_without_end_ends_the_run(kind: str) -> None:
    """The body is read up to the bound, or not at all."""
    headers, piece = ENDLESS_BODIES[kind]
    with scripted_service(endless(head(*headers), piece)) as service:
        line = only_error(run_against(service))
    assert line.split(":")[0] in {"AE-TOO-LARGE", "AE-CUT"}


@pytest.mark.parametrize(
    "start", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX: ", b"", b"HTTP/1.1 100 Continue\r\n"]
)
def test_headers_without_end_end_the_run(start: bytes) -> None:
    """They may be many headers, a long one, or bytes that are not headers at all."""
    pieces = {b"HTTP/1.1 200 OK\r\n": b"X: x\r\n" * 1000}
    with scripted_service(endless(start, pieces.get(start, b"x" * 100_000))) as service:
        line = only_error(run_against(service))
    assert line.split(":")[0] in {"AE-CUT", "AE-CONNECTION"}


# Time


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if number % 4 == 0 else pytest.mark.long)
        for number, kind in enumerate(ENDLESS)
    ],
)
def test_a_response_without_end_is_a_timeout(kind: str) -> None:
    """Each wait for bytes is short; only the response as a whole takes too long."""
    start, piece = ENDLESS[kind]
    with scripted_service(dripping(start, piece)) as service:
        line = only_error(run_against(service, request_timeout_seconds=0.1))
    assert line.startswith("AE-TIMEOUT: ")


@pytest.mark.parametrize("status", ["100 Continue", "102 Processing", "103 Early Hints"])
def test_an_interim_response_does_not_end_the_run(status: str) -> None:
    """The final response follows an interim one (RFC 9110, section 15.2)."""

    def serve(peer: Peer) -> None:
        peer.hear()
        peer.send(3 * f"HTTP/1.1 {status}\r\nLink: </style.css>\r\n\r\n".encode())
        peer.respond(PAGE)

    with scripted_service(serve) as service:
        assert run_against(service).raise_for_exit_code().ids == ["a"]


@pytest.mark.parametrize(
    "size",
    [
        *(b"x", b"", b"-5", b"1" * 70_000),
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in (b"-1", b"f" * 24, b"1;", b"0x13 x")
        ),
    ],
)
def test_a_bad_chunk_size_is_retried(size: bytes) -> None:
    """A response with such a size counts as cut; the next response is complete."""
    bad = head("Transfer-Encoding: chunked") + size + b"\r\n" + EMPTY_PAGE
    with scripted_service(sends(bad), keeps_open) as service:
        done = run_against(service, max_retries=1, concurrency=1).raise_for_exit_code()
    (warning,) = done.warnings
    assert warning.startswith("Retry 1 of 1 in ")
    assert "AE-CUT: The response is incomplete" in warning


@pytest.mark.parametrize(
    "headers",
    [
        (f"Content-Length: {len(PAGE)}, {len(PAGE)}",),
        ("Transfer-Encoding: gzip, chunked",),
        ("no header", f"Content-Length: {len(PAGE)}"),
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in (
                ("Content-Length:",),
                ("Content-Length: -1",),
                (f"Content-Length : {len(PAGE)}",),
                ("Transfer-Encoding: chunked, chunked",),
                ("no header", "Transfer-Encoding: chunked"),
            )
        ),
    ],
)
def test_headers_that_do_not_say_where_the_body_ends_are_an_error(headers: Sequence[str]) -> None:
    """The connection stays open: waiting for its end would only lead to a timeout."""

    def serve(peer: Peer) -> None:
        while peer.hear():
            peer.send(head(*headers) + PAGE)

    with scripted_service(serve) as service:
        line = only_error(run_against(service))
        assert len(service.heard) == 1
    assert line.startswith("AE-CUT: ")
    assert "headers do not say where the body ends" in line


@pytest.mark.parametrize("headers", [(), ("Connection: close",), ("X-Odd: a, b",)])
def test_a_body_without_a_length_ends_with_the_connection(headers: Sequence[str]) -> None:
    """This is rule 8 of RFC 9112, section 6.3."""
    with scripted_service(sends(head(*headers) + PAGE)) as service:
        assert run_against(service).raise_for_exit_code().ids == ["a"]


# The log


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_malformed_headers_do_not_fill_the_log(level: str) -> None:
    """urllib3 would log a traceback for each page, with all headers."""
    lines = [f"X-{number}: {'y' * 60_000}" for number in range(90)]
    lines.insert(1, "without a colon " + "z" * 60_000)

    def serve(peer: Peer) -> None:
        peer.hear()
        peer.send(head(f"Content-Length: {len(PAGE)}", *lines) + PAGE)

    with scripted_service(serve) as service:
        settings = {
            "base_url": service.base_url,
            "organization_id": ORGANIZATION_ID,
            "access_token": "acme_pat_framing",
        }
        done = run(settings, environment={"LOGLEVEL": level}).raise_for_exit_code()
    assert done.ids == ["a"]
    assert "Traceback" not in done.log
    assert max(map(len, done.log.splitlines())) <= 20_100
    assert len(done.log) < 50_000
