"""The files a user gives: configuration, catalog and state."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from tap_audit_events import STREAM
from tap_audit_events.errors.exceptions import SettingsError, shown

Document = dict[str, Any]

_CODES = {"state": "AE-STATE", "catalog": "AE-CATALOG"}


def read_document(kind: str, path: str) -> Document:
    """A JSON object from a file, or from stdin where ``path`` is ``-``.

    Args:
        kind: what the file is, for the message: config, catalog or state.
        path: the file.

    Raises:
        SettingsError: the file cannot be read, is no JSON, or is no object. Its text is not shown:
            it may hold the token.
    """
    try:
        document = json.loads(_bytes(path).decode("utf-8-sig"))
    except OSError as error:
        raise _unusable(kind, path, f"cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _unusable(kind, path, f"is no JSON: {error.msg} at {place}") from None
    except (ValueError, RecursionError) as error:
        raise _unusable(kind, path, f"is no JSON: {type(error).__name__}") from None
    if not isinstance(document, dict):
        raise _unusable(kind, path, "must hold a JSON object, that is { … }")
    return document


def _bytes(path: str) -> bytes:
    if path != "-":
        return Path(path).read_bytes()
    if sys.stdin is None:
        raise OSError(errno.EBADF, "stdin is closed")
    return sys.stdin.buffer.read()


def _unusable(kind: str, path: str, problem: str) -> SettingsError:
    return SettingsError([f"The {kind} file {shown(path)} {problem}"], "AE-FILE")


def check_state(state: Mapping[str, Any]) -> None:
    """Check that a state is a Singer state, as deep as every stream's bookmark.

    Raises:
        SettingsError: it is of another shape.
    """
    for wrapper in ("singer_state", "completed", "value"):
        if wrapper in state and "bookmarks" not in state:
            raise _misshapen(
                "state", f"has the bookmarks inside {wrapper!r}: give only what {wrapper!r} holds"
            )
    bookmarks = state.get("bookmarks", {})
    if not isinstance(bookmarks, dict) or not all(map(_is_bookmark, bookmarks.values())):
        raise _misshapen("state", 'must look like {"bookmarks": {"audit_events": { … }}}')
    _check_writable("state", state)


def state_warnings(state: Mapping[str, Any]) -> list[str]:
    """What in a state is no error, but not used either."""
    if state and STREAM not in state.get("bookmarks", {}):
        return [f"The state has no bookmark of {STREAM}: all events are read"]
    return []


def check_catalog(catalog: Mapping[str, Any]) -> dict[str, Any]:
    """Check that a catalog is a Singer catalog that has the stream, and bring it into one form.

    A replication method in the stream's metadata, as some tools write it, is moved to its entry.

    Raises:
        SettingsError: it is of another shape, or does not have the stream.
    """
    _check_writable("catalog", catalog)  # first, for what is nested deeper cannot be looked into
    streams = catalog.get("streams")
    if not isinstance(streams, list) or not all(map(_is_stream, streams)):
        raise _misshapen(
            "catalog",
            'must look like {"streams": [{"tap_stream_id": …, "schema": …, "metadata": […]}]};'
            " make one with --discover",
        )
    if STREAM not in [stream["tap_stream_id"] for stream in streams]:
        raise _misshapen("catalog", f"has no stream {STREAM}: make one with --discover")
    return {**catalog, "streams": list(map(_in_one_form, streams))}


def _in_one_form(stream: Document) -> Document:
    metadata = stream.get("metadata") or []
    roots = [each["metadata"] for each in metadata if not each["breadcrumb"]]
    root: Document = roots[0] if roots else {}
    found = {
        key: root[key.replace("_", "-")]
        for key in ("replication_method", "replication_key")
        if not stream.get(key) and root.get(key.replace("_", "-"))
    }
    return {**stream, **found, "stream": stream["tap_stream_id"], "metadata": metadata}


def _check_writable(kind: str, document: Mapping[str, Any]) -> None:
    """Raise SettingsError for what cannot be written again: half characters, endless nesting."""
    try:
        deepcopy(document)
        json.dumps(document, ensure_ascii=False).encode()
    except (RecursionError, UnicodeEncodeError) as error:
        raise _misshapen(kind, f"cannot be written again: {type(error).__name__}") from None


def _misshapen(kind: str, problem: str) -> SettingsError:
    return SettingsError([f"The {kind} {problem}"], _CODES[kind])


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_bookmark(value: Any) -> bool:
    return (
        _is_object(value)
        and _is_object(value.get("progress_markers", {}))
        and isinstance(value.get("partitions", []), list)
        and all(map(_is_object, value.get("partitions", [])))
    )


_STREAM_PARTS: dict[str, Callable[[Any], bool]] = {
    "tap_stream_id": lambda value: isinstance(value, str),
    "schema": lambda value: _is_object(value) and "properties" in value and _is_schema(value),
    "metadata": lambda value: (
        value is None or (isinstance(value, list) and all(map(_is_metadata, value)))
    ),
}


def _is_stream(value: Any) -> bool:
    return _is_object(value) and all(fits(value.get(part)) for part, fits in _STREAM_PARTS.items())


def _is_schema(value: Any) -> bool:
    """Whether it is a schema as far as taps and targets look into it."""
    if not _is_object(value):
        return False
    types, properties = value.get("type", "object"), value.get("properties", {})
    return (
        (isinstance(types, str) or (isinstance(types, list) and all(map(_is_text, types))))
        and _is_object(properties)
        and all(map(_is_schema, properties.values()))
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_metadata(value: Any) -> bool:
    return (
        _is_object(value)
        and isinstance(value.get("breadcrumb"), list)
        and all(map(_is_text, value["breadcrumb"]))
        and _is_object(value.get("metadata"))
    )
