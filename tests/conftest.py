"""A sandbox for each test, judged for what the tap asked of it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tap_audit_events.sandbox import Service, serve
from tests.running import Run, run, settings_for

Sync = Callable[..., Run]


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
