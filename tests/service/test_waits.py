"""After a 429, all requests wait; after any other failure, only the one that failed waits."""

import json
from pathlib import Path

import pytest

from tap_audit_events.errors.exceptions import ServiceError
from tap_audit_events.service.rate_limiter import Permit
from tests.service.scripted import ClientOfService, Peer, Script, client_of, scripted_service


class Waits:
    """Records the waits of a client instead of waiting."""

    def __init__(self, client: ClientOfService, monkeypatch: pytest.MonkeyPatch) -> None:
        self.of_all: list[float] = []
        self.of_one: list[float] = []
        self.in_flight: list[int] = []
        self._limiter = client.limiter
        monkeypatch.setattr(client.limiter, "rate_limited", self._rate_limited)
        monkeypatch.setattr(client.limiter, "pause", self._pause)

    def _rate_limited(self, permit: Permit, seconds: float) -> None:
        assert not permit.succeeded
        self.of_all.append(seconds)
        self.in_flight.append(self._limiter._in_flight)

    def _pause(self, seconds: float) -> None:
        self.of_one.append(seconds)
        self.in_flight.append(self._limiter._in_flight)


def fails(status: int, *headers: str, times: int = 1) -> Script:
    """Responds to `times` requests with a status, and to all others with a page."""

    def serve(peer: Peer) -> None:
        for _ in range(times):
            peer.hear()
            lines = [f"HTTP/1.1 {status} No", "Content-Length: 0", *headers, "", ""]
            peer.send("\r\n".join(lines).encode())
        while peer.hear():
            peer.respond(json.dumps({"auditEvents": []}).encode())

    return serve


@pytest.mark.parametrize("seconds", [100.0, 250.5, 900.0])
def test_a_429_holds_all_requests(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limiter learns of it before the permit is returned, so that no other request is sent."""
    with scripted_service(fails(429, f"Retry-After: {seconds:g}", times=2)) as service:
        client = client_of(service, max_retries=2)
        waits = Waits(client, monkeypatch)
        assert client.fetch() == []
    assert (waits.of_all, waits.of_one) == ([seconds] * 2, [seconds] * 2)
    assert waits.in_flight == [1, 0, 1, 0]
    assert client.limiter._in_flight == 0


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 599])
@pytest.mark.parametrize("seconds", [100.0, 250.5, 900.0])
def test_any_other_failure_holds_its_own_request(
    status: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for as long as Retry-After says, whatever the status, and holds no permit then."""
    with scripted_service(fails(status, f"Retry-After: {seconds:g}", times=2)) as service:
        client = client_of(service, max_retries=2)
        waits = Waits(client, monkeypatch)
        assert client.fetch() == []
    assert (waits.of_all, waits.of_one) == ([], [seconds] * 2)
    assert waits.in_flight == [0, 0]


@pytest.mark.parametrize("cursor", [None, "c1", "a b&c=d+é"])
def test_a_retry_requests_the_same_page(
    cursor: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the same cursor and the same window."""
    with scripted_service(fails(503, times=3)) as service:
        client = client_of(service, max_retries=3)
        Waits(client, monkeypatch)
        client.fetch(cursor)
    assert len(service.heard) == 4
    assert len(set(service.heard)) == 1
    assert ("cursor=" in service.heard[0]) == (cursor is not None)


@pytest.mark.parametrize("cursor", [None, "c1"])
def test_a_request_with_a_newer_token_is_the_same_and_does_not_wait(
    cursor: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request is sent again within the same permit, and counts as a retry."""
    path = tmp_path / "token"
    path.write_text("acme_pat_scripted")
    path.chmod(0o600)
    with scripted_service(fails(401)) as service:
        by_file = {"access_token": None, "access_token_file": str(path)}
        client = client_of(service, **by_file, max_retries=0)
        waits = Waits(client, monkeypatch)
        path.write_text("acme_pat_rotated")
        client.fetch(cursor)
    assert len(service.heard) == 2
    assert len(set(service.heard)) == 1
    assert (client.limiter.run.sent, client.limiter.run.retries) == (2, 1)
    assert waits.of_all == waits.of_one == []


@pytest.mark.parametrize(
    ("status", "headers", "is_held"),
    [(429, ["Retry-After: 100"], True), (429, [], False), (503, ["Retry-After: 100"], False)],
)
def test_a_429_holds_requests_even_if_no_retry_is_left(
    status: int, headers: list[str], is_held: bool
) -> None:
    """Requests for other organizations wait, although this request is not retried."""
    with scripted_service(fails(status, *headers)) as service:
        client = client_of(service)
        with pytest.raises(ServiceError):
            client.fetch()
    assert client.limiter.is_held == is_held
