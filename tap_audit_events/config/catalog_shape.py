"""Checks that a catalog has the shape of a Singer catalog and contains the stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tap_audit_events.config.input_files import check_serializable, malformed
from tap_audit_events.events.stream_names import STREAM


def check_catalog(catalog: Mapping[str, Any]) -> dict[str, Any]:
    """Check the shape of a catalog, and normalize it.

    A replication method or key in a stream's metadata, where some tools write it, is moved to the
    stream's entry.

    Raises:
        SettingsError: it has another shape, or lacks the stream.
    """
    check_serializable("catalog", catalog)  # first: the other checks cannot walk deep nesting
    streams = catalog.get("streams")
    if not isinstance(streams, list) or not all(map(_is_stream, streams)):
        raise malformed(
            "catalog",
            'must look like {"streams": [{"tap_stream_id": …, "schema": …, "metadata": […]}]};'
            " generate one with --discover",
        )
    if STREAM not in [stream["tap_stream_id"] for stream in streams]:
        raise malformed("catalog", f"has no stream {STREAM}: generate one with --discover")
    return {**catalog, "streams": list(map(_normalized, streams))}


def _normalized(stream: dict[str, Any]) -> dict[str, Any]:
    metadata = stream.get("metadata") or []
    roots = [each["metadata"] for each in metadata if not each["breadcrumb"]]
    root: dict[str, Any] = roots[0] if roots else {}
    moved = {
        key: root[key.replace("_", "-")]
        for key in ("replication_method", "replication_key")
        if not stream.get(key) and root.get(key.replace("_", "-"))
    }
    return {**stream, **moved, "stream": stream["tap_stream_id"], "metadata": metadata}


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_stream(value: Any) -> bool:
    return isinstance(value, dict) and all(
        is_valid(value.get(key)) for key, is_valid in _STREAM_KEYS.items()
    )


def _is_stream_schema(value: Any) -> bool:
    return isinstance(value, dict) and "properties" in value and _is_schema(value)


def _is_schema(value: Any) -> bool:
    """Whether a value is a JSON Schema, as far as taps and targets read it."""
    if not isinstance(value, dict):
        return False
    types, properties = value.get("type", "object"), value.get("properties", {})
    return (
        (_is_string(types) or (isinstance(types, list) and all(map(_is_string, types))))
        and isinstance(properties, dict)
        and all(map(_is_schema, properties.values()))
    )


def _is_metadata(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(map(_is_metadata_entry, value)))


def _is_metadata_entry(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("breadcrumb"), list)
        and all(map(_is_string, value["breadcrumb"]))
        and isinstance(value.get("metadata"), dict)
    )


_STREAM_KEYS: dict[str, Callable[[Any], bool]] = {
    "tap_stream_id": _is_string,
    "schema": _is_stream_schema,
    "metadata": _is_metadata,
}
