"""Checks that a catalog and a state have the shapes that Singer defines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from tap_audit_events.config.input_files import check_serializable, malformed
from tap_audit_events.events.stream_names import STREAM


class _Schema(msgspec.Struct):
    """A JSON Schema, as far as taps and targets read it."""

    type: str | list[str] = "object"
    properties: dict[str, _Schema] = {}
    anyOf: list[_Schema] = []  # noqa: N815 - the keyword's name
    items: _Schema | None = None


class _StreamSchema(_Schema, kw_only=True):
    properties: dict[str, _Schema]


class _Metadata(msgspec.Struct):
    selected: bool | None = None  # the text "false" would count as true
    selected_by_default: bool | None = msgspec.field(name="selected-by-default", default=None)
    inclusion: Literal["available", "automatic", "unsupported"] | None = None
    key_properties: list[str] | None = msgspec.field(name="table-key-properties", default=None)
    replication_key: str | None = msgspec.field(name="replication-key", default=None)
    replication_method: str | None = msgspec.field(name="replication-method", default=None)


class _MetadataEntry(msgspec.Struct):
    breadcrumb: list[str]
    metadata: _Metadata


class _Stream(msgspec.Struct):
    tap_stream_id: str
    schema: _StreamSchema
    metadata: list[_MetadataEntry] | None = None
    key_properties: list[str] | None = None
    replication_key: str | None = None
    replication_method: str | None = None


class _Catalog(msgspec.Struct):
    streams: list[_Stream]


class _Partition(msgspec.Struct):
    context: dict[str, Any]
    progress_markers: dict[str, Any] = {}


class _Bookmark(msgspec.Struct):
    partitions: list[_Partition] = []
    progress_markers: dict[str, Any] = {}


class _State(msgspec.Struct):
    bookmarks: dict[str, _Bookmark]


_TYPES: Final = {
    "str": "a text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}

_IN_METADATA: Final = {
    "key_properties": "table-key-properties",
    "replication_key": "replication-key",
    "replication_method": "replication-method",
}


def check_catalog(catalog: Mapping[str, Any]) -> dict[str, Any]:
    """Check the shape of a catalog, and normalize it.

    Keys and a replication method in a stream's metadata, where some tools write them, are copied to
    the stream's entry. A stream without metadata of its own is selected.

    Raises:
        SettingsError: the catalog has the wrong shape, or lacks the stream of events.
    """
    check_serializable("catalog", catalog)  # first: the next check fails on lone surrogates
    try:
        streams = msgspec.convert(catalog, _Catalog).streams
    except msgspec.ValidationError as error:
        raise malformed(
            "catalog",
            'must look like {"streams": [{"tap_stream_id": …, "schema": …, "metadata": […]}]},'
            f" but {_in_words(error)}; generate one with --discover",
        ) from None
    if STREAM not in [stream.tap_stream_id for stream in streams]:
        raise malformed("catalog", f"has no stream {STREAM}: generate one with --discover")
    return {**catalog, "streams": list(map(_normalized, catalog["streams"]))}


def _normalized(stream: dict[str, Any]) -> dict[str, Any]:
    metadata = stream.get("metadata") or []
    roots = [each["metadata"] for each in metadata if not each["breadcrumb"]]
    root: dict[str, Any] = roots[0] if roots else {}
    if metadata and not roots:
        # Without this entry, the SDK selects the stream, but no field that has metadata.
        metadata = [*metadata, {"breadcrumb": [], "metadata": {"selected": True}}]
    # --discover writes no replication-method: if there is one, somebody has chosen it.
    copied = {
        key: root[name]
        for key, name in _IN_METADATA.items()
        if root.get(name) and (key == "replication_method" or stream.get(key) in (None, ""))
    }
    return {**stream, **copied, "stream": stream["tap_stream_id"], "metadata": metadata}


def check_state(state: Mapping[str, Any]) -> None:
    """Raise `SettingsError` if a state has the wrong shape, down to the bookmark of each stream."""
    check_serializable("state", state)  # first: the next check fails on lone surrogates
    for wrapper in ("singer_state", "completed", "value"):
        if wrapper in state and "bookmarks" not in state:
            raise malformed(
                "state", f"has the bookmarks inside {wrapper!r}: give only the value of {wrapper!r}"
            )
    try:
        if state:  # the state of a first run is empty
            msgspec.convert(state, _State)
    except msgspec.ValidationError as error:
        raise malformed(
            "state",
            f'must look like {{"bookmarks": {{"audit_events": {{ … }}}}}}, but {_in_words(error)}',
        ) from None


def _in_words(error: msgspec.ValidationError) -> str:
    """What is wrong, without the notation of the library."""
    problem, _, place = str(error).replace("`", "").partition(" - at $")
    where = place.lstrip(".").replace("[...]", ".*") or "it"
    if found := re.fullmatch("Object missing required field (.+)", problem):
        return f"{where} has no {found[1]}"
    if found := re.fullmatch("Expected (.+), got (.+)", problem):
        expected, given = (
            " or ".join(_TYPES.get(each, each) for each in kinds.split(" | "))
            for kinds in found.groups()
        )
        return f"{where} is {given} instead of {expected}"
    return f"{where} has an {problem.lower()}"
