"""The schema of the stream: AuditEvent as JSON Schema (interface.md, section 2)."""

from __future__ import annotations

from typing import Any

from singer_sdk import typing as th


def _text(name: str, description: str) -> th.Property[Any]:
    return th.Property(name, th.StringType, description=description)


def _group(name: str, description: str, *properties: th.Property[Any]) -> th.Property[Any]:
    return th.Property(name, th.ObjectType(*properties), description=description)


_ACTION = _group(
    "action",
    "The action performed.",
    _text(
        "type",
        "Identifier of the action, for example workspace_create. New values appear over time.",
    ),
    th.Property(
        "details",
        th.CustomType({"type": ["object", "null"]}),
        description="Metadata of the action. Its fields depend on the type of the action.",
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
    _text("requestId", "Identifier of that request."),
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

SCHEMA: dict[str, Any] = th.PropertiesList(
    th.Property(
        "id",
        th.CustomType({"type": "string"}),
        required=True,
        description="Identifier of the event, unique in the organization.",
    ),
    th.Property(
        "occurredAt",
        th.CustomType({"type": "string", "format": "date-time"}),
        required=True,
        description="Time of the event: RFC 3339 in UTC, with every digit that the service sent.",
    ),
    _ACTION,
    _ACTOR,
    _CONTEXT,
    _SCOPE,
    _ENTITY,
).to_dict()
"""JSON Schema of the stream.

Every common loader accepts it: it has only strings and objects, requires only the two keys, and has
no ``enum``, ``$ref`` or ``anyOf``. Fields that are not in it are delivered too.
"""
