"""The files a user gives: configuration, catalog and state."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tap_audit_events.errors import SettingsError

Document = dict[str, Any]


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
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
        document = json.loads(text)
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


def _unusable(kind: str, path: str, problem: str) -> SettingsError:
    return SettingsError([f"The {kind} file {path} {problem}"])


def check_state(state: Mapping[str, Any]) -> None:
    """Check that a state is a Singer state, as deep as every stream's bookmark.

    Raises:
        SettingsError: it is of another shape.
    """
    for wrapper in ("singer_state", "value"):
        if wrapper in state and "bookmarks" not in state:
            raise _misshapen(
                "state", f"has the bookmarks inside {wrapper!r}: give only what {wrapper!r} holds"
            )
    bookmarks = state.get("bookmarks", {})
    if not isinstance(bookmarks, dict) or not all(map(_is_object, bookmarks.values())):
        raise _misshapen("state", 'must look like {"bookmarks": {"audit_events": { … }}}')


def check_catalog(catalog: Mapping[str, Any]) -> None:
    """Check that a catalog is a Singer catalog, as deep as its streams' schemas and metadata.

    Raises:
        SettingsError: it is of another shape.
    """
    streams = catalog.get("streams")
    if not isinstance(streams, list) or not all(map(_is_stream, streams)):
        raise _misshapen(
            "catalog",
            'must look like {"streams": [{"tap_stream_id": …, "schema": …, "metadata": […]}]};'
            " make one with --discover",
        )


def _misshapen(kind: str, problem: str) -> SettingsError:
    return SettingsError([f"The {kind} {problem}"])


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


_STREAM_PARTS: dict[str, Callable[[Any], bool]] = {
    "tap_stream_id": lambda value: isinstance(value, str),
    "schema": lambda value: _is_object(value) and _is_object(value.get("properties")),
    "metadata": lambda value: (
        value is None or (isinstance(value, list) and all(map(_is_metadata, value)))
    ),
}


def _is_stream(value: Any) -> bool:
    return _is_object(value) and all(fits(value.get(part)) for part, fits in _STREAM_PARTS.items())


def _is_metadata(value: Any) -> bool:
    return (
        _is_object(value)
        and isinstance(value.get("breadcrumb"), list)
        and all(isinstance(crumb, str) for crumb in value["breadcrumb"])
        and _is_object(value.get("metadata"))
    )
