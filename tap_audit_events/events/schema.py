"""The schemas of the streams: AuditEvent (interface.md, section 2), and coverage records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from tap_audit_events.events.record_shape import RAW_EVENT, RecordShape
from tap_audit_events.events.stream_names import ORGANIZATION_KEY, PRIMARY_KEY

_Schema: TypeAlias = dict[str, Any]


def _nullable(kind: str, description: str, **more: Any) -> _Schema:
    return {"type": [kind, "null"], **more, "description": description}


def _text(description: str) -> _Schema:
    return _nullable("string", description)


def _time(description: str) -> _Schema:
    return _nullable("string", description, format="date-time")


def _group(description: str, **properties: str | _Schema) -> _Schema:
    """The schema of an object; a property given only by its description is a string."""
    each = {
        name: _text(given) if isinstance(given, str) else given
        for name, given in properties.items()
    }
    return _nullable("object", description, properties=each, additionalProperties=True)


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "id": {
            "type": "string",
            "description": "Identifier of the event, unique in the organization.",
        },
        "occurredAt": {
            "type": "string",
            "format": "date-time",
            "description": "Time of the event: RFC 3339 in UTC, with every digit that the service"
            " sent.",
        },
        "action": _group(
            "The action performed.",
            type="Identifier of the action, for example workspace_create. New values appear over"
            " time.",
            details=_nullable(
                "object", "Metadata of the action. Its fields depend on the type of the action."
            ),
        ),
        "actor": _group(
            "Who performed the action.",
            type="Kind of the actor: user, anonymous, system or unknown.",
            id="Identifier of the actor.",
            name="Display name of the actor.",
            email="E-mail address of the actor.",
        ),
        "context": _group(
            "The request that caused the event.",
            requestId="Identifier of the request that caused the event.",
            sessionId="Identifier of the session.",
            requestIp="IP address that the request came from.",
        ),
        "scope": _group(
            "Where the action took place.",
            organizationId="Organization that the event belongs to.",
            workspaceId="Workspace, if the event is in a workspace.",
            workspaceName="Name of that workspace.",
            channelId="Channel, if the event is in a channel.",
        ),
        "entity": _group(
            "The entity that the action concerned.",
            type="Kind of the entity: channel, workspace, organization or user.",
            subtype="Subtype of the entity.",
            id="Identifier of the entity.",
            name="Name of the entity.",
            email="E-mail address of the entity, for a user.",
        ),
    },
    "required": ["id", "occurredAt"],
    "$schema": "https://json-schema.org/draft/2020-12/schema",
}
"""JSON Schema of the stream.

Every common loader accepts it: it has only strings and objects, requires only the two keys, and has
no ``enum``, ``$ref`` or ``anyOf``. Fields that are not in it are delivered too.
"""

COVERAGE_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "organization_id": _text("UUID of the organization."),
        "covered_from": _time(
            "Start of the covered range, inclusive: covered_until of the record before."
        ),
        "covered_until": _time(
            "End of the covered range, exclusive. Every event in the range that the service showed"
            " at read_at is delivered; of what a failed run had read before, every event that the"
            " service showed to that run."
        ),
        "read_at": _time("When the run began to read the organization, before its first request."),
        "action_types": _nullable(
            "array", "The setting action_types; empty for all events.", items={"type": ["string"]}
        ),
        "exclude_action_types": _nullable(
            "array",
            "The setting exclude_action_types; events of these types are not delivered.",
            items={"type": ["string"]},
        ),
        "events": _nullable("integer", "Events delivered since the record before."),
        "late_events": _nullable("integer", "How many of them are dated before covered_from."),
        "first_event_at": _time("Time of the oldest of them."),
        "last_event_at": _time("Time of the newest of them."),
        "digest": _text(
            "Sum of the SHA-256 of each of them, in hexadecimal digits: see docs/proof.md."
        ),
        "previous_digest": _text("digest of the record before; null in the first record."),
    },
}

_DETAILS_AS_TEXT: Final = _text(
    "Metadata of the action, as JSON text. Its fields depend on the type of the action."
)
_RAW_EVENT_SCHEMA: Final = _text(
    "The whole event as JSON text, with every field that the service sent."
)
_ORGANIZATION_ID_SCHEMA: Final = _text("UUID of the organization from which the event was read.")
_ADDED: Final = frozenset({RAW_EVENT, ORGANIZATION_KEY})


def schema_of(shape: RecordShape, base: dict[str, Any] = SCHEMA) -> dict[str, Any]:
    """The schema of records of a shape.

    Everything that the shape does not determine is taken from `base`, a schema of the stream, which
    may be from a catalog for another shape.
    """
    properties = {name: each for name, each in base["properties"].items() if name not in _ADDED}
    action = properties.get("action", {})
    if "details" in action.get("properties", {}):
        inner = {**action["properties"]}
        if shape.details_as_text:
            inner["details"] = _DETAILS_AS_TEXT
        elif "object" not in inner["details"].get("type", ()):
            inner["details"] = SCHEMA["properties"]["action"]["properties"]["details"]
        properties["action"] = {**action, "properties": inner}
    if shape.has_raw_event:
        properties[RAW_EVENT] = _RAW_EVENT_SCHEMA
    if shape.organization_id is not None:
        properties = {ORGANIZATION_KEY: _ORGANIZATION_ID_SCHEMA, **properties}
    return {**base, "properties": properties}


KEYS_OF_SHAPES: Final = ((PRIMARY_KEY,), (ORGANIZATION_KEY, PRIMARY_KEY))
"""The primary keys of records of one organization, and of several."""


def keys_of(shape: RecordShape) -> tuple[str, ...]:
    """The primary key of records of a shape."""
    return KEYS_OF_SHAPES[shape.organization_id is not None]


def leaves_of(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The fields of a schema, each by the names that lead to it; of an object, those inside it."""
    for name, inner in schema.get("properties", {}).items():
        if inner.get("properties"):
            yield from leaves_of(inner, (*path, name))
        else:
            yield (*path, name)
