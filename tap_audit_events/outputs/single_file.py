"""An export into one file: it is replaced as a whole, or extended as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.outputs.durable import (
    create_like,
    exists,
    output_errors,
    put_in_place,
    temporary,
)
from tap_audit_events.outputs.output import Output
from tap_audit_events.outputs.state_checks import check_unchanged, meanwhile, warn_if_moved
from tap_audit_events.outputs.state_file import StateFile


class Writer(Protocol):
    """Writes a new file."""

    def copy(self, old: Path) -> None: ...
    def write(self, page: EventPage) -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...


NewWriter: TypeAlias = Callable[[Path], Writer]


class SingleFile(Output):
    """An output that is one file, such as Parquet or JSON Lines.

    Args:
        path: the file.
        new_writer: creates the writer of a new file.
        state_file: says what the file contains; without it, each export replaces the file.
    """

    def __init__(self, path: Path, new_writer: NewWriter, state_file: StateFile | None) -> None:
        self._path = path
        self._new_writer = new_writer
        self._state_file = state_file
        suffix = ".replacing" if state_file is None else ".extending"
        self._new_path = temporary(path.with_name(path.name + suffix))
        self._writer: Writer | None = None
        self._has_new_file = False
        self._extends = False

    def begin(self) -> Mapping[str, Any]:
        with output_errors(self._path):
            if self._state_file is not None:
                self._state_file.read()
                check_unchanged(self._state_file, self._path)
                warn_if_moved(self._state_file, self._path)
            self._new_path.unlink(missing_ok=True)
        return {} if self._state_file is None else self._state_file.state

    def write(self, page: EventPage) -> None:
        if len(page):
            with output_errors(self._path):
                self._opened().write(page)

    def commit(self, state: Mapping[str, Any] | None) -> None:
        with output_errors(self._path):
            if self._state_file is None:
                self._opened().finish()
                put_in_place(self._new_path, self._path)
            elif state is not None and self._writer is None and exists(self._path):
                check_unchanged(self._state_file, self._path)  # it stays, without a copy
                self._state_file.settle(state, self._state_file.size)
            elif state is not None:
                self._opened().finish()
                check_unchanged(self._state_file, self._path)
                if exists(self._path) != self._extends:  # since the new file began with a copy
                    raise meanwhile("moved it", self._path)
                size = self._new_path.stat().st_size
                self._state_file.commit(state, [(self._new_path, self._path)], size)

    def discard(self) -> None:
        if self._writer is not None:
            with suppress(Exception):  # a full disk refuses the last bytes too
                self._writer.close()
        is_announced = self._state_file is not None and self._state_file.is_announced
        if self._has_new_file and not is_announced:  # even if the old events were not copied yet
            with suppress(OSError):
                self._new_path.unlink(missing_ok=True)

    def _opened(self) -> Writer:
        if self._writer is None:
            self._extends = self._state_file is not None and exists(self._path)
            self._has_new_file = True
            create_like(self._path, self._new_path).close()
            self._writer = self._new_writer(self._new_path)
            if self._extends:
                self._writer.copy(self._path)
        return self._writer
