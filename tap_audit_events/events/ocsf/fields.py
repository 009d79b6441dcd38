"""Where each field of an event is in OCSF, and an event with the values that OCSF accepts."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from tap_audit_events.events.exact_json import JsonText, encode
from tap_audit_events.events.known_fields import Fields, split_fields

PLACES: Final = {
    "id": ("metadata.uid", "metadata.original_event_uid"),
    "occurredAt": ("metadata.original_time", "time"),
    "action.type": ("api.operation", "activity_name"),
    "action.details": ("unmapped.action.details",),
    "actor.type": ("actor.user.type", "actor.user.type_id"),
    "actor.id": ("actor.user.uid",),
    "actor.name": ("actor.user.name",),
    "actor.email": ("actor.user.email_addr",),
    "context.requestId": ("http_request.uid", "api.request.uid"),
    "context.sessionId": ("actor.session.uid",),
    "context.requestIp": ("src_endpoint.ip",),
    "scope.organizationId": ("metadata.tenant_uid",),
    "scope.workspaceId": ("resources[workspace].uid",),
    "scope.workspaceName": ("resources[workspace].name",),
    "scope.channelId": ("resources[channel].uid",),
    "entity.type": ("resources[entity].type",),
    "entity.subtype": ("resources[entity].data.subtype",),
    "entity.id": ("resources[entity].uid",),
    "entity.name": ("resources[entity].name",),
    "entity.email": ("resources[entity].data.email",),
}
"""The attributes of OCSF that have each field (interface.md 2); the first one has its exact text.

``resources[entity]`` is the resource with the `role_id` 1, Target. The others have the `role_id` 4,
Related, and the `type` in brackets.
"""

Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)] | UnsetType

_EMAIL: Final = r"\A[a-zA-Z0-9!#$%&'*+-/=?^_`{|}~.]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9-.]+\Z"
"""OCSF's own pattern, but without a line break at the end."""


class _Known(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True, rename="camel"):
    """Fields of interface.md 2, and no others."""


class Action(_Known, frozen=True):
    """The fields of interface.md 2.2."""

    type: Text = UNSET
    details: Raw | UnsetType = UNSET


class Actor(_Known, frozen=True):
    """The fields of interface.md 2.3."""

    type: Text = UNSET
    id: Text = UNSET
    name: Text = UNSET
    email: Annotated[str, msgspec.Meta(pattern=_EMAIL)] | UnsetType = UNSET


class Context(_Known, frozen=True):
    """The fields of interface.md 2.4."""

    request_id: Text = UNSET
    session_id: Text = UNSET
    request_ip: Text = UNSET


class Scope(_Known, frozen=True):
    """The fields of interface.md 2.5."""

    organization_id: Text = UNSET
    workspace_id: Text = UNSET
    workspace_name: Text = UNSET
    channel_id: Text = UNSET


class Entity(_Known, frozen=True):
    """The fields of interface.md 2.6."""

    type: Text = UNSET
    subtype: Text = UNSET
    id: Text = UNSET
    name: Text = UNSET
    email: Text = UNSET


class Event(_Known, frozen=True):
    """An event; each value of its fields is one that OCSF accepts."""

    id: str
    occurred_at: str
    action: Action = Action()
    actor: Actor = Actor()
    context: Context = Context()
    scope: Scope = Scope()
    entity: Entity = Entity()


_decode_event = msgspec.json.Decoder(Event).decode
_PARTS: Final = {
    field.name: field.type for field in msgspec.structs.fields(Event) if not field.required
}
_DECODERS: Final[dict[tuple[str, ...], msgspec.json.Decoder[Any]]] = {
    (*path, field.encode_name): msgspec.json.Decoder(field.type)
    for path, kind in [((), Event), *(((part,), kind) for part, kind in _PARTS.items())]
    for field in msgspec.structs.fields(kind)
}


def read_known(text: JsonText) -> tuple[Event, Fields]:
    """An event, and its fields that OCSF does not accept.

    Raises:
        RecursionError: it is nested too deeply to be read.
    """
    try:
        return _decode_event(text), {}
    except msgspec.ValidationError:
        known, other = split_fields(text, _PARTS, _fits)
        return _decode_event(encode(known)), other


def _fits(path: tuple[str, ...], value: Raw) -> bool:
    """Whether interface.md 2 has a field, and OCSF accepts its value."""
    if path not in _DECODERS:
        return False
    try:
        _DECODERS[path].decode(value)
    except msgspec.ValidationError:
        return False
    return True
