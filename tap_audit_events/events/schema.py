"""The schema of the stream: AuditEvent as JSON Schema (interface.md, section 2)."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from tap_audit_events.events.record_shape import RAW_EVENT, RecordShape
from tap_audit_events.events.stream_names import ORGANIZATION_KEY, PRIMARY_KEY

_Property: TypeAlias = tuple[str, dict[str, Any]]


def _text(name: str, description: str) -> _Property:
    return name, {"type": ["string", "null"], "description": description}


def _group(name: str, description: str, *properties: _Property) -> _Property:
    return name, {
        "type": ["object", "null"],
        "properties": dict(properties),
        "additionalProperties": True,
        "description": description,
    }


_ACTION = _group(
    "action",
    "The action performed.",
    _text(
        "type",
        "Identifier of the action, for example workspace_create. New values appear over time.",
    ),
    (
        "details",
        {
            "type": ["object", "null"],
            "description": "Metadata of the action. Its fields depend on the type of the action.",
        },
    ),
)
_ACTOR = _group(
    "actor",
    "Who performed the action.",
    _text("type", "Kind of the actor: user, anonymous, system or unknown."),
    _text("id", "Identifier of the actor."),
    _text("name", "Display name of the actor."),
    _text("email", "E-mail address of the actor."),
)
_CONTEXT = _group(
    "context",
    "The request that caused the event.",
    _text("requestId", "Identifier of the request that caused the event."),
    _text("sessionId", "Identifier of the session."),
    _text("requestIp", "IP address that the request came from."),
)
_SCOPE = _group(
    "scope",
    "Where the action took place.",
    _text("organizationId", "Organization that the event belongs to."),
    _text("workspaceId", "Workspace, if the event is in a workspace."),
    _text("workspaceName", "Name of that workspace."),
    _text("channelId", "Channel, if the event is in a channel."),
)
_ENTITY = _group(
    "entity",
    "The entity that the action concerned.",
    _text("type", "Kind of the entity: channel, workspace, organization or user."),
    _text("subtype", "Subtype of the entity."),
    _text("id", "Identifier of the entity."),
    _text("name", "Name of the entity."),
    _text("email", "E-mail address of the entity, for a user."),
)

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
        **dict([_ACTION, _ACTOR, _CONTEXT, _SCOPE, _ENTITY]),
    },
    "required": ["id", "occurredAt"],
    "$schema": "https://json-schema.org/draft/2020-12/schema",
}
"""JSON Schema of the stream.

Every common loader accepts it: it has only strings and objects, requires only the two keys, and has
no ``enum``, ``$ref`` or ``anyOf``. Fields that are not in it are delivered too.
"""

_DETAILS_AS_TEXT: Final[dict[str, Any]] = {
    "type": ["string", "null"],
    "description": "Metadata of the action, as JSON text. Its fields depend on the type of the"
    " action.",
}
_RAW_EVENT_SCHEMA: Final[dict[str, Any]] = {
    "type": ["string", "null"],
    "description": "The whole event as JSON text, with every field that the service sent.",
}
_ORGANIZATION_ID_SCHEMA: Final[dict[str, Any]] = {
    "type": ["string", "null"],
    "description": "UUID of the organization from which the event was read.",
}
_ADDED: Final = frozenset({RAW_EVENT, ORGANIZATION_KEY})


def schema_of(shape: RecordShape, base: dict[str, Any] = SCHEMA) -> dict[str, Any]:
    """The schema of records of a shape.

    What the shape does not determine is kept from `base`, a schema of the stream, perhaps from a
    catalog that was written for another shape.
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
"""The keys of records of one organization, and of several."""


def keys_of(shape: RecordShape) -> tuple[str, ...]:
    """The fields that tell records of a shape apart."""
    return KEYS_OF_SHAPES[shape.organization_id is not None]
