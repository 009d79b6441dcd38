"""The Airbyte source, with a sandbox for each test."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.airbyte.source import Output, run_source

Source = Callable[..., Output]


@pytest.fixture
def source(settings: dict[str, Any]) -> Source:
    """Runs a command against the service: ``source("read", state=…, catalog=…, page_size=…)``."""

    def run_with(
        command: str, *, catalog: object = None, state: object = None, **more: Any
    ) -> Output:
        return run_source(command, settings | more, catalog=catalog, state=state)

    return run_with
