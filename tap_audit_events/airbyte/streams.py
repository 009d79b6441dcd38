"""The stream in the catalog of ``discover``, in a configured catalog and in ``--state``."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

from tap_audit_events.config.input_files import check_serializable, malformed
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.events.schema import KEYS_OF_SHAPES, keys_of, schema_of
from tap_audit_events.events.stream_names import REPLICATION_KEY, STREAM

_REFRESH: Final = "refresh the schema of the connection"
_NOT_A_STATE: Final = (
    "must be a list of Airbyte's state messages of the type STREAM:"
    f' [{{"type": "STREAM", "stream": {{"stream_descriptor": {{"name": "{STREAM}"}},'
    ' "stream_state": {…}}}]'
)


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
            namespace, given_key = stream.get("namespace"), configured.get("primary_key")
        case _:
            raise _not_a_catalog()
    keys = keys_of(shape)
    if name != STREAM or namespace:
        shown = sanitize(f"{namespace}.{name}" if namespace else name, 60)
        problem = (
            f"names the stream {shown}, which does not exist: the source's only stream is {STREAM};"
            f" {_REFRESH}"
        )
    elif mode not in list(SyncMode):
        problem = (
            f"asks for the sync mode {sanitize(mode, 60)} of {STREAM}: it must be"
            f" {' or '.join(SyncMode)}"
        )
    elif given_key in [[[key] for key in each] for each in KEYS_OF_SHAPES if each != keys]:
        # A destination could replace an event of one organization with that of another.
        problem = (
            f"was written for another setting of organizations: the primary key of {STREAM} is"
            f" {' and '.join(keys)} now; {_REFRESH}"
        )
    else:
        return SyncMode(mode)
    raise malformed("catalog", problem)


def _not_a_catalog() -> SettingsError:
    return malformed(
        "catalog",
        'must look like {"streams": [{"stream": {"name": "audit_events", …}, "sync_mode": …}]}',
    )


def stream_state_in(document: Any) -> dict[str, Any]:
    """The state of the stream in the file of ``--state``, empty if there is none.

    Args:
        document: a list of Airbyte's state messages, or one of them; states of other streams are
            ignored.

    Raises:
        SettingsError: it is neither, has a type that this source does not write, or contains values
            that cannot be written as JSON.
    """
    check_serializable("state", document)
    entries = document if isinstance(document, list) else [document] if document else []
    states = list(_states(entries))
    if len(states) > 1:
        raise malformed("state", f"has more than one entry for {STREAM}: give only the last one")
    return states[0] if states else {}


def _states(entries: list[Any]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        match entry:
            case {"type": "GLOBAL" | "LEGACY" as kind}:
                problem = (
                    f"is of the type {kind}, and this source writes the type STREAM: it comes from"
                    " another source. To start over, clear the data of the stream, or run without"
                    " state"
                )
            case {"type": str(kind)} if kind != "STREAM":
                problem = _NOT_A_STATE
            case {"stream": {"stream_descriptor": {"name": str(name)}, **stream}}:
                state = stream.get("stream_state")
                if name != STREAM:
                    continue
                if state is None or isinstance(state, dict):
                    yield state or {}
                    continue
                problem = f"has a stream_state of {STREAM} that is not an object"
            case _:
                problem = _NOT_A_STATE
        raise malformed("state", problem)
