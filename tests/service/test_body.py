"""The bound of a response counts the bytes that arrive, whatever the headers say."""

import gc
import gzip
from collections.abc import Callable

import pytest

from tap_audit_events.errors.exceptions import ContractError, RefusedError, RetryableError
from tests.service.scripted import EMPTY_PAGE, Peer, Script, client_of, head, scripted_service

MEGABYTE = 1_000_000


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)


def sends(*pieces: bytes) -> Script:
    """Responds to one request with these bytes, and closes the connection."""

    def serve(peer: Peer) -> None:
        peer.hear()
        for piece in pieces:
            peer.send(piece)

    return serve


def spaces(count: int) -> bytes:
    """An empty page, padded with spaces to `count` bytes."""
    return EMPTY_PAGE.ljust(count)


def gzipped_with_length(data: bytes) -> bytes:
    return head("Content-Encoding: gzip", f"Content-Length: {len(data)}") + data


FRAMINGS: dict[str, Callable[[bytes], bytes]] = {
    "length": lambda page: head(f"Content-Length: {len(page)}") + page,
    "no length": lambda page: head() + page,
    "chunked": lambda page: head("Transfer-Encoding: chunked") + chunked(page),
    "chunked with a length": lambda page: (
        head("Content-Length: 10", "Transfer-Encoding: chunked") + chunked(page)
    ),
    "chunked, odd case": lambda page: (
        head("Content-Length: 10", "transfer-encoding: CHUNKED") + chunked(page)
    ),
    "gzip": lambda page: head("Content-Encoding: gzip") + gzip.compress(page),
    "gzip with a length": lambda page: gzipped_with_length(gzip.compress(page)),
    "gzip, chunked": lambda page: (
        head("Content-Encoding: gzip", "Transfer-Encoding: chunked") + chunked(gzip.compress(page))
    ),
    "gzip, twice": lambda page: (
        head("Content-Encoding: gzip, gzip") + gzip.compress(gzip.compress(page))
    ),
    "identity": lambda page: (
        head("Content-Encoding: identity", f"Content-Length: {len(page)}") + page
    ),
}


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_page_of_the_largest_size_is_read_and_a_larger_one_is_not(framing: str) -> None:
    """The framing and the compression do not matter, and a larger page is not requested again."""
    pages = [FRAMINGS[framing](spaces(MEGABYTE + more)) for more in (0, 1)]
    with scripted_service(*map(sends, pages)) as service:
        client = client_of(service, max_response_megabytes=1, max_retries=3)
        assert client.fetch() == []
        with pytest.raises(ContractError, match="AE-TOO-LARGE") as raised:
            client.fetch()
        assert raised.value.details == "more than 1,000,000 bytes"
        assert len(service.heard) == 2


@pytest.mark.parametrize(
    "lengths",
    [
        ["Content-Length: 19", "Content-Length: 5000000"],
        ["Content-Length: 19, 5000000"],
        ["Content-Length: -1"],
        ["Content-Length: many"],
        [f"Content-Length: {'9' * 5000}"],
    ],
    ids=lambda lengths: lengths[-1][:40],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_length_that_makes_no_sense_does_not_evade_the_bound(lengths: list[str]) -> None:
    """A body without end is read up to the bound, or not at all."""

    def endless(peer: Peer) -> None:
        peer.hear()
        peer.send(head(*lengths))
        while True:
            peer.send(b" " * 100_000)

    codes = "AE-TOO-LARGE|AE-CUT|AE-NO-JSON"
    with (
        scripted_service(endless) as service,
        pytest.raises((ContractError, RetryableError), match=codes),
    ):
        client_of(service, max_response_megabytes=1).fetch()
    gc.collect()  # urllib3 leaves the connection open if two lengths differ


@pytest.mark.parametrize("framing", ["length", "chunked", "gzip, chunked"])
def test_a_body_that_is_cut_is_retried(framing: str) -> None:
    """It does not matter how much of the body arrived."""
    whole = FRAMINGS[framing](spaces(1000))
    for cut in (5, 8, 20):  # 5: the last chunk, which is empty
        with scripted_service(sends(whole[:-cut]), sends(whole)) as service:
            client = client_of(service, max_retries=1)
            assert client.fetch() == []
            (line,) = client.logger.lines
            assert "AE-CUT: " in line


@pytest.mark.parametrize(
    ("status", "code"),
    [("414", "AE-CURSOR-REFUSED"), ("403", "AE-RETRY-AFTER"), ("429", "AE-RETRY-AFTER")],
)
@pytest.mark.parametrize("framing", ["Content-Encoding: gzip", "Content-Length: 9"])
def test_the_status_of_an_error_counts_without_its_body(
    status: str, code: str, framing: str
) -> None:
    """A gateway may cut the body, or name a compression that it does not have."""
    lines = f"HTTP/1.1 {status} No\r\nRetry-After: 3600\r\n{framing}\r\n\r\n"
    with (
        scripted_service(sends(lines.encode() + b"Nope.")) as service,
        pytest.raises(RefusedError) as raised,
    ):
        client_of(service, max_retries=3).fetch("c1")
    assert raised.value.code == code
    assert len(service.heard) == 1
