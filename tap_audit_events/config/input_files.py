"""Reads the JSON files on the command line: configuration, catalog and state."""

from __future__ import annotations

import errno
import json
import sys
from collections import Counter
from copy import deepcopy
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from tap_audit_events.config.access_token import mask_possible_tokens
from tap_audit_events.errors.exceptions import SettingsError, sanitize

MAX_FILE_BYTES: Final = 256_000_000
"""Enough for the states of more than 200 organizations, each with the maximum number of ids. A
limit is needed because a device such as /dev/zero has no end."""

_PIECE_BYTES: Final = 1_000_000

_HINTS: Final = {
    "state": ": leave out --state for a first run, or give the last state of an earlier run",
    "export state": ": remove it, or put back what an earlier export wrote",
}
_CODES: Final = {"state": "AE-STATE", "catalog": "AE-CATALOG"}


def read_json_file(kind: str, path: str, *, keys_repeat: bool = True) -> dict[str, Any]:
    """Read a JSON object as `read_any_json_file` does; `SettingsError` if it is another value."""
    document = read_any_json_file(kind, path, keys_repeat=keys_repeat)
    if not isinstance(document, dict):
        raise _unusable(kind, path, "must contain a JSON object, that is { … }")
    return document


def read_any_json_file(kind: str, path: str, *, keys_repeat: bool = True) -> Any:
    """Read a JSON value from a file, or from stdin if ``path`` is ``-``.

    Args:
        kind: what the file is, for the message, such as config or export state.
        path: the file.
        keys_repeat: whether an object may have a key twice: the last value counts.

    Raises:
        SettingsError: the file cannot be read, is larger than `MAX_FILE_BYTES`, is not JSON, or
            has a key twice that must not. The message does not contain its text, which may contain
            the token.
    """
    hint = _HINTS.get(kind, "")
    if "://" in path:  # not shown: a password may be in it
        raise SettingsError([f"The {kind} must be the path of a file, not a URL"], "AE-FILE")
    try:
        data = _read_bytes(path)
        if len(data) > MAX_FILE_BYTES:
            raise _unusable(kind, path, f"is larger than {MAX_FILE_BYTES // 1_000_000} MB")
        if not data.strip():
            raise _unusable(kind, path, f"is empty{hint or ': write a JSON object'}")
        to_object = dict if keys_repeat else partial(_with_unique_keys, kind, path)
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=to_object)
    except OSError as error:
        hint = hint if isinstance(error, FileNotFoundError) else ""
        raise _unusable(kind, path, f"cannot be read: {error.strerror}{hint}") from None
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}{hint}"
        raise _unusable(kind, path, f"is not JSON: {error.msg} at {position}") from None
    except UnicodeDecodeError:
        raise _unusable(kind, path, "is not UTF-8: save it as UTF-8") from None
    except RecursionError:
        raise _unusable(kind, path, "is nested too deeply") from None
    except ValueError as error:
        raise _unusable(kind, path, f"is not JSON: {type(error).__name__}") from None


def _with_unique_keys(kind: str, path: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            raise _unusable(kind, path, f"has the key {sanitize(key)} more than once")
    return dict(pairs)


def check_serializable(kind: str, document: Any) -> None:
    """Raise `SettingsError` if a document is nested too deeply or contains a lone surrogate."""
    try:
        deepcopy(document)
        json.dumps(document, ensure_ascii=False).encode()
    except RecursionError:
        raise malformed(kind, "is nested too deeply") from None
    except UnicodeEncodeError:
        raise malformed(kind, "contains half of a surrogate pair") from None


def malformed(kind: str, problem: str) -> SettingsError:
    """The error for a catalog or a state of the wrong shape."""
    return SettingsError([f"The {kind} {problem}"], _CODES[kind])


def _read_bytes(path: str) -> bytes:
    if not path:  # Path would make it the working directory
        raise OSError(errno.ENOENT, "the path is empty")
    if path != "-":
        with Path(path).open("rb") as file:
            return _read_start(file)
    if sys.stdin is None:
        raise OSError(errno.EBADF, "stdin is closed")
    return _read_start(sys.stdin.buffer)


def _read_start(file: BinaryIO) -> bytes:
    """Read at most a piece more than the limit; one `read` would reserve memory for all of it."""
    pieces = iter(partial(file.read, _PIECE_BYTES), b"")
    return b"".join(islice(pieces, MAX_FILE_BYTES // _PIECE_BYTES + 1))


def _unusable(kind: str, path: str, problem: str) -> SettingsError:
    mask_possible_tokens(path)
    return SettingsError([f"The {kind} file {sanitize(path)} {problem}"], "AE-FILE")
