"""Responses that are too large or odd in another way, and what a run makes of them."""

import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from tests.builders import ORGANIZATION_ID, an_event
from tests.errors.test_errors import only_error
from tests.running import Run, run
from tests.service.scripted import Peer, Script, Scripted, head, scripted_service

PAGE = json.dumps({"auditEvents": [an_event(id="a")]}).encode()


def responds(*responses: bytes) -> Script:
    """Responds to each request with the next of these, and stays open."""

    def serve(peer: Peer) -> None:
        for response in responses:
            peer.hear()
            peer.send(response)
        peer.hear()

    return serve


def error(status: int, *headers: str, body: bytes = b"") -> bytes:
    lines = (f"HTTP/1.1 {status} No", *headers, f"Content-Length: {len(body)}", "", "")
    return "\r\n".join(lines).encode() + body


def run_against(service: Scripted, *, level: str = "INFO", **more: Any) -> Run:
    settings = {
        "base_url": service.base_url,
        "organization_id": ORGANIZATION_ID,
        "access_token": "acme_pat_odd-responses",
        "max_retries": 0,
    }
    kilobytes = more.pop("most_kilobytes", None)
    environment = {"LOGLEVEL": level}
    return run(settings | more, environment=environment, most_kilobytes=kilobytes)


def test_a_bomb_fills_no_memory() -> None:
    """A compressed page or error that grows without end is not kept in memory."""
    bomb = 100 * gzip.compress(10_000_000 * b" ", compresslevel=1)
    gzipped = "Content-Encoding: gzip"
    page = head(gzipped, f"Content-Length: {len(bomb)}") + bomb
    for response, code in ((page, "AE-TOO-LARGE"), (error(403, gzipped, body=bomb), "AE-GATEWAY")):
        with scripted_service(responds(response)) as service:
            done = run_against(service, max_response_megabytes=20, most_kilobytes=800_000)
        assert only_error(done).startswith(f"{code}: ")


def test_retry_after_counts_from_the_services_own_clock() -> None:
    """If the service's clock is an hour ahead, the run does not wait for an hour."""
    ahead = datetime.now(UTC) + timedelta(hours=1)
    later = format_datetime(ahead + timedelta(seconds=1), usegmt=True)
    limited = error(429, f"Date: {format_datetime(ahead, usegmt=True)}", f"Retry-After: {later}")
    page = head(f"Content-Length: {len(PAGE)}") + PAGE
    with scripted_service(responds(limited, page)) as service:
        done = run_against(service, max_retries=1).raise_for_exit_code()
    assert "Retry 1 of 1 in 1." in done.warnings[0]


def test_an_error_page_in_any_charset_is_shown() -> None:
    """A charset that Python does not know is not an error."""
    page = error(403, "Content-Type: text/html; charset=idna", body=b"<h1>No\xff</h1>")
    with scripted_service(responds(page)) as service:
        assert "<h1>No" in only_error(run_against(service))


@pytest.mark.parametrize(
    "headers",
    [
        (f"Content-Length: {len(PAGE)}, {len(PAGE)}",),
        ("Transfer-Encoding: gzip, chunked",),
        ("no header", f"Content-Length: {len(PAGE)}"),
        ("Content-Length: -1",),
        ("Transfer-Encoding: chunked, chunked",),
    ],
)
def test_headers_that_do_not_say_where_the_body_ends_are_an_error(headers: Sequence[str]) -> None:
    """The connection stays open: waiting for its end would only lead to a timeout."""
    with scripted_service(responds(head(*headers) + PAGE)) as service:
        line = only_error(run_against(service))
        assert len(service.heard) == 1
    assert line.startswith("AE-CUT: ")
    assert "headers do not say where the body ends" in line


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_malformed_headers_do_not_fill_the_log(level: str) -> None:
    """urllib3 would log a traceback for each page, with all headers."""
    lines = [f"X-{number}: {'y' * 60_000}" for number in range(90)]
    lines.insert(1, "without a colon " + "z" * 60_000)
    page = head(f"Content-Length: {len(PAGE)}", *lines) + PAGE
    with scripted_service(responds(page)) as service:
        done = run_against(service, level=level).raise_for_exit_code()
    assert done.ids == ["a"]
    assert "Traceback" not in done.log
    assert max(map(len, done.log.splitlines())) <= 20_100
    assert len(done.log) < 50_000
