"""The state file of an incremental export, which is also the journal of a commit.

A commit has three steps; each is complete on the disk before the next one begins:

1. The state file announces the commit: it lists the files to rename, and the state after that.
2. The files are renamed.
3. The commit is settled: the state file contains only the new state.

A process that is killed before step 1 has changed nothing. After step 1, the next run does the
rest, or undoes step 1 for an output that has its own state. If some of the files are gone by then,
it is not known whether they had been renamed, and the run ends with an error.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.outputs.durable import (
    Rename,
    check_is_utf8,
    exists,
    output_errors,
    rename_all,
    temporary,
    unusable,
    write_json,
)
from tap_audit_events.outputs.state_document import VERSION, read_document, unusable_state


class _Commit(msgspec.Struct):
    """A commit that is announced: the state and the size after it, and the files to rename."""

    state: dict[str, Any]
    bytes: int | None
    renames: list[tuple[str, str]]


class _Document(msgspec.Struct, omit_defaults=True):
    """The content of a state file."""

    version: int
    output: str
    bytes: int | None
    state: dict[str, Any]
    pending: _Commit | None = None


class StateFile:
    """The state of one output. Its paths are relative: it can be moved together with the output.

    Args:
        path: the file, which need not exist yet.
        output: the output that it belongs to.

    Attributes:
        is_announced: whether a commit is announced and not settled: its files must not be removed.
    """

    def __init__(self, path: Path, output: Path) -> None:
        self.path = path
        self._output = output
        self._known = self._document({}, None)
        self.is_announced = False

    @property
    def state(self) -> dict[str, Any]:
        """The state that covers the events in the output; empty before `read`, and at first."""
        return self._known.state

    @property
    def size(self) -> int | None:
        """How many bytes the output has, None if that is not known."""
        return self._known.bytes

    @property
    def digest(self) -> str:
        """Letters and digits that differ from those of other state files of the same output."""
        path = os.path.relpath(self.path, self._output)
        return blake2b(os.fsencode(path), digest_size=6).hexdigest()

    def read(self, *, undoes: bool = False) -> None:
        """Read the file, and complete a commit that was interrupted.

        Args:
            undoes: whether such a commit is undone instead, if its only file is not renamed yet.

        Raises:
            SettingsError: it is not such a file, belongs to another output, or cannot contain the
                path of the output; or the commit cannot be completed any more.
        """
        check_is_utf8(self._relative(self._output), "a state file")
        temporary(self.path).unlink(missing_ok=True)
        if not exists(self.path):
            return
        self._known = self._read_document()
        if pending := self._known.pending:
            renames = [(self._absolute(a), self._absolute(b)) for a, b in pending.renames]
            self._check_completable(renames, pending.bytes)
            if undoes and exists(renames[0][0]):
                self.settle(self.state)
                return
            rename_all(renames, resumes=True)
            self.settle(pending.state, pending.bytes)

    def commit(
        self, state: Mapping[str, Any], renames: Sequence[Rename], size: int | None = None
    ) -> None:
        """Rename files to their final paths, and store the state that covers them.

        If this run is killed meanwhile, the next one completes the commit.

        Args:
            state: the new state.
            renames: the files and their final paths.
            size: the bytes of the only file; None if it may change in other ways.
        """
        paths = [(self._relative(source), self._relative(final)) for source, final in renames]
        document = self._document(self.state, None if size is None else _size_of(self._output))
        document.pending = _Commit(dict(state), size, paths)
        journal = write_json(self.path, document)
        self.is_announced = True
        self._replace_with(journal)
        rename_all(renames)
        self.settle(state, size)

    def settle(self, state: Mapping[str, Any], size: int | None = None) -> None:
        """Write the new state, without a journal."""
        self._known = self._document(state, size)
        self._replace_with(write_json(self.path, self._known))
        self.is_announced = False

    def _replace_with(self, written: Rename) -> None:
        with output_errors(self.path):
            rename_all([written])

    def _check_completable(self, renames: Sequence[Rename], size: int | None) -> None:
        """Raise `SettingsError` if a file of a commit is not renamed, and cannot be any more.

        `size` is that of the only file; None if it is not known.
        """
        for source, final in renames:
            if size is None:
                can_complete = exists(source) or exists(final)
            else:
                can_complete = _size_of(final) == (self.size if exists(source) else size)
            if not can_complete:
                state_file, output = sanitize(self.path), sanitize(self._output)
                raise unusable(
                    f"An export with {state_file} was interrupted before it had put"
                    f" {sanitize(source)} in its place, and something was changed or removed"
                    f" since then. If something was moved away from {output}, put it back, and run"
                    f" the export again. Else remove {output} and {state_file} to export everything"
                    " again"
                )

    def _document(self, state: Mapping[str, Any], size: int | None) -> _Document:
        return _Document(VERSION, self._relative(self._output), size, dict(state))

    def _read_document(self) -> _Document:
        document = read_document(self.path, "export state", _Document)
        if document.output != self._known.output:
            raise unusable_state(
                self.path,
                f"belongs to {sanitize(self._absolute(document.output))}: give each output a state"
                " file of its own",
            )
        return document

    def _relative(self, path: Path) -> str:
        return os.path.relpath(path, self.path.parent)

    def _absolute(self, path: str) -> Path:
        return Path(os.path.normpath(self.path.parent / path))


def _size_of(file: Path) -> int | None:
    """The size of a file in bytes; None if it does not exist."""
    return file.stat().st_size if exists(file) else None
