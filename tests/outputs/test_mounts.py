"""Mounts that refuse calls, such as shared folders: exports succeed, and errors are true."""

import errno
import fcntl
import os
import platform
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.outputs.lock import locked
from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.cli.exported import FORMATS, expected, exported
from tests.cli.failing import EVENTS, refused

REFUSING = "tests.cli.refusing"
EVERYTHING = "fsync chmod flock listing"


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("state", [[], ["--state", "s.json"]])
def test_an_export_succeeds_where_the_mount_refuses_what_is_not_needed(
    state: list[str], to: str, service: Service, command: Command
) -> None:
    """Neither a flush, a mode nor a lock is worth losing the export."""
    service.add(EVENTS[:50])
    arguments = ("export", "--to", to, *state)
    command(*arguments, module=REFUSING, REFUSED=EVERYTHING).raise_for_exit_code()
    assert exported(command.folder / to) == expected(EVENTS[:50])
    if state or not to.endswith("/"):  # an existing folder is not replaced
        service.add(EVENTS[50:])
        command(*arguments, module=REFUSING, REFUSED=EVERYTHING).raise_for_exit_code()
        assert exported(command.folder / to) == expected(EVENTS)

    assert command.left_over == []


@pytest.mark.parametrize("to", [to for to in FORMATS if not to.endswith("/")])
def test_a_file_whose_mode_cannot_be_kept_is_not_readable_for_more_users(
    to: str, service: Service, command: Command
) -> None:
    """The new file is created with the mode of the old one, which no mount refuses."""
    service.add(EVENTS[:50])
    command("export", "--to", to).raise_for_exit_code()
    (command.folder / to).chmod(0o600)

    command("export", "--to", to, module=REFUSING, REFUSED="chmod").raise_for_exit_code()

    assert stat.S_IMODE((command.folder / to).stat().st_mode) == 0o600


@pytest.mark.parametrize("to", FORMATS)
def test_an_error_behind_the_rename_does_not_say_that_the_old_output_is_there(
    to: str, service: Service, command: Command
) -> None:
    """The disk fails when the folder with the new name is flushed."""
    path = command.folder / "out" / to
    path.parent.mkdir()
    service.add(EVENTS[:50])
    if not to.endswith("/"):
        command("export", "--to", str(path)).raise_for_exit_code()
    service.add(EVENTS[50:])

    done = command(
        *("export", "--to", f"{path}{'/' * to.endswith('/')}"),
        module=REFUSING,
        FAILING_FOLDER=str(path.parent),
    )

    error = refused(done)
    assert "as it was before" not in error
    assert f"the disk failed after the new '{path}' was complete and in its place" in error
    assert exported(path) == expected(EVENTS)
    assert command.left_over == []


@pytest.mark.parametrize("to", ["a.jsonl", pytest.param("a.duckdb", marks=pytest.mark.long)])
def test_two_runs_at_the_same_time_are_refused_where_the_mount_has_no_locks(
    to: str, service: Service, command: Command
) -> None:
    """They would write to the same hidden file. After a kill, the next run begins."""
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=429,retry-after=60@1")])
    program = (sys.executable, "-m", REFUSING, "export", "--to", to)
    variables = command.variables(REFUSED="flock")
    with subprocess.Popen(
        program, cwd=command.folder, env=variables, stderr=subprocess.PIPE
    ) as first:
        assert first.stderr is not None
        assert b"Retry 1 of 8" in first.stderr.readline()

        done = command("export", "--to", to, module=REFUSING, REFUSED="flock")

        assert refused(done, "AE-BUSY").startswith("AE-BUSY: Another run is writing to ")
        first.send_signal(signal.SIGKILL)
    command("export", "--to", to, module=REFUSING, REFUSED="flock").raise_for_exit_code()

    assert exported(command.folder / to) == expected(EVENTS)
    assert command.left_over == []


def test_the_run_of_another_machine_is_not_replaced_where_the_mount_has_no_locks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is not known whether it has ended, so the error names the file to remove."""
    path, claim = tmp_path / "a.jsonl", tmp_path / ".a.jsonl.owner"
    monkeypatch.setattr(fcntl, "flock", _no_lock)
    claim.write_text(f"{os.getpid()} other-{platform.node()}")

    with pytest.raises(SettingsError, match=f"AE-BUSY.*remove '{claim}'"), locked(path):
        pass

    claim.unlink()
    with locked(path):
        assert claim.exists()
    assert list(tmp_path.iterdir()) == []


def _no_lock(*_: object) -> None:
    raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
