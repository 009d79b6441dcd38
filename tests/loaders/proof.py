"""Runs `audit-events` with all its extras, as they are installed in .tools/proof."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tap_audit_events.config.names import ENVIRONMENT_PREFIX
from tests.cli.command import Done
from tests.forking import COMMAND
from tests.loaders.pipeline import PROJECT
from tests.running import forms_of

PEAK = ".peak"
MEASURED = f"""
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
with open("{PEAK}", "w") as file:
    file.write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A small process starts the command: a child begins with the peak memory of its parent."""


def python_of_proof() -> Path:
    """The interpreter of the environment, which must be installed."""
    folder = PROJECT / ".tools" / "proof"
    assert (folder / ".installed").exists(), "use `make .tools/proof/.installed`"
    return folder / "bin" / "python"


def audit_events(
    folder: Path, settings: dict[str, Any], *arguments: str, secret: str = "", **environment: str
) -> Done:
    """Run the command to its end, and check that it does not show the secret or the token."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, python_of_proof(), "-m", COMMAND, *arguments],
        cwd=folder,
        env=variables_of(settings) | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=1000,
        check=False,
    )
    print(f"peak: {peak_bytes(folder) >> 20} MiB")  # noqa: T201 - pytest shows it if a test fails
    ended = Done(done.stdout, done.stderr.decode(), done.returncode)
    shown = (ended.log + ended.stdout.decode()).lower()
    for each in filter(None, [secret, settings.get("access_token")]):
        assert not [form for form in forms_of(str(each)) if form in shown]
    return ended


def variables_of(settings: dict[str, Any]) -> dict[str, str]:
    given = {f"{ENVIRONMENT_PREFIX}{name.upper()}": str(each) for name, each in settings.items()}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**inherited, "PYTHONPATH": str(PROJECT), **given}


def peak_bytes(folder: Path) -> int:
    """The peak memory of the last run in a folder."""
    return int((folder / PEAK).read_text()) * (1 if sys.platform == "darwin" else 1024)
