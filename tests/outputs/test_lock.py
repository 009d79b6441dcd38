"""The lock of an output: one run holds it at a time."""

import fcntl
import re
from pathlib import Path

import pytest

from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.outputs.lock import locked


def test_a_lock_file_that_its_holder_removed_meanwhile_is_locked_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the removed file were locked, a third run could create a new one and lock that."""
    path, flock = tmp_path / "a.jsonl", fcntl.flock

    def removed_first(descriptor: int, operation: int) -> None:
        monkeypatch.undo()
        (tmp_path / ".a.jsonl.lock").unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    with locked(path), pytest.raises(SettingsError, match="AE-BUSY"), locked(path):
        pass


def test_a_missing_folder_is_said_to_be_missing(tmp_path: Path) -> None:
    """The error is about the folder, as the file in it need not exist."""
    path = tmp_path / "missing" / "s.json"
    problem = re.escape(f"AE-EXPORT: The folder of '{path}' does not exist: create it")
    with pytest.raises(SettingsError, match=problem), locked(path):
        pass
