"""The state file of a receiver: which events it has acknowledged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tap_audit_events.config.input_files import read_json_file
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.outputs.durable import (
    exists,
    output_errors,
    put_in_place,
    temporary,
    write_json,
)

VERSION: Final = 1


class _Document(msgspec.Struct):
    version: int
    receiver: str
    state: dict[str, Any]


class ReceiverState:
    """The state of what a receiver has acknowledged, replaced as a whole.

    Args:
        path: the file, which need not exist yet.
        receiver: the name of the receiver to which it belongs.
    """

    def __init__(self, path: Path, receiver: str) -> None:
        self._path = path
        self._receiver = receiver

    def read(self) -> dict[str, Any]:
        """The state, empty if the file does not exist.

        Raises:
            SettingsError: it is not such a file, or belongs to another receiver.
        """
        with output_errors(self._path):
            temporary(self._path).unlink(missing_ok=True)
            if not exists(self._path):
                return {}
        content = read_json_file("ship state", str(self._path))
        match content:
            case {"version": int(version)} if version > VERSION:
                raise self._unusable("was written by a newer version: install that version")
        try:
            document = msgspec.convert(content, _Document)
        except msgspec.ValidationError:
            raise self._unusable(
                "is not a state file of this command: give another name, or the file that an"
                " earlier run wrote"
            ) from None
        if document.receiver != self._receiver:
            raise self._unusable(
                f"belongs to the receiver {sanitize(document.receiver)}: give each receiver a state"
                " file of its own; or, if it only has a new URL, write that into the file"
            )
        return document.state

    def write(self, state: Mapping[str, Any]) -> None:
        """Replace the state."""
        source, path = write_json(self._path, _Document(VERSION, self._receiver, dict(state)))
        with output_errors(path):
            put_in_place(source, path)

    def _unusable(self, problem: str) -> SettingsError:
        return SettingsError([f"The file {sanitize(self._path)} {problem}"], "AE-STATE")
