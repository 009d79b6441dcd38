"""Checks that an output and its state file belong together: no event is lost or repeated."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.outputs.durable import exists, unusable
from tap_audit_events.outputs.state_file import StateFile

_logger: Final = logging.getLogger("tap_audit_events")


def check_unchanged(state_file: StateFile, path: Path) -> None:
    """Raise `SettingsError` if a file exists, but not as the last export left it."""
    if not exists(path):
        return
    if not state_file.state:
        raise without_state(state_file, path)
    size = path.stat().st_size
    if size != state_file.size:
        raise unusable(
            f"{sanitize(path)} has {size:,} bytes, but the last export with"
            f" {sanitize(state_file.path)} left {state_file.size or 0:,}: something else has"
            " changed it. Put the old file back; or move this one away to continue in a new file"
            " with what is new; or remove both files to export everything again"
        )


def without_state(state_file: StateFile, path: Path) -> SettingsError:
    """The error for an output that has events, but no state file that says which."""
    return unusable(
        f"{sanitize(path)} exists, but there is no state for it in"
        f" {sanitize(state_file.path)}, so it is not known which events are new. Give the"
        " state file of this output; or move the output away; or, unless it is a folder, leave out"
        " --state to replace it"
    )


def meanwhile(what: str, path: Path) -> SettingsError:
    """The error for an output that something else has moved or changed since the export began."""
    return unusable(
        f"{sanitize(path)}: something else has {what} during the export. Run the export again"
    )


def other_columns(path: Path) -> SettingsError:
    """The error for an output with other columns, or with the columns in another order."""
    return unusable(
        f"{sanitize(path)} has other columns than this version writes with these options:"
        " move it away, and export into a new file"
    )


def warn_if_moved(state_file: StateFile, path: Path, *, table: str = "") -> None:
    """Warn that an export continues without the events that an earlier one wrote.

    Args:
        state_file: the state of these events.
        path: the output.
        table: its table that is missing; by default, the output itself may be missing.
    """
    if state_file.state and (table or not exists(path)):
        _logger.warning(
            "%s%s has been moved or removed since the last export: a new one starts with the events"
            " after that export. To export everything again, remove %s too",
            table and f"The table {table} in ",
            sanitize(path),
            sanitize(state_file.path),
        )
