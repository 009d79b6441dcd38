"""A sandbox for each test; a request outside of the interface fails the test."""

import http.server
import os
import signal
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import trustme

from tap_audit_events.errors import redaction
from tap_audit_events.sandbox import Service, serve
from tests.loaders.postgres_server import PostgresServer, postgres_server
from tests.running import Run, run, settings_for

Sync = Callable[..., Run]

# A slow example on a busy machine is not a failure; other tests check what must end in time.
hypothesis.settings.register_profile("long", deadline=None, max_examples=200)
hypothesis.settings.register_profile("tests", deadline=None, max_examples=12)
if hypothesis.settings.get_current_profile_name() in {"default", "ci"}:  # no profile was chosen
    hypothesis.settings.load_profile("tests")

# The tests' servers are on this machine: a proxy in the environment must not be used for them.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "localhost,127.0.0.1"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Use more workers than processors, as tests wait for processes, servers and timeouts."""
    return 2 * (os.cpu_count() or 1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests recorded, such as how many kills an output has survived."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties if report.when == "call" else ():
            terminalreporter.write_line(f"{name}: {value}")


@pytest.fixture
def not_ignoring_ctrl_c() -> Iterator[None]:
    """Processes that the test starts end at SIGINT, even if the tests run in the background.

    Background jobs of a shell ignore SIGINT, and their processes inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def service() -> Service:
    """A service without events."""
    return Service()


@pytest.fixture
def settings(service: Service) -> Iterator[dict[str, Any]]:
    """The settings that reach the service; a request outside of the interface fails the test."""
    with serve(service) as server:
        yield settings_for(service, server.base_url)
    assert service.violations == []


@pytest.fixture
def sync(settings: dict[str, Any]) -> Sync:
    """Runs the tap against the service: ``sync(state=…, catalog=…, page_size=…)``."""

    def run_with(
        *arguments: str,
        state: object = None,
        catalog: object = None,
        environment: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Run:
        given = settings | more
        return run(given, *arguments, state=state, catalog=catalog, environment=environment)

    return run_with


@pytest.fixture
def untrusted_address() -> Iterator[str]:
    """The URL of a server whose certificate is signed by an unknown authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"https://localhost:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server, one for a test process."""
    # Not below pytest's own folder, which other users may not enter.
    with tempfile.TemporaryDirectory() as folder, postgres_server(Path(folder)) as server:
        yield server


@pytest.fixture
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text is masked until the test registers a secret."""
    monkeypatch.setattr(redaction, "_certain", redaction._Secrets())
    monkeypatch.setattr(redaction, "_all", redaction._Secrets())
