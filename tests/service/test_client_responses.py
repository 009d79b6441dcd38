"""A client turns each response into a page or an error."""

import gc
from contextlib import suppress

import pytest
from urllib3 import HTTPResponse

from tap_audit_events.errors.exceptions import (
    RefusedError,
    RetryableError,
    ServiceError,
)
from tap_audit_events.service.responses import MAX_ERROR_BYTES
from tests.service.scripted import (
    EMPTY_PAGE,
    Peer,
    Script,
    client_of,
    scripted_service,
)

OWN_ERROR = b'{"errCode": "no", "msg": "No", "vars": null}'


def responds(status: int, body: bytes = b"", *headers: str) -> Script:
    """Responds to each request of the connection with a status and a body."""
    lines = [f"HTTP/1.1 {status} No", f"Content-Length: {len(body)}", *headers, "", ""]

    def serve(peer: Peer) -> None:
        while peer.hear():
            peer.send("\r\n".join(lines).encode() + body)

    return serve


def test_the_date_of_the_newest_response_is_kept() -> None:
    """The status does not matter; the date is None if the newest response has none."""
    dates = ["Sun, 22 Nov 2026 11:30:03 GMT", "Sun, 22 Nov 2026 11:30:04 GMT"]
    scripts = [
        responds(200, EMPTY_PAGE, "Connection: close", f"Date: {dates[0]}"),
        responds(403, OWN_ERROR, "Connection: close", f"Date: {dates[1]}"),
        responds(200, EMPTY_PAGE),
    ]
    found: list[str | None] = []
    with scripted_service(*scripts) as service:
        client = client_of(service)
        assert client.client.date is None
        for _ in scripts:
            with suppress(RefusedError):
                client.fetch()
            found.append(client.client.date)
    assert found == [*dates, None]


@pytest.mark.parametrize("size", [0, 1, 1000, MAX_ERROR_BYTES])
def test_the_connection_of_an_error_is_used_again(size: int) -> None:
    """The body of the error is read to the end."""
    with scripted_service(responds(403, b"x" * size)) as service:
        client = client_of(service)
        for _ in range(3):
            with pytest.raises(RetryableError):
                client.fetch()
        assert service.connections == 1


def test_an_error_frees_its_response_at_once() -> None:
    """A reference cycle would keep its socket open until garbage is collected."""
    with scripted_service(responds(200, b"no gzip", "Content-Encoding: gzip")) as service:
        client = client_of(service, max_retries=0)
        gc.collect()
        gc.disable()
        try:
            before = _responses()  # log records of other tests may hold errors with their frames
            with suppress(ServiceError):
                client.fetch()
            assert _responses() == before
        finally:
            gc.enable()


def _responses() -> list[HTTPResponse]:
    return [each for each in gc.get_objects() if isinstance(each, HTTPResponse)]
