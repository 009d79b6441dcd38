"""The command `audit-events`, with the settings of the test's own service."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command


@pytest.fixture
def command(settings: dict[str, Any], tmp_path: Path) -> Command:
    """Runs `audit-events` with the settings that reach the service."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return Command(folder, settings)
