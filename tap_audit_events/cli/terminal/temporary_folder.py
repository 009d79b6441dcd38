"""The system's folder for temporary files."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tap_audit_events.errors.exceptions import OutputError


def temporary_folder() -> Path:
    """The folder for temporary files.

    Raises:
        OutputError: none can be written to, for example because the disk is full.
    """
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        reason = "no folder for temporary files: set TMPDIR"
        raise OutputError(reason, "AE-EXPORT") from None
