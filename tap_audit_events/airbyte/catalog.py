"""The stream in the catalog of ``discover``, and its sync mode in a configured catalog."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from tap_audit_events.config.input_files import malformed
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.events.schema import KEYS_OF_SHAPES, keys_of, schema_of
from tap_audit_events.events.stream_names import REPLICATION_KEY, STREAM

_REFRESH: Final = "refresh the schema of the connection"


class SyncMode(StrEnum):
    """How the stream is read."""

    FULL_REFRESH = "full_refresh"
    INCREMENTAL = "incremental"


def discovered_stream(shape: RecordShape) -> dict[str, Any]:
    """The stream as ``discover`` describes it.

    A full refresh ignores the state, so it is not resumable: each attempt reads everything again,
    and Airbyte must remove what the previous attempt has written. Incremental syncs always resume.
    """
    schema = schema_of(shape)
    time = schema["properties"][REPLICATION_KEY] | {"airbyte_type": "timestamp_with_timezone"}
    return {
        "name": STREAM,
        "json_schema": schema
        | {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "additionalProperties": True,
            "properties": schema["properties"] | {REPLICATION_KEY: time},
        },
        "supported_sync_modes": list(SyncMode),
        "source_defined_cursor": True,
        "default_cursor_field": [REPLICATION_KEY],
        "source_defined_primary_key": [[key] for key in keys_of(shape)],
        "is_resumable": False,
    }


def sync_mode_of(catalog: Any, shape: RecordShape) -> SyncMode | None:
    """The sync mode of the stream in a configured catalog; None if the catalog has no stream.

    Raises:
        SettingsError: it is not a configured catalog, or does not fit the source.
    """
    match catalog:
        case {"streams": [*streams]}:
            modes = [_sync_mode(stream, shape) for stream in streams]
        case _:
            raise _not_a_catalog()
    if len(modes) > 1:
        raise malformed("catalog", f"has the stream {STREAM} more than once: {_REFRESH}")
    return modes[0] if modes else None


def _sync_mode(configured: Any, shape: RecordShape) -> SyncMode:
    match configured:
        case {"stream": {"name": str(name)} as stream, "sync_mode": mode}:
            _check_stream(name, stream.get("namespace"))
        case _:
            raise _not_a_catalog()
    if mode not in list(SyncMode):
        raise malformed(
            "catalog",
            f"asks for the sync mode {sanitize(mode, 60)} of {STREAM}:"
            f" it must be {' or '.join(SyncMode)}",
        )
    cursor = configured.get("cursor_field") or [REPLICATION_KEY]
    if mode == SyncMode.INCREMENTAL and cursor != [REPLICATION_KEY]:
        raise malformed(
            "catalog",
            f"asks for the cursor field {sanitize(cursor, 60)} of {STREAM}:"
            f" it must be {REPLICATION_KEY}",
        )
    _check_primary_key(configured.get("primary_key"), shape)
    return SyncMode(mode)


def _check_primary_key(given: Any, shape: RecordShape) -> None:
    """Check that the primary key is that of one organization, or of several, as the settings say.

    Otherwise a destination could replace an event of one organization with that of another.
    """
    stale = [[[key] for key in keys] for keys in KEYS_OF_SHAPES if keys != keys_of(shape)]
    if given in stale:
        raise malformed(
            "catalog",
            f"was written for another setting of organizations: the primary key of {STREAM} is"
            f" {' and '.join(keys_of(shape))} now; {_REFRESH}",
        )


def _check_stream(name: str, namespace: object) -> None:
    if name != STREAM or namespace:
        shown = f"{namespace}.{name}" if namespace else name
        raise malformed(
            "catalog",
            f"names the stream {sanitize(shown, 60)}, which does not exist: the source's only"
            f" stream is {STREAM}; {_REFRESH}",
        )


def _not_a_catalog() -> SettingsError:
    return malformed(
        "catalog",
        'must look like {"streams": [{"stream": {"name": "audit_events", …}, "sync_mode": …}]}',
    )
