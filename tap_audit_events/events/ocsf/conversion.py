"""Events as OCSF: API Activity of the Open Cybersecurity Schema Framework, as JSON.

Each field of an event that has a place in OCSF is there. All others are in `unmapped`, and the
event's own text is in `raw_data`, so that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from tap_audit_events.events.exact_json import JsonText, decode_with, encode
from tap_audit_events.events.instants import EARLIEST, Instant, microseconds
from tap_audit_events.events.known_fields import Fields
from tap_audit_events.events.ocsf.fields import Actor, Context, Event, Text, read_known
from tap_audit_events.events.ocsf.mapping import ACTIVITIES, OTHER, UNKNOWN, OcsfMapping

VERSION: Final = "1.8.0"

_CATEGORY_UID, _CATEGORY = 6, "Application Activity"
_CLASS_UID, _CLASS = 6003, "API Activity"
_UNKNOWN: Final = ACTIVITIES[UNKNOWN]
_USER_TYPES: Final = {"user": (1, "User"), "system": (3, "System"), "unknown": (UNKNOWN, _UNKNOWN)}
_TARGET, _RELATED = 1, 4  # the roles of resources

_MAX_IP_LENGTH: Final = 40
_EPOCH_MICROSECONDS: Final = microseconds(Instant("1970-01-01T00:00:00")) - microseconds(EARLIEST)

# Objects of OCSF


class _Data(msgspec.Struct, gc=False):
    """What OCSF has no attribute of a resource for."""

    subtype: Text
    email: Text


class _Object(msgspec.Struct, gc=False):
    """A user, session, request, endpoint or resource: what is unset is left out."""

    uid: Text = UNSET
    name: Text = UNSET
    type: Text = UNSET
    type_id: int | UnsetType = UNSET
    role_id: int | UnsetType = UNSET
    email_addr: Text = UNSET
    ip: Text = UNSET
    data: _Data | UnsetType = UNSET


class _OcsfActor(msgspec.Struct, gc=False):
    user: _Object
    session: _Object | UnsetType


class _Api(msgspec.Struct, gc=False):
    operation: str
    request: _Object | UnsetType


class _Metadata(msgspec.Struct, gc=False):
    uid: str
    original_event_uid: str
    original_time: str
    tenant_uid: str
    product: dict[str, str]
    log_name: str = "audit_events"
    version: str = VERSION


class _OcsfEvent(msgspec.Struct, gc=False):
    """What differs between events; `_HEADS` has the rest."""

    activity_name: str
    time: int
    metadata: _Metadata
    actor: _OcsfActor
    api: _Api
    src_endpoint: _Object
    http_request: _Object | UnsetType
    resources: list[_Object] | UnsetType
    unmapped: Fields | UnsetType
    raw_data: str


_HEADS: Final = {
    activity: encode(
        {
            "category_uid": _CATEGORY_UID,
            "category_name": _CATEGORY,
            "class_uid": _CLASS_UID,
            "class_name": _CLASS,
            "type_uid": _CLASS_UID * 100 + activity,
            "type_name": f"{_CLASS}: {caption}",
            "severity_id": UNKNOWN,
            "severity": _UNKNOWN,
            "activity_id": activity,
        }
    ).replace(b"}", b",")
    for activity, caption in ACTIVITIES.items()
}
"""The start of an event of each activity."""

_NOWHERE: Final = _Object(name=_UNKNOWN, type_id=UNKNOWN)


def to_ocsf(
    texts: Sequence[JsonText],
    instants: Sequence[Instant],
    organization_id: str,
    mapping: OcsfMapping | None = None,
) -> list[bytes]:
    """The OCSF event of each event of an organization, as JSON in UTF-8 on one line.

    Raises:
        ContractError: an event is nested too deeply to be read.
    """
    mapping = mapping or OcsfMapping()
    product = {"name": mapping.product_name, "vendor_name": mapping.vendor_name}
    activities = mapping.activity_ids
    converted = []
    for text, instant in zip(texts, instants, strict=True):
        event, unmapped = decode_with(read_known, text)
        action_type = event.action.type
        if action_type is UNSET:
            activity, action_type = UNKNOWN, _UNKNOWN
        else:
            activity = activities.get(action_type, OTHER)
        request = _object_with(event.context.request_id)
        rest = _OcsfEvent(
            action_type if activity == OTHER else ACTIVITIES[activity],
            (microseconds(instant) - _EPOCH_MICROSECONDS) // 1000,
            _Metadata(event.id, event.id, event.occurred_at, organization_id, product),
            _OcsfActor(_user_of(event.actor), _object_with(event.context.session_id)),
            _Api(action_type, request),
            _endpoint_of(event.context, unmapped),
            request,
            _resources_of(event, unmapped) or UNSET,
            _with_unmapped(event, organization_id, unmapped),
            str(memoryview(text), "utf-8"),
        )
        converted.append(_HEADS[activity] + encode(rest)[1:])
    return converted


def _object_with(uid: Text) -> _Object | UnsetType:
    return UNSET if uid is UNSET else _Object(uid)


def _user_of(actor: Actor) -> _Object:
    user = _Object(actor.id, actor.name, email_addr=actor.email)
    if actor.type is not UNSET:
        user.type_id, user.type = _USER_TYPES.get(actor.type, (OTHER, actor.type))
    if actor.id is actor.name is UNSET:
        user.name = _UNKNOWN
    return user


def _endpoint_of(context: Context, unmapped: Fields) -> _Object:
    if context.request_ip is UNSET:
        return _NOWHERE
    if not _is_ip(context.request_ip):
        _keep(unmapped, "context", "requestIp", context.request_ip)
        return _NOWHERE
    return _Object(ip=context.request_ip)


@lru_cache(maxsize=10_000)
def _is_ip(text: str) -> bool:
    """Whether it is an IP address; one with a zone, as ``fe80::1%eth0``, is refused by readers."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return len(text) <= _MAX_IP_LENGTH and "%" not in text


def _resources_of(event: Event, unmapped: Fields) -> list[_Object]:
    """The entity, and the workspace and the channel in which the action took place."""
    resources, entity, scope = [], event.entity, event.scope
    if not entity.id is entity.name is UNSET:
        has_data = not entity.subtype is entity.email is UNSET
        data = _Data(entity.subtype, entity.email) if has_data else UNSET
        resources.append(_Object(entity.id, entity.name, entity.type, role_id=_TARGET, data=data))
    else:
        for name in ("type", "subtype", "email"):
            if (value := getattr(entity, name)) is not UNSET:
                _keep(unmapped, "entity", name, value)
    if not scope.workspace_id is scope.workspace_name is UNSET:
        resources.append(
            _Object(scope.workspace_id, scope.workspace_name, "workspace", role_id=_RELATED)
        )
    if scope.channel_id is not UNSET:
        resources.append(_Object(scope.channel_id, type="channel", role_id=_RELATED))
    return resources


def _with_unmapped(event: Event, organization_id: str, unmapped: Fields) -> Fields | UnsetType:
    """All that has no place in OCSF."""
    if event.action.details is not UNSET:
        _keep(unmapped, "action", "details", event.action.details)
    if event.scope.organization_id not in (organization_id, UNSET):
        _keep(unmapped, "scope", "organizationId", event.scope.organization_id)
    return unmapped or UNSET


def _keep(unmapped: Fields, part: str, name: str, value: Any) -> None:
    unmapped.setdefault(part, {})[name] = value
