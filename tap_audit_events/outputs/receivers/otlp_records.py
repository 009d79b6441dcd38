"""Converts events to log records of OTLP, the protocol of OpenTelemetry.

The messages and the numbers of their fields are those of ``opentelemetry-proto`` 1.10.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.config.names import PACKAGE
from tap_audit_events.events.exact_json import encode, read_record
from tap_audit_events.events.instants import Instant
from tap_audit_events.outputs.receivers.protobuf import CHUNK, FIXED64, VARINT, chunk, tag, varint

UID: Final = "log.record.uid"
ATTRIBUTES: Final = {
    "actor.id": "user.id",
    "actor.name": "user.full_name",
    "actor.email": "user.email",
    "context.sessionId": "session.id",
    "context.requestIp": "client.address",
}
"""The fields that have a name in OpenTelemetry's semantic conventions, and that name."""

SERVICE_NAME: Final = "audit-events"

MAX_LEVELS: Final = 24
"""Objects and lists inside each other in a body. Each is up to three messages of protobuf, of which
most receivers read at most 100 inside each other, else they refuse the whole batch."""

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - as instants, in UTC without an offset
_SECOND: Final = timedelta(seconds=1)
_INT64: Final = 1 << 63
_UINT64: Final = 1 << 64

# AnyValue, KeyValue; the members of KeyValueList and ArrayValue.
_STRING, _BOOL, _INT = tag(1, CHUNK), tag(2, VARINT), tag(3, VARINT)
_DOUBLE, _ARRAY, _KVLIST = tag(4, FIXED64), tag(5, CHUNK), tag(6, CHUNK)
_KEY, _VALUE, _MEMBER = tag(1, CHUNK), tag(2, CHUNK), tag(1, CHUNK)
# LogRecord
_TIME, _OBSERVED, _BODY = tag(1, FIXED64), tag(11, FIXED64), tag(5, CHUNK)
_ATTRIBUTE, _EVENT_NAME = tag(6, CHUNK), tag(12, CHUNK)
# ExportLogsServiceRequest, ResourceLogs, ScopeLogs
_RESOURCE_LOGS, _RESOURCE, _SCOPE_LOGS = tag(1, CHUNK), tag(1, CHUNK), tag(2, CHUNK)
_SCOPE, _LOG_RECORD = tag(1, CHUNK), tag(2, CHUNK)
# Resource, InstrumentationScope
_OF_RESOURCE, _NAME, _VERSION = tag(1, CHUNK), tag(1, CHUNK), tag(2, CHUNK)

_fixed64: Final = struct.Struct("<Q").pack
_double: Final = struct.Struct("<d").pack


def log_records(page: EventPage, texts: Sequence[bytes], observed: int) -> list[bytes]:
    """Each event of a page as a field of ``ScopeLogs``.

    Args:
        page: the events.
        texts: the JSON texts of the bodies, which may have another form than the events.
        observed: when they were read, in nanoseconds since 1970.
    """
    events = list(map(read_record, page.raw))
    bodies = events if texts is page.raw else map(read_record, texts)
    return [
        chunk(_LOG_RECORD, _log_record(event, body, instant, observed, page.organization_id))
        for event, body, instant in zip(events, bodies, page.instants, strict=True)
    ]


def export_request(records: Iterable[bytes]) -> bytes:
    """The ``ExportLogsServiceRequest`` of records that `log_records` returned."""
    resource = chunk(_OF_RESOURCE, _key_value("service.name", SERVICE_NAME, MAX_LEVELS))
    scope_logs = b"".join([chunk(_SCOPE, _scope()), *records])
    return chunk(_RESOURCE_LOGS, chunk(_RESOURCE, resource) + chunk(_SCOPE_LOGS, scope_logs))


def any_value(value: Any, levels: int = MAX_LEVELS) -> bytes:
    """A JSON value, as `read_record` returned it, as an ``AnyValue``.

    An integer beyond 64 bits, a fraction that a double does not hold exactly, and what is nested
    too deeply become their JSON text.

    Args:
        value: the value.
        levels: how many objects and lists may be inside each other.
    """
    kind = type(value)
    if kind is str:
        return chunk(_STRING, value.encode())
    if kind is dict and levels:
        inner = levels - 1
        members = [chunk(_MEMBER, _key_value(name, value[name], inner)) for name in value]
        return chunk(_KVLIST, b"".join(members))
    if kind is list and levels:
        inner = levels - 1
        return chunk(_ARRAY, b"".join([chunk(_MEMBER, any_value(each, inner)) for each in value]))
    return _scalar(value)


def _scalar(value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, bool):
        return _BOOL + varint(value)
    if isinstance(value, int) and -_INT64 <= value < _INT64:
        return _INT + varint(value % _UINT64)
    if isinstance(value, Decimal) and Decimal(repr(nearest := float(value))) == value:
        return _DOUBLE + _double(nearest)
    return chunk(_STRING, encode(value))


def unix_nanoseconds(instant: Instant) -> int:
    """The nanoseconds since 1970, rounded down; 0, which means unknown, if OTLP cannot hold them.

    It holds the years 1970 to 2554.
    """
    seconds = (datetime.fromisoformat(instant[:19]) - _EPOCH) // _SECOND
    nanoseconds = seconds * 10**9 + int(instant[20:29].ljust(9, "0"))
    return nanoseconds if 0 <= nanoseconds < _UINT64 else 0


def _log_record(
    event: dict[str, Any], body: object, instant: Instant, observed: int, organization_id: str
) -> bytes:
    parts = [
        _TIME + _fixed64(unix_nanoseconds(instant)),
        _OBSERVED + _fixed64(observed),
        chunk(_BODY, any_value(body)),
        chunk(_ATTRIBUTE, _key_value(UID, f"{organization_id}/{event['id']}", MAX_LEVELS)),
    ]
    parts += [chunk(_ATTRIBUTE, each) for each in _attributes(event)]
    action_type = _field(event, "action", "type")
    if isinstance(action_type, str):
        parts.append(chunk(_EVENT_NAME, action_type.encode()))
    return b"".join(parts)


def _attributes(event: dict[str, Any]) -> Iterator[bytes]:
    for part, name, attribute in _PATHS:
        value = _field(event, part, name)
        if value is not None:
            yield _key_value(attribute, value, MAX_LEVELS)


def _field(event: dict[str, Any], part: str, name: str) -> Any:
    fields = event.get(part)
    return fields.get(name) if type(fields) is dict else None


def _key_value(name: str, value: Any, levels: int) -> bytes:
    return _key(name) + chunk(_VALUE, any_value(value, levels))


@cache
def _scope() -> bytes:
    name = chunk(_NAME, PACKAGE.encode())
    with suppress(PackageNotFoundError):  # run from a source tree that is not installed
        return name + chunk(_VERSION, version(PACKAGE).encode())
    return name


@lru_cache(maxsize=256)
def _key(name: str) -> bytes:
    return chunk(_KEY, name.encode())


_PATHS: Final = [(*path.split("."), attribute) for path, attribute in ATTRIBUTES.items()]
