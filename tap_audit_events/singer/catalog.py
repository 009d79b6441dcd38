"""The fields that a catalog or stream maps leave out, and the removal of those from a record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.events.schema import COVERAGE_SCHEMA
from tap_audit_events.events.stream_names import COVERAGE_STREAM, STREAM

Path: TypeAlias = tuple[str, ...]
"""The names that lead from the record to a field."""

_PROPERTIES = "properties"
_REMOVED = (None, "__NULL__")
_OPTIONS = ("__source__", "__alias__", "__filter__", "__key_properties__", "__else__")
_HAS_NO_SUCH_FIELD = (
    f"of {STREAM} has no such field: check the name, and its place. Nothing is left out unless an"
    " event has a field of this name there"
)


def deselected(mask: Mapping[tuple[str, ...], bool]) -> list[Path]:
    """The fields that the SDK's mask of a selected stream leaves out, with everything inside them.

    Breadcrumbs into the items of a list are ignored, as the SDK ignores them.
    """
    return [
        breadcrumb[1::2]
        for breadcrumb, is_selected in mask.items()
        if breadcrumb
        and not is_selected
        and breadcrumb[::2] == len(breadcrumb[1::2]) * (_PROPERTIES,)
    ]


def leave_out(record: dict[str, Any], paths: Iterable[Path]) -> None:
    """Remove fields from a record.

    The SDK does the same by walking through each whole record, which takes longer than everything
    else that is done with it.
    """
    for *parents, name in paths:
        inside: Any = record
        for parent in parents:
            inside = inside.get(parent)
            if not isinstance(inside, dict):
                break
        else:
            inside.pop(name, None)


def removal_warnings(
    schema: Mapping[str, Any], mask: Mapping[tuple[str, ...], bool], stream_maps: object
) -> Iterator[str]:
    """A warning if a catalog's mask or stream maps of the events remove what is no known field.

    A field whose name is mistyped would be written although somebody meant to leave it out. It is
    no error, as events may have fields that the schema does not have.
    """
    unknown = [
        json.dumps(breadcrumb)
        for breadcrumb, is_selected in mask.items()
        if not is_selected and not _is_known(breadcrumb, schema)
    ]
    if unknown:
        yield f"The catalog deselects {_listed(unknown)}, but the schema {_HAS_NO_SUCH_FIELD}"
    known = schema[_PROPERTIES].keys() | COVERAGE_SCHEMA[_PROPERTIES].keys()  # of patterns too
    removed = [
        name
        for stream, each in (stream_maps if isinstance(stream_maps, dict) else {}).items()
        if isinstance(each, dict) and fnmatchcase(STREAM, str(each.get("__source__", stream)))
        for name, expression in each.items()
        if expression in _REMOVED and name not in known and not name.startswith("__")
    ]
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


def stream_map_problems(stream_maps: object) -> list[str]:
    """What in ``stream_maps`` would silently have no effect, or bring no record."""
    if not isinstance(stream_maps, dict):
        return []
    maps = {name: each for name, each in stream_maps.items() if isinstance(each, dict)}
    sources = {
        name: maps.get(name, {}).get("__source__", name)
        for name in stream_maps
        if not name.startswith("__")
    }
    problems = [
        f"stream_maps names the stream {sanitize(source, 60)}, which does not exist: the tap's"
        f" streams are {STREAM} and {COVERAGE_STREAM}"
        for source in sources.values()
        if not any(fnmatchcase(stream, str(source)) for stream in (STREAM, COVERAGE_STREAM))
    ]
    places = {f"stream_maps.{sanitize(name, 60)}": each for name, each in maps.items()}
    problems += [
        f"{place} has an __else__ that is not null"
        for place, each in [("stream_maps", stream_maps), *places.items()]
        if each.get("__else__") not in _REMOVED
    ]
    problems += [
        f"{place} has the option {sanitize(name, 60)}, which does not exist: the options are"
        f" {', '.join(_OPTIONS)}"
        for place, each in places.items()
        for name in each
        if name.startswith("__") and name.endswith("__") and name not in _OPTIONS
    ]
    problems += [
        f"{place} has __source__ and __alias__, which would be a column: the name of a copy is its"
        " key in stream_maps"
        for place, each in places.items()
        if "__source__" in each and "__alias__" in each
    ]
    matching = [name for name in sources if fnmatchcase(STREAM, name)]
    if len(matching) > 1 and matching[-1] != STREAM:
        earlier, later = (sanitize(name, 60) for name in matching[-2:])
        problems.append(
            f"stream_maps.{later} replaces stream_maps.{earlier}, as only the last map of a stream"
            f" counts: name that map {STREAM}, and put it last"
        )
    is_removed = any(stream_maps[name] in _REMOVED for name in matching if name not in maps)
    is_left_out = not matching and stream_maps.get("__else__", "kept") in _REMOVED
    is_copied = any(name != source and source == STREAM for name, source in sources.items())
    if (is_removed or is_left_out) and not is_copied:
        problems.append(f"stream_maps removes {STREAM}: no record would be written")
    return problems
