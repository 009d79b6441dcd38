"""A client turns each response into a page or an error."""

import gc
import json
from contextlib import suppress
from pathlib import Path

import pytest
from urllib3 import HTTPResponse

from tap_audit_events.errors.exceptions import (
    ContractError,
    RefusedError,
    RetryableError,
    ServiceError,
)
from tap_audit_events.service.client import MAX_NEW_TOKENS, MEGABYTE
from tap_audit_events.service.responses import MAX_ERROR_BYTES
from tests.service.scripted import (
    EMPTY_PAGE,
    WINDOW,
    Peer,
    Script,
    client_of,
    keeps_open,
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


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (302, "AE-GATEWAY"),
        (400, "AE-400"),
        (401, "AE-401"),
        (403, "AE-403"),
        (404, "AE-404"),
        (500, "AE-500"),
    ],
)
def test_any_status_but_200_and_204_is_an_error(status: int, code: str) -> None:
    """The error has the code of the status, if the body is an error of the service."""
    with (
        scripted_service(responds(status, OWN_ERROR)) as service,
        pytest.raises(ServiceError) as raised,
    ):
        client_of(service).fetch()
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("cursor", "code"), [(None, "AE-400"), ("", "AE-CURSOR-REFUSED"), ("c1", "AE-CURSOR-REFUSED")]
)
def test_status_400_refuses_the_cursor_if_there_is_one(cursor: str | None, code: str) -> None:
    """The window can then be restarted without a cursor."""
    script = responds(400, OWN_ERROR)
    with scripted_service(script) as service, pytest.raises(RefusedError) as raised:
        client_of(service).fetch(cursor)
    assert raised.value.code == code


def test_an_event_that_cannot_be_used_is_returned_with_its_page() -> None:
    """The events before it are delivered first."""
    events = [{"id": "a", "occurredAt": "2026-01-01T00:00:00Z"}, {"id": 7}]
    body = json.dumps({"auditEvents": events}).encode()
    with scripted_service(responds(200, body)) as service:
        page = client_of(service).client.fetch(WINDOW, None)
    assert page.ids == ["a"]
    assert page.malformed is not None
    assert page.malformed.code == "AE-EVENT"


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


@pytest.mark.parametrize(("pages", "limit"), [(1, 2), (2, 2), (3, 3), (10, 4)])
def test_more_requests_may_be_in_flight_after_pages(pages: int, limit: int) -> None:
    """Each page is a success for the rate limiter, whose limit grows from two to at most four."""
    with scripted_service(keeps_open) as service:
        client = client_of(service)
        for _ in range(pages):
            client.fetch()
    assert int(client.limiter._rate.limit) == limit


@pytest.mark.parametrize("script", [responds(503), responds(403), responds(200, b"no JSON")])
def test_an_error_does_not_raise_the_number_in_flight(script: Script) -> None:
    """Only a page shows that the service keeps up."""
    with scripted_service(script) as service:
        client = client_of(service)
        for _ in range(10):
            with pytest.raises(ServiceError):
                client.fetch()
    assert int(client.limiter._rate.limit) == 2


@pytest.mark.parametrize("size", [0, 1, 1000, MAX_ERROR_BYTES])
def test_the_connection_of_an_error_is_used_again(size: int) -> None:
    """The body of the error is read to the end."""
    with scripted_service(responds(403, b"x" * size)) as service:
        client = client_of(service)
        for _ in range(3):
            with pytest.raises(RetryableError):
                client.fetch()
        assert service.connections == 1


@pytest.mark.parametrize("size", [MAX_ERROR_BYTES + 1, 10 * MAX_ERROR_BYTES])
def test_the_connection_of_a_large_error_is_closed(size: int) -> None:
    """Otherwise, the unread rest of its body would be taken for the next response."""
    with scripted_service(responds(403, b"x" * size), keeps_open) as service:
        client = client_of(service)
        with pytest.raises(RetryableError):
            client.fetch()
        assert client.fetch() == []
        assert service.connections == 2


def test_the_whole_error_of_a_service_is_read() -> None:
    """Its code and message are shown, even if they are at the end of the largest body."""
    error = json.dumps({"errCode": "E7", "msg": "no", "vars": None}).encode()
    body = error.rjust(MAX_ERROR_BYTES)
    with scripted_service(responds(403, body)) as service, pytest.raises(RefusedError) as raised:
        client_of(service).fetch()
    assert raised.value.details == "status 403, errCode 'E7', msg 'no', vars 'null'"


def test_an_error_whose_body_is_cut_is_retried() -> None:
    """Without its body, nothing shows that the service sent it."""

    def cut(peer: Peer) -> None:
        while peer.hear():
            peer.send(b"HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\nno")
            peer.reset()

    with scripted_service(cut) as service, pytest.raises(RetryableError) as raised:
        client_of(service).fetch()
    assert raised.value.code == "AE-GATEWAY"
    assert raised.value.details == "status 403, body ''"


@pytest.mark.parametrize("megabytes", [1, 3])
def test_a_setting_limits_the_size_of_a_response(megabytes: int) -> None:
    """It is in megabytes of a million bytes."""
    size = megabytes * MEGABYTE
    assert size == megabytes * 1_000_000
    with scripted_service(responds(200, EMPTY_PAGE.ljust(size))) as service:
        assert client_of(service, max_response_megabytes=megabytes).fetch() == []
    with (
        scripted_service(responds(200, EMPTY_PAGE.ljust(size + 1))) as service,
        pytest.raises(ContractError, match="AE-TOO-LARGE"),
    ):
        client_of(service, max_response_megabytes=megabytes).fetch()


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_a_request_is_retried_as_often_as_the_setting_says(retries: int) -> None:
    """The retries of earlier requests do not count."""
    with scripted_service(responds(503)) as service:
        client = client_of(service, max_retries=retries)
        for requests in range(1, 3):
            with pytest.raises(ServiceError, match="AE-500"):
                client.fetch()
            assert len(service.heard) == requests * (1 + retries)


@pytest.mark.parametrize("rotations", [0, 1, MAX_NEW_TOKENS, MAX_NEW_TOKENS + 2])
def test_a_request_is_sent_with_a_newer_token_a_few_times(rotations: int, tmp_path: Path) -> None:
    """A token file that changes after each refusal does not keep a request going for ever."""
    path = tmp_path / "token"

    def write_token(number: int) -> None:
        path.write_text(f"acme_pat_{number:03}")
        path.chmod(0o600)

    def serve(peer: Peer) -> None:
        while peer.hear():
            write_token(min(len(service.heard), rotations))
            peer.send(b"HTTP/1.1 401 No\r\nContent-Length: %d\r\n\r\n" % len(OWN_ERROR))
            peer.send(OWN_ERROR)

    write_token(0)
    with scripted_service(serve) as service:
        client = client_of(service, access_token=None, access_token_file=str(path))
        with pytest.raises(RefusedError, match="AE-401"):
            client.fetch()
    sent = 1 + min(rotations, MAX_NEW_TOKENS)
    tokens = [headers["Authorization"] for headers in service.headers]
    assert tokens == [f"Bearer acme_pat_{number:03}" for number in range(sent)]
    assert client.limiter.run.sent == sent


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
