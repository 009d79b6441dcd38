"""An export into a folder, partitioned by day."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.outputs.day_files import DayFiles
from tap_audit_events.outputs.durable import (
    exists,
    keep_mode,
    output_errors,
    put_in_place,
    rename_all,
    temporary,
    unusable,
)
from tap_audit_events.outputs.form import AS_SENT, Form
from tap_audit_events.outputs.lock import exclusive
from tap_audit_events.outputs.output import Output
from tap_audit_events.outputs.state_checks import warn_if_moved, without_state
from tap_audit_events.outputs.state_file import StateFile
from tap_audit_events.run.disk import sync_folder

STAGING: Final = ".new"


class NewFolder(Output):
    """A folder that an export creates as a whole: it must be empty or absent."""

    def __init__(self, path: Path, form: Form = AS_SENT) -> None:
        self._path = path
        self._new_path = temporary(path)
        self._files = DayFiles(self._new_path, self._new_staging, form)

    def begin(self) -> Mapping[str, Any]:
        with output_errors(self._path):
            _check_is_replaceable(self._path)
            shutil.rmtree(self._new_path, ignore_errors=True)
        return {}

    def write(self, page: EventPage) -> None:
        with output_errors(self._path):
            self._files.write(page)

    def commit(self, state: Mapping[str, Any] | None) -> None:
        del state
        with output_errors(self._path):
            self._new_path.mkdir(parents=True, exist_ok=True)
            rename_all(self._files.finish())
            self._files.remove_staging()
            keep_mode(self._path, self._new_path)
            put_in_place(self._new_path, self._path)  # also onto an empty folder

    def discard(self) -> None:
        self._files.close()
        shutil.rmtree(self._new_path, ignore_errors=True)

    def _new_staging(self) -> Path:
        staging = self._new_path / STAGING
        staging.mkdir(parents=True)
        return staging


class GrowingFolder(Output):
    """A folder to which each export adds files with the new events.

    Args:
        path: the folder.
        state_file: says what the folder contains. Files may be moved out of the folder.
        form: the form of the events.
    """

    def __init__(self, path: Path, state_file: StateFile, form: Form = AS_SENT) -> None:
        self._path = path
        self._state_file = state_file
        self._files = DayFiles(path, self._new_staging, form)

    def begin(self) -> Mapping[str, Any]:
        with output_errors(self._path):
            self._state_file.read()
            self._check_contents()
            warn_if_moved(self._state_file, self._path)
            for each in (self._staging, self._staging_inside):
                shutil.rmtree(each, ignore_errors=True)
        return self._state_file.state

    def write(self, page: EventPage) -> None:
        with output_errors(self._path):
            self._files.write(page)

    def commit(self, state: Mapping[str, Any] | None) -> None:
        if state is None:
            return
        with output_errors(self._path):
            renames = self._files.finish()
            self._path.mkdir(exist_ok=True)
            for folder in (self._path, self._path.parent):  # both may have a new name in them
                sync_folder(folder)
            with exclusive(self._path) if self._is_first else nullcontext():
                self._check_contents()  # a run with another state file may have been faster
                self._state_file.commit(state, renames)
            self._files.remove_staging()

    def discard(self) -> None:
        if not self._state_file.is_announced:
            self._files.close()

    @property
    def _staging(self) -> Path:
        """A hidden folder next to the folder, where no query engine looks for events.

        Runs with another state file may be writing: each has its own.
        """
        return self._path.with_name(f".{self._path.name}{STAGING}-{self._state_file.digest}")

    @property
    def _staging_inside(self) -> Path:
        return self._path / f"{STAGING}-{self._state_file.digest}"

    def _new_staging(self) -> Path:
        """Create the hidden folder.

        It is in the folder only if the folder is a mount, so that files cannot be renamed into it,
        or if nothing may be created next to it.
        """
        if not exists(self._path):
            self._staging.mkdir(parents=True)
            return self._staging
        try:
            self._staging.mkdir()
            probe = self._staging / "probe"
            probe.mkdir()
            probe.rename(self._staging_inside)
        except OSError:
            shutil.rmtree(self._staging, ignore_errors=True)
            self._staging_inside.mkdir()
            return self._staging_inside
        self._staging_inside.rmdir()
        return self._staging

    def _check_contents(self) -> None:
        if self._is_first and any(each.name[0] != "." for each in self._path.iterdir()):
            raise without_state(self._state_file, self._path)

    @property
    def _is_first(self) -> bool:
        """Whether the folder exists, but no state says what it contains."""
        return not self._state_file.state and exists(self._path)


def _check_is_replaceable(folder: Path) -> None:
    name = sanitize(folder)
    if exists(folder) and not folder.is_dir():
        raise unusable(f"{name} exists, but is not a folder: give another path")
    if exists(folder) and (first := next(folder.iterdir(), None)):
        raise unusable(
            f"The folder {name} is not empty, it has {sanitize(first.name)}: give --state with"
            " its state file to add what is new, or give another folder"
        )
    if folder.is_mount():
        raise unusable(
            f"{name} is a mount point, which cannot be replaced as a whole: give a folder in it,"
            " or --state FILE"
        )
