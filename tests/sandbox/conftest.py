"""One server for all tests of the sandbox; each test replaces its service."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import pytest

from tap_audit_events.sandbox import Service, serve
from tap_audit_events.sandbox.server import SandboxServer
from tests.sandbox.client import Client


class Sandbox(Protocol):
    """Returns a client of a new service that holds the events and has the options."""

    def __call__(self, *events: dict[str, Any], **options: Any) -> Client: ...


@pytest.fixture(scope="session")
def server() -> Iterator[SandboxServer]:
    with serve(Service()) as running:
        yield running


@pytest.fixture
def sandbox(server: SandboxServer) -> Iterator[Sandbox]:
    with ExitStack() as clients:

        def make(*events: dict[str, Any], **options: Any) -> Client:
            server.service = Service(**options)
            server.service.add(events)
            return clients.enter_context(Client(server.base_url, server.service))

        yield make
