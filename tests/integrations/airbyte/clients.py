"""Runs Airbyte's own programs in their environment, against the installed source."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.integrations.pipeline import PROJECT

CLIENTS: Final = PROJECT / ".tools" / "airbyte-clients" / "bin"
SOURCE: Final = Path(sys.executable).parent / "source-audit-events"


def run_client(
    program: str,
    *arguments: str | Path,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Run a program to its end, in a folder that is also its home."""
    return subprocess.run(
        [CLIENTS / program, *arguments],
        cwd=folder,
        env={
            "PATH": f"{SOURCE.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "AIRBYTE_OFFLINE_MODE": "1",
            "DO_NOT_TRACK": "1",
            **(environment or {}),
        },
        input=stdin,
        capture_output=True,
        check=False,
    )
