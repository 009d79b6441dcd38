"""Outputs are tested by the command `audit-events`, too."""

from collections.abc import Iterator

import pytest

from tests.cli.conftest import command as command  # noqa: PLC0414 - a fixture
from tests.outputs.object_store import ObjectStore, object_store


@pytest.fixture(scope="session")
def store() -> Iterator[ObjectStore]:
    """An object store; each test uses a prefix of its own."""
    with object_store() as running:
        yield running
