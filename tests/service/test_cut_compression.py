"""A compressed body that is cut is a temporary error, and never a shorter page."""

import gzip
import json
import sys
import zlib
from collections.abc import Callable
from importlib import import_module

import pytest

from tests.builders import an_event
from tests.service.scripted import Peer, Script, client_of, head, scripted_service

IDS = [f"event-{number}" for number in range(20)]
PAGE = json.dumps({"auditEvents": [an_event(id=each) for each in IDS]}).encode()


def zstd(data: bytes) -> bytes:
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        return bytes(import_module(name).compress(data))
    except ImportError:
        pytest.skip("urllib3 does not decompress zstd here")


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstd,
}


def sends(body: bytes, encoding: str) -> Script:
    """Responds to one request; the body ends where the connection does."""

    def serve(peer: Peer) -> None:
        peer.hear()
        peer.send(head(f"Content-Encoding: {encoding}") + body)

    return serve


@pytest.mark.parametrize(
    ("encoding", "parts"),
    [(each, parts) for each in CODECS for parts in (1, 2, 5) if parts == 1 or each != "deflate"],
)
def test_a_cut_body_is_requested_again(encoding: str, parts: int) -> None:
    """It may consist of several members or frames, and be cut within one or between two."""
    size = -(-len(PAGE) // parts)
    members = [CODECS[encoding](PAGE[start : start + size]) for start in range(0, len(PAGE), size)]
    whole, ends = b"".join(members), [sum(map(len, members[:n])) for n in range(1, parts)]
    cuts = {0, 1, 9, len(whole) // 3, len(whole) - 9, len(whole) - 1, *ends, *(n - 1 for n in ends)}
    scripts = [sends(whole[:cut], encoding) for cut in sorted(cuts)]
    with scripted_service(*scripts, sends(whole, encoding)) as service:
        client = client_of(service, max_retries=len(cuts))
        assert client.fetch() == IDS
        assert len(service.heard) == len(cuts) + 1
    for line in client.logger.lines:
        assert "AE-CUT: " in line or "AE-NO-JSON: " in line
    assert "AE-CUT: " in client.logger.lines[-1]  # only the end of its last member is missing
