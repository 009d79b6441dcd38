"""The state file of a receiver: which events it has acknowledged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.outputs.durable import (
    exists,
    output_errors,
    put_in_place,
    temporary,
    write_json,
)
from tap_audit_events.outputs.state_document import VERSION, read_document, unusable_state


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
        document = read_document(self._path, "ship state", _Document)
        if document.receiver != self._receiver:
            raise unusable_state(
                self._path,
                f"belongs to the receiver {sanitize(document.receiver)}: give each receiver a state"
                " file of its own; or, if it only has a new URL, write that into the file",
            )
        return document.state

    def write(self, state: Mapping[str, Any]) -> None:
        """Replace the state."""
        source, path = write_json(self._path, _Document(VERSION, self._receiver, dict(state)))
        with output_errors(path):
            put_in_place(source, path)
