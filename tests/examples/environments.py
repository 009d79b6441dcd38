"""The environments in which the examples run: requirements/NAME.txt, installed into .tools/NAME."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.integrations.pipeline import PROJECT

TIMEOUT_SECONDS = 240

OWN: Final = "own"
"""The environment of the tests."""


def python_of(name: str) -> Path:
    """The interpreter of an environment, which must be installed."""
    if name == OWN:
        return Path(sys.executable)
    folder = PROJECT / ".tools" / name
    assert (folder / ".installed").exists(), f"use `make .tools/{name}/.installed`"
    return folder / "bin" / "python"


def run_python(
    name: str,
    arguments: Sequence[str | Path],
    *,
    folder: Path,
    environment: Mapping[str, str],
) -> "subprocess.CompletedProcess[str]":
    """Run an interpreter to its end, in a folder that is also its home."""
    inherited = {key: value for key, value in os.environ.items() if "AUDIT_EVENTS" not in key}
    return subprocess.run(
        [python_of(name), *arguments],
        cwd=folder,
        env={**inherited, "HOME": str(folder), "PYTHONPATH": str(PROJECT), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
