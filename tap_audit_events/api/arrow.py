"""Events as Arrow: a column for each field of the interface, and one for everything else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.events.exact_json import JsonText, encode
from tap_audit_events.events.instants import Instant

try:
    import pyarrow as pa
except ImportError:
    raise SettingsError(
        ["pyarrow is not installed: install the package with it, tap-audit-events[arrow]"],
        "AE-EXTRA",
    ) from None

COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "organization_id": (),
    "id": ("id",),
    "occurred_at": (),
    "occurred_at_text": ("occurredAt",),
    "action_type": ("action", "type"),
    "action_details": ("action", "details"),
    "actor_type": ("actor", "type"),
    "actor_id": ("actor", "id"),
    "actor_name": ("actor", "name"),
    "actor_email": ("actor", "email"),
    "context_request_id": ("context", "requestId"),
    "context_session_id": ("context", "sessionId"),
    "context_request_ip": ("context", "requestIp"),
    "scope_organization_id": ("scope", "organizationId"),
    "scope_workspace_id": ("scope", "workspaceId"),
    "scope_workspace_name": ("scope", "workspaceName"),
    "scope_channel_id": ("scope", "channelId"),
    "entity_type": ("entity", "type"),
    "entity_subtype": ("entity", "subtype"),
    "entity_id": ("entity", "id"),
    "entity_name": ("entity", "name"),
    "entity_email": ("entity", "email"),
    "other_fields": (),
}
"""The columns, and which field of the event is in each (interface.md 2)."""

_ORGANIZATION_ID: Final = "organization_id"
_OCCURRED_AT, _DETAILS, _OTHER_FIELDS = "occurred_at", "action_details", "other_fields"
_NOT_NULL: Final = frozenset({_ORGANIZATION_ID, "id", _OCCURRED_AT, "occurred_at_text"})
_TIME: Final = pa.timestamp("us", "UTC")
_MICROSECONDS: Final = len("2026-01-31T00:00:00.123456")
_NULL: Final = b"null"

SCHEMA: Final[pa.Schema] = pa.schema(
    pa.field(
        name,
        _TIME if name == _OCCURRED_AT else pa.string(),
        nullable=name not in _NOT_NULL,
        metadata={"field": ".".join(path)} if path else None,
    )
    for name, path in COLUMNS.items()
)
"""The schema of every record batch. Every text is exact; `occurred_at` is cut to microseconds.

