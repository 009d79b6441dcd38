"""The command `audit-events`, with the settings of the test's own service."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.cli.loaded.database import TemporaryDatabase, temporary_database
from tests.cli.command import Command


@pytest.fixture
def command(settings: dict[str, Any], tmp_path: Path) -> Command:
    """Runs `audit-events` with the settings that reach the service."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return Command(folder, settings)


@pytest.fixture
def database() -> Iterator[TemporaryDatabase]:
    """Reads what was loaded."""
    with temporary_database() as database:
        yield database
