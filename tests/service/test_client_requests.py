"""The exact requests that a client sends, and the connections over which it sends them."""

import threading
from typing import Any

import pytest

from tap_audit_events.config.settings import read_settings
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.window import Window
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.service.client import Client
from tap_audit_events.service.connection import new_session
from tap_audit_events.service.rate_limiter import RateLimiter, RequestCounts
from tap_audit_events.service.transport import Transport
from tests.builders import ORGANIZATION_ID
from tests.service.scripted import (
    LoggedLines,
    Peer,
    client_of,
    keeps_open,
    scripted_service,
)

PATH = f"/v1/organizations/{ORGANIZATION_ID}/audit_events"
WHOLE = "order=asc&endTime=2026-01-31T00%3A00%3A00Z"


def a_client(base_url: str, **options: Any) -> Client:
    """A client that is created as the tap creates it."""
    settings = {"base_url": base_url, "organization_id": ORGANIZATION_ID, "access_token": "x_pat_y"}
    read, logger = read_settings(settings), LoggedLines()
    options = {"limiter": RateLimiter(RequestCounts(1)), "logger": logger, **options}
    authenticator = AccessTokenAuthenticator(read, logger)
    return Client(read, Transport(base_url, new_session), authenticator, **options)


@pytest.mark.parametrize(
    ("settings", "cursor", "query"),
    [
        ({}, None, f"{WHOLE}&pageSize=1000"),
        ({"page_size": 1}, None, f"{WHOLE}&pageSize=1"),
        ({}, "c1", f"{WHOLE}&pageSize=1000&cursor=c1"),
        ({}, "a b/c&d=é+%", f"{WHOLE}&pageSize=1000&cursor=a%20b%2Fc%26d%3D%C3%A9%2B%25"),
        ({"action_types": ["a"]}, None, f"{WHOLE}&pageSize=1000&actionTypes=a"),
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


def test_the_bounds_of_the_window_are_whole_seconds() -> None:
    """They are rounded outwards, so that they contain the window."""
    window = Window(Instant("2026-01-02T00:00:00.5"), Instant("2026-01-31T23:59:59.25"))
    with scripted_service(keeps_open) as service:
        a_client(service.base_url).fetch(window, None)
    bounds = "startTime=2026-01-02T00%3A00%3A00Z&endTime=2026-02-01T00%3A00%3A00Z"
    assert service.heard == [f"GET {PATH}?order=asc&{bounds}&pageSize=1000 HTTP/1.1\r\n"]


def test_the_headers_are_few_and_the_same_for_each_request() -> None:
    """The token is in the Authorization header alone."""
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


def test_the_token_is_not_replaced_by_the_login_of_a_netrc(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`.netrc` is for other programs."""
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("default login somebody password else")
    monkeypatch.setenv("NETRC", str(netrc))
    with scripted_service(keeps_open) as service:
        client_of(service).fetch()
    assert service.headers[0]["Authorization"] == "Bearer acme_pat_scripted"


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY", "http://127.0.0.1_proxy"])
def test_plain_http_goes_through_no_proxy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would see the token, as the request is not encrypted."""
    for each in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(each, raising=False)
    with scripted_service(keeps_open) as proxy, scripted_service(keeps_open) as service:
        monkeypatch.setenv(name, proxy.base_url)
        client_of(service).fetch()
    assert (len(service.heard), proxy.connections) == (1, 0)


def test_a_connection_serves_one_request_at_a_time() -> None:
    both_wait = threading.Barrier(2)

    def serve(peer: Peer) -> None:
        peer.hear()
        both_wait.wait(15)
        peer.respond()

    with scripted_service(serve) as service:
        client = client_of(service)
        threads = [threading.Thread(target=client.fetch) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert service.connections == 2


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
