"""Reads the JSON document of a state file, and says what is wrong with one that cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from tap_audit_events.config.input_files import read_json_file
from tap_audit_events.errors.exceptions import SettingsError, sanitize

_Document = TypeVar("_Document", bound=msgspec.Struct)

VERSION = 1
"""The version of the documents of all state files."""


def read_document(path: Path, kind: str, form: type[_Document]) -> _Document:
    """The document in a state file.

    Args:
        path: the file.
        kind: what errors call it, such as ``export state``.
        form: the type of the document.

    Raises:
        SettingsError: the file cannot be read, a newer version wrote it, or it has another form.
    """
    content = read_json_file(kind, str(path))
    match content:
        case {"version": int(version)} if version > VERSION:
            raise unusable_state(path, "was written by a newer version: install that version")
    try:
        return msgspec.convert(content, form)
    except msgspec.ValidationError:
        raise unusable_state(
            path,
            "is not a state file of this command: give another name, or the state file that an"
            " earlier run wrote",
        ) from None


def unusable_state(path: Path, problem: str) -> SettingsError:
    """The error for a state file that cannot be used."""
    return SettingsError([f"The file {sanitize(path)} {problem}"], "AE-STATE")
