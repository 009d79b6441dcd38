"""Outputs are tested by the command `audit-events`, too."""

from tests.cli.conftest import command as command  # noqa: PLC0414 - a fixture
