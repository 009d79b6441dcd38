"""Warnings about fields that a catalog or stream maps leave out, or seem to."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.events.record_shape import RAW_EVENT, RecordShape
from tap_audit_events.events.schema import COVERAGE_SCHEMA
from tap_audit_events.events.stream_names import STREAM
from tap_audit_events.singer.stream_maps import removed_fields

_PROPERTIES = "properties"
_HAS_NO_SUCH_FIELD = (
    f"of {STREAM} has no such field: check the name, and its place. Nothing is left out unless an"
    " event has a field of this name there"
)


def removal_warnings(
    schema: Mapping[str, Any], mask: Mapping[tuple[str, ...], bool], stream_maps: object
) -> Iterator[str]:
    """Warnings for fields that a catalog or stream maps leave out, but the schema does not have.

    A field whose name is mistyped would be written although somebody meant to leave it out. It is
    not an error, as events may have fields that the schema does not have.
    """
    unknown = [
        json.dumps(breadcrumb)
        for breadcrumb, is_selected in mask.items()
        if not is_selected and not _is_known(breadcrumb, schema)
    ]
    if unknown:
        yield f"The catalog deselects {_listed(unknown)}, but the schema {_HAS_NO_SUCH_FIELD}"
    known = schema[_PROPERTIES].keys() | COVERAGE_SCHEMA[_PROPERTIES].keys()  # for patterns
    removed = [name for name in removed_fields(stream_maps) if name not in known]
    if removed:
        yield f"stream_maps removes {_listed(removed)}, but the schema {_HAS_NO_SUCH_FIELD}"


def _is_known(breadcrumb: tuple[str, ...], schema: Mapping[str, Any]) -> bool:
    """Whether a breadcrumb leads to a field, or into an object of which no fields are known."""
    keywords, names = breadcrumb[::2], breadcrumb[1::2]
    if keywords != len(names) * (_PROPERTIES,):
        return False
    inside = schema
    for name in names:
        if _PROPERTIES not in inside:
            return "object" in inside.get("type", "object")
        if name not in inside[_PROPERTIES]:
            return False
        inside = inside[_PROPERTIES][name]
    return True


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sanitize(name, 120) for name in names)


def raw_event_warnings(
    shape: RecordShape, deselected: Collection[str], *, has_maps: bool
) -> Iterator[str]:
    """Warnings if `raw_event` contains fields that were left out on purpose.

    The catalog may deselect fields, and stream maps may remove or mask them.
    """
    if not shape.has_raw_event or RAW_EVENT in deselected:
        return
    if deselected:
        yield (
            f"raw_event contains the whole event, including the deselected {', '.join(deselected)}:"
            " set raw_event to false, or deselect raw_event, if they must not leave the service"
        )
    if has_maps:
        yield (
            "raw_event contains the event as it was before stream_maps: if they mask or remove"
            " fields, remove raw_event there too"
        )
