"""A client's requests, exactly as it sends them, its responses and its connections."""

import threading
from contextlib import suppress
from typing import Any

import pytest

from tap_audit_events.errors.exceptions import RefusedError, RetryableError
from tap_audit_events.service.responses import MAX_ERROR_BYTES
from tests.builders import ORGANIZATION_ID
from tests.service.scripted import (
    EMPTY_PAGE,
    Peer,
    Script,
    client_of,
    keeps_open,
    scripted_service,
)

PATH = f"/v1/organizations/{ORGANIZATION_ID}/audit_events"
WHOLE = "order=asc&endTime=2026-01-31T00%3A00%3A00Z"
OWN_ERROR = b'{"errCode": "no", "msg": "No", "vars": null}'

# Requests


@pytest.mark.parametrize(
    ("settings", "cursor", "query"),
    [
        ({}, None, f"{WHOLE}&pageSize=1000"),
        ({"page_size": 1}, None, f"{WHOLE}&pageSize=1"),
        ({}, "a b/c&d=é+%", f"{WHOLE}&pageSize=1000&cursor=a%20b%2Fc%26d%3D%C3%A9%2B%25"),
        (
            {"action_types": ["a", "b c/d"]},
            "c1",
            f"{WHOLE}&pageSize=1000&actionTypes=a%2Cb%20c%2Fd&cursor=c1",
        ),
    ],
)
def test_the_query_holds_the_settings_and_the_cursor(
    settings: dict[str, Any], cursor: str | None, query: str
) -> None:
    """Values are percent-encoded; a setting without a value is left out."""
    with scripted_service(keeps_open) as service:
        client_of(service, **settings).fetch(cursor)
    assert service.heard == [f"GET {PATH}?{query} HTTP/1.1\r\n"]


def test_the_headers_are_few_and_the_same_for_each_request(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token is in the Authorization header alone, and not replaced by a login of `.netrc`."""
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("default login somebody password else")
    monkeypatch.setenv("NETRC", str(netrc))
    with scripted_service(keeps_open) as service:
        client = client_of(service, user_agent="acme/1 (audit)")
        client.fetch()
        client.fetch("c1")
    headers, same = service.headers
    assert headers == same
    assert headers == {
        "Host": service.base_url.removeprefix("http://"),
        "User-Agent": "acme/1 (audit)",
        "Accept": "application/json",
        "Accept-Encoding": "gzip",
        "Authorization": "Bearer acme_pat_scripted",
        "Connection": "keep-alive",
    }


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY", "http://127.0.0.1_proxy"])
def test_plain_http_goes_through_no_proxy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would see the token, as the request is not encrypted."""
    for each in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(each, raising=False)
    with scripted_service(keeps_open) as proxy, scripted_service(keeps_open) as service:
        monkeypatch.setenv(name, proxy.base_url)
        client_of(service).fetch()
    assert (len(service.heard), proxy.connections) == (1, 0)


# Responses


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
        for _ in scripts:
            with suppress(RefusedError):
                client.fetch()
            found.append(client.client.date)
    assert found == [*dates, None]


# Connections


def test_an_idle_connection_serves_the_next_request_of_any_thread() -> None:
    """So a run has no more connections than requests in flight, however many threads it has."""
    with scripted_service(keeps_open) as service:
        client = client_of(service)
        for _ in range(3):
            thread = threading.Thread(target=lambda: [client.fetch() for _ in range(3)])
            thread.start()
            thread.join()
        assert service.connections == 1
        assert len(service.heard) == 9


@pytest.mark.parametrize("size", [0, 1000, MAX_ERROR_BYTES])
def test_the_connection_of_an_error_is_used_again(size: int) -> None:
    """The body of the error is read to the end."""
    with scripted_service(responds(403, b"x" * size)) as service:
        client = client_of(service)
        for _ in range(3):
            with pytest.raises(RetryableError):
                client.fetch()
        assert service.connections == 1


def serves_once(peer: Peer) -> None:
    """Closes the connection after a response, as with a keep-alive timeout of 0."""
    peer.hear()
    peer.respond()


def resets_second(peer: Peer) -> None:
    """Resets the connection as soon as a second request arrives."""
    peer.hear()
    peer.respond()
    peer.hear()
    peer.reset()


@pytest.mark.parametrize("script", [serves_once, resets_second])
def test_a_connection_that_was_closed_while_idle_is_replaced(script: Script) -> None:
    """This is not a failure: it costs no retry, and each request counts once."""
    with scripted_service(script) as service:
        client = client_of(service)
        for _ in range(25):
            client.fetch()
        assert (client.limiter.run.sent, client.limiter.run.retries) == (25, 0)
        assert client.logger.lines == []
        assert service.connections == 25


def test_a_connection_that_fails_on_its_first_request_is_a_failure() -> None:
    """Only a connection that has carried a response may have been idle."""
    with scripted_service(lambda peer: peer.hear()) as service:
        with pytest.raises(RetryableError, match="AE-CONNECTION"):
            client_of(service).fetch()
        assert service.connections == 1
