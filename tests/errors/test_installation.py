"""The command that adds an extra fits the installation, and never names the package."""

import shlex
import sys
from pathlib import Path

import pytest

from tap_audit_events.errors.installation import command_for


def test_pipx_adds_libraries_to_the_environment_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name may have a suffix, as after `pipx install --suffix`."""
    prefix = tmp_path / "tap-audit-events-2"
    prefix.mkdir()
    (prefix / "pipx_metadata.json").touch()
    monkeypatch.setattr(sys, "prefix", str(prefix))

    words = shlex.split(command_for("duckdb", "duckdb"))

    assert words[:3] == ["pipx", "inject", "tap-audit-events-2"]
    assert {word.partition(">")[0] for word in words[3:]} >= {"duckdb", "pyarrow"}


def test_an_environment_without_pip_belongs_to_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tap_audit_events.errors.installation.find_spec", lambda name: None)

    command = command_for("arrow", "pyarrow")

    assert command.startswith(f"uv pip install --python {shlex.quote(sys.executable)} ")
    assert "'pyarrow>=" in command


def test_pip_installs_with_the_python_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path may have spaces; the command can be copied as it is."""
    monkeypatch.setattr("tap_audit_events.errors.installation.find_spec", lambda name: name)
    monkeypatch.setattr(sys, "executable", "/opt/my tap/bin/python")

    words = shlex.split(command_for("postgres", "psycopg"))

    assert words[:4] == ["/opt/my tap/bin/python", "-m", "pip", "install"]
    assert words[4].startswith("psycopg[binary]")


def test_an_unknown_extra_names_the_library() -> None:
    """As in a source tree that is not installed, whose extras nobody knows."""
    assert shlex.split(command_for("nothing", "somelibrary"))[-1] == "somelibrary"