`action_details` is JSON text. `other_fields` is a JSON object of what has no column of its own, or
not the type of its column; null if there is nothing.
"""


class _Action(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    type: str | None = None
    details: msgspec.Raw = msgspec.Raw(_NULL)


class _Actor(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    type: str | None = None
    id: str | None = None
    name: str | None = None
    email: str | None = None


class _Context(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True, rename="camel"):
    request_id: str | None = None
    session_id: str | None = None
    request_ip: str | None = None


class _Scope(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True, rename="camel"):
    organization_id: str | None = None
    workspace_id: str | None = None
    workspace_name: str | None = None
    channel_id: str | None = None


class _Entity(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    type: str | None = None
    subtype: str | None = None
    id: str | None = None
    name: str | None = None
    email: str | None = None


class _Event(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    """An event as interface.md 2 has it, and nothing else."""

    id: str
    occurred_at: str
    action: _Action = _Action()
    actor: _Actor = _Actor()
    context: _Context = _Context()
    scope: _Scope = _Scope()
    entity: _Entity = _Entity()


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_events = msgspec.json.Decoder(list[_Event]).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_PATHS: Final = frozenset(COLUMNS.values())
_PARTS: Final = frozenset(path[0] for path in COLUMNS.values() if len(path) > 1)


def record_batch(
    texts: Sequence[JsonText], instants: Sequence[Instant], organization_id: str
) -> pa.RecordBatch:
    """The record batch of some events of an organization.

    Args:
        texts: the events' JSON texts, as of `Page.texts`.
        instants: their times.
        organization_id: from which organization they were read.
    """
    events, others = _decoded(texts)
    columns = _columns_of(events) | {
        _ORGANIZATION_ID: pa.repeat(organization_id, len(texts)),
        _OCCURRED_AT: [instant[:_MICROSECONDS] for instant in instants],
        _OTHER_FIELDS: others,
    }
    arrays = [pa.array(columns[name], pa.string()) for name in COLUMNS]
    arrays = [
        array.cast(pa.timestamp("us")).cast(_TIME) if field.type == _TIME else array
        for array, field in zip(arrays, SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def reader_of(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
    """A reader of record batches, each of which it takes when it is read."""
    return pa.RecordBatchReader.from_batches(SCHEMA, batches)


def _decoded(texts: Sequence[JsonText]) -> tuple[list[_Event], list[str | None]]:
    """The events, and of each what has no column, as JSON."""
    others: list[str | None] = [None] * len(texts)
    try:
        return _decode_events(b"[%b]" % b",".join(texts)), others  # fastest, and the usual case
    except msgspec.ValidationError:
        pass
    events = []
    for position, text in enumerate(texts):
        try:
            events.append(_decode_event(text))
        except msgspec.ValidationError:
            event, others[position] = _with_other_fields(text)
            events.append(event)
    return events, others


def _columns_of(events: Sequence[_Event]) -> dict[str, Any]:
    """The columns that are fields of the events; a column at a time is fastest."""
    actions = [event.action for event in events]
    actors = [event.actor for event in events]
    contexts = [event.context for event in events]
    scopes = [event.scope for event in events]
    entities = [event.entity for event in events]
    return {
        "id": [event.id for event in events],
        "occurred_at_text": [event.occurred_at for event in events],
        "action_type": [each.type for each in actions],
        "action_details": [_json_or_none(each.details) for each in actions],
        "actor_type": [each.type for each in actors],
        "actor_id": [each.id for each in actors],
        "actor_name": [each.name for each in actors],
        "actor_email": [each.email for each in actors],
        "context_request_id": [each.request_id for each in contexts],
        "context_session_id": [each.session_id for each in contexts],
        "context_request_ip": [each.request_ip for each in contexts],
        "scope_organization_id": [each.organization_id for each in scopes],
        "scope_workspace_id": [each.workspace_id for each in scopes],
        "scope_workspace_name": [each.workspace_name for each in scopes],
        "scope_channel_id": [each.channel_id for each in scopes],
        "entity_type": [each.type for each in entities],
        "entity_subtype": [each.subtype for each in entities],
        "entity_id": [each.id for each in entities],
        "entity_name": [each.name for each in entities],
        "entity_email": [each.email for each in entities],
    }


def _json_or_none(text: msgspec.Raw) -> bytes | None:
    value = bytes(text)
    return None if value == _NULL else value


def _with_other_fields(text: JsonText) -> tuple[_Event, str | None]:
    """An event of which something has no column: the rest of it, and that as JSON."""
    known: dict[str, Any] = {}
    other: dict[str, Any] = {}
    for name, value in _decode_fields(text).items():
        if name not in _PARTS:
            (known if (name,) in _PATHS else other)[name] = value
        elif (fields := _object_or_none(value)) is None:
            _keep(other, name, value)
        else:
            known[name] = {
                inner: each for inner, each in fields.items() if _has_column(name, inner, each)
            }
            if rest := {inner: each for inner, each in fields.items() if inner not in known[name]}:
                other[name] = rest
    return _decode_event(encode(known)), encode(other).decode() if other else None


def _keep(other: dict[str, Any], name: str, value: msgspec.Raw) -> None:
    if bytes(value) != _NULL:
        other[name] = value


def _object_or_none(value: msgspec.Raw) -> dict[str, msgspec.Raw] | None:
    try:
        return _decode_fields(value)
    except msgspec.ValidationError:
        return None


def _has_column(part: str, name: str, value: msgspec.Raw) -> bool:
    """Whether a field of a part of the event has a column, and a value that it can hold."""
    if (part, name) not in _PATHS:
        return False
    return (part, name) == COLUMNS[_DETAILS] or bytes(value).startswith((b'"', _NULL))
