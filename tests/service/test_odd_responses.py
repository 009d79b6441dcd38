"""Responses that are compressed, too large, or odd in another way."""

import gzip
import http.server
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from tests.errors.test_errors import only_error
from tests.running import run
from tests.singer.test_complete import TEN_EVENTS, TEN_IDS


@pytest.fixture
def server() -> Iterator[Any]:
    """A server that sends the responses that the test has prepared."""

    class Handler(http.server.BaseHTTPRequestHandler):
        prepared: list[tuple[int, dict[str, str], bytes]] = []  # noqa: RUF012 - one for each test

        def do_GET(self) -> None:
            status, headers, body = self.prepared.pop(0)
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    Handler.base_url = f"http://127.0.0.1:{running.server_port}"  # type: ignore[attr-defined]
    yield Handler
    running.shutdown()
    thread.join()
    running.server_close()


def test_compressed_responses_are_decompressed(server: Any, settings: dict[str, Any]) -> None:
    """The tap accepts gzip."""
    body = gzip.compress(json.dumps({"auditEvents": TEN_EVENTS}).encode())
    server.prepared = [(200, {"Content-Encoding": "gzip"}, body)]
    assert run(settings | {"base_url": server.base_url}).raise_for_exit_code().ids == TEN_IDS


def test_a_response_that_is_too_large_is_an_error(server: Any, settings: dict[str, Any]) -> None:
    """The bound counts bytes after decompression."""
    bomb = gzip.compress(b" " * (3 * 1_000_000 + 1), compresslevel=1)
    server.prepared = [(200, {"Content-Encoding": "gzip"}, bomb)]
    done = run(settings | {"base_url": server.base_url, "max_response_megabytes": 3})
    assert only_error(done).startswith("AE-TOO-LARGE: ")
    assert "more than 3,000,000 bytes" in done.log


@pytest.mark.parametrize("headers", [{}, {"Content-Encoding": "gzip"}])
def test_a_response_as_large_as_allowed_is_read(
    headers: dict[str, str], server: Any, settings: dict[str, Any]
) -> None:
    """The bound is `max_response_megabytes`, compressed or not."""
    page = json.dumps({"auditEvents": TEN_EVENTS}).encode().ljust(1_000_000)
    packed = gzip.compress(page) if headers else page
    server.prepared = [(200, headers, packed)]
    given = settings | {"base_url": server.base_url, "max_response_megabytes": 1}
    assert run(given).raise_for_exit_code().ids == TEN_IDS


def test_a_bomb_fills_no_memory(server: Any, settings: dict[str, Any]) -> None:
    """A compressed page or error that grows without end is not kept in memory."""
    bomb = 100 * gzip.compress(10_000_000 * b" ", compresslevel=1)
    for status, code in ((200, "AE-TOO-LARGE"), (403, "AE-GATEWAY")):
        server.prepared = [(status, {"Content-Encoding": "gzip"}, bomb)]
        given = settings | {
            "base_url": server.base_url,
            "max_response_megabytes": 20,
            "max_retries": 0,
        }
        done = run(given, most_kilobytes=800_000)
        assert only_error(done).startswith(f"{code}: ")


def test_only_the_start_of_a_large_error_is_read(server: Any, settings: dict[str, Any]) -> None:
    """The error shows the start of the body."""
    server.prepared = [(403, {}, b"Nope. " + b"x" * 5_000_000)]
    line = only_error(run(settings | {"base_url": server.base_url, "max_retries": 0}))
    assert line.startswith("AE-GATEWAY: ")
    assert "Nope. xxx" in line
    assert len(line) < 1000


def test_retry_after_counts_from_the_services_own_clock(
    server: Any, settings: dict[str, Any]
) -> None:
    """If the service's clock is an hour ahead, the run does not wait for an hour."""
    ahead = datetime.now(UTC) + timedelta(hours=1)
    dates = {
        "Date": format_datetime(ahead, usegmt=True),
        "Retry-After": format_datetime(ahead + timedelta(seconds=1), usegmt=True),
    }
    server.prepared = [(429, dates, b"{}"), (200, {}, b'{"auditEvents": []}')]
    done = run(settings | {"base_url": server.base_url}).raise_for_exit_code()
    assert "Retry 1 of 8 in 1." in done.warnings[0]


def test_an_error_page_in_any_charset_is_shown(server: Any, settings: dict[str, Any]) -> None:
    """A charset that Python does not know is not an error."""
    server.prepared = [(403, {"Content-Type": "text/html; charset=idna"}, b"<h1>No\xff</h1>")]
    line = only_error(run(settings | {"base_url": server.base_url, "max_retries": 0}))
    assert "<h1>No" in line
