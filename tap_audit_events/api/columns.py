"""Events as columns: one for each field of the interface, and one for everything else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, Final

import msgspec

from tap_audit_events.events.exact_json import JsonText, decode_with, encode
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.known_fields import split_fields

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

ORGANIZATION_ID, OCCURRED_AT = "organization_id", "occurred_at"
_DETAILS, _OTHER_FIELDS = "action_details", "other_fields"
_MICROSECONDS: Final = len("2026-01-31T00:00:00.123456")
_NULL: Final = b"null"
_NULL_TEXT: Final = msgspec.Raw(_NULL)

_PATHS: Final = tuple(path for path in COLUMNS.values() if path)
_PARTS: Final = tuple(dict.fromkeys(path[0] for path in _PATHS if len(path) > 1))
_KNOWN: Final = frozenset(_PATHS)
_ANY_JSON: Final = COLUMNS[_DETAILS]


def _struct(name: str, fields: Iterable[tuple[str, type] | tuple[str, Any, Any]]) -> type[Any]:
    return msgspec.defstruct(name, fields, frozen=True, gc=False, forbid_unknown_fields=True)


def _part_struct(part: str) -> type[Any]:
    text, any_json = (str | None, None), (msgspec.Raw, msgspec.Raw(_NULL))
    paths = [path for path in _PATHS if path[0] == part]
    return _struct(part, ((path[1], *(any_json if path == _ANY_JSON else text)) for path in paths))


_part_structs: Final = {part: _part_struct(part) for part in _PARTS}
_event_struct: Final = _struct(
    "event",
    [
        *((path[0], str) for path in _PATHS if len(path) == 1),
        *((part, struct, struct()) for part, struct in _part_structs.items()),
    ],
)
"""An event with the fields of interface.md 2, and no others."""

_decode_event: Any = msgspec.json.Decoder(_event_struct).decode
_values_of: Final = attrgetter(*map(".".join, _PATHS))


def columns_of(
    texts: Sequence[JsonText], instants: Sequence[Instant], organization_id: str
) -> dict[str, Sequence[str | None]]:
    """The values of some events of an organization, in the order of `COLUMNS`.

    Every text is exact; `occurred_at` is cut to microseconds, without ``Z``. `action_details` is
    JSON text. `other_fields` is a JSON object of all that has no column, or does not fit the type
    of its column; None if there is nothing.

    Raises:
        ContractError: an event is nested too deeply to be read.
    """
    others: list[str | None] = [None] * len(texts)
    try:
        rows = [_values_of(_decode_event(text)) for text in texts]
    except (msgspec.ValidationError, RecursionError):  # of some event
        rows = []
        for position, text in enumerate(texts):
            event, others[position] = decode_with(_event_of, text)
            rows.append(_values_of(event))
    names = (name for name, path in COLUMNS.items() if path)
    columns: dict[str, Any] = dict(
        zip(names, zip(*rows, strict=True) if rows else repeat(()), strict=False)
    )
    details = map(bytes, columns[_DETAILS])
    columns |= {
        ORGANIZATION_ID: [organization_id] * len(texts),
        OCCURRED_AT: [instant[:_MICROSECONDS] for instant in instants],
        _DETAILS: [None if each == _NULL else each.decode() for each in details],
        _OTHER_FIELDS: others,
    }
    return {name: columns[name] for name in COLUMNS}


def _event_of(text: JsonText) -> tuple[Any, str | None]:
    """An event, and its fields without a column as JSON."""
    try:
        return _decode_event(text), None
    except msgspec.ValidationError:
        return _with_other_fields(text)


def _with_other_fields(text: JsonText) -> tuple[Any, str | None]:
    """Split an event into the fields that have a column, and the others as JSON."""
    known, other = split_fields(text, _PARTS, _has_column)
    other = {name: other[name] for name in other if name not in _PARTS or other[name] != _NULL_TEXT}
    return _decode_event(encode(known)), encode(other).decode() if other else None


def _has_column(path: tuple[str, ...], value: msgspec.Raw) -> bool:
    """Whether a field of the event has a column, and a value that it can hold."""
    return path == _ANY_JSON or (path in _KNOWN and bytes(value).startswith((b'"', _NULL)))
