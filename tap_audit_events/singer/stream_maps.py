"""Finds errors in ``stream_maps`` that the SDK accepts, although they lose or mix records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from singer_sdk.mapper import RemoveRecordTransform, StreamMap

from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.events.exact_json import encode
from tap_audit_events.events.stream_names import COVERAGE_STREAM, STREAM

_REMOVED: Final = (None, "__NULL__")
_OPTIONS: Final = ("__source__", "__alias__", "__filter__", "__key_properties__", "__else__")


def stream_map_problems(stream_maps: object) -> list[str]:
    """Problems of ``stream_maps``: entries that silently have no effect, or leave no record."""
    if not isinstance(stream_maps, dict):
        return []
    maps = {name: each for name, each in stream_maps.items() if isinstance(each, dict)}
    sources = {
        name: maps.get(name, {}).get("__source__", name)
        for name in stream_maps
        if not name.startswith("__")
    }
    return [
        *_unknown_streams(sources.values()),
        *_unusable_options(stream_maps, maps),
        *_lost_maps(stream_maps, sources),
    ]


def removed_fields(stream_maps: object) -> list[str]:
    """The names that ``stream_maps`` removes from records of the events."""
    return [
        name
        for stream, each in (stream_maps if isinstance(stream_maps, dict) else {}).items()
        if isinstance(each, dict) and fnmatchcase(STREAM, str(each.get("__source__", stream)))
        for name, expression in each.items()
        if expression in _REMOVED and not name.startswith("__")
    ]


def check_schemas(stream_maps: Iterable[StreamMap]) -> None:
    """Check that SCHEMA can be written, with a name of the stream that is text.

    Raises:
        SettingsError: a name is not text.
        Exception: the schema has no JSON form, for example because of a lone surrogate.
    """
    for each in stream_maps:
        encode([each.stream_alias, each.transformed_schema])
        if each.stream_alias != (name := str(each.stream_alias)):  # the SDK evaluates "2024"
            problem = f"stream_maps has an __alias__ that is not a name: {sanitize(name, 60)}"
            raise SettingsError([problem], "AE-STREAM-MAPS")


def check_keys(stream_maps: Iterable[StreamMap]) -> None:
    """Check that each key is a field of the records: flattening may shorten names of fields.

    Raises:
        SettingsError: a key is not.
    """
    for each in stream_maps:
        before, after = (
            schema.get("properties", {}) for schema in (each.raw_schema, each.transformed_schema)
        )
        keys_of_stream = [key for key in each.transformed_key_properties or () if key in before]
        if lost := [key for key in keys_of_stream if key not in after]:
            keys, stream = ", ".join(map(sanitize, lost)), sanitize(each.stream_alias, 60)
            problem = f"flattening_max_key_length shortens the key {keys} of the stream {stream}"
            raise SettingsError([f"{problem}: set it to {max(map(len, lost)) + 1} or more"])


def check_names(stream_maps: Iterable[StreamMap]) -> None:
    """Check that no stream gets each record twice, or the records of two streams.

    Raises:
        SettingsError: a stream does.
    """
    kept = [each for each in stream_maps if not isinstance(each, RemoveRecordTransform)]
    for name, count in Counter(each.stream_alias for each in kept).items():
        if count > 1:
            problem = f"stream_maps writes into the stream {sanitize(name, 60)} more than once"
            hint = "each stream, and each map with __source__, needs a name of its own"
            raise SettingsError([f"{problem}: {hint}"], "AE-STREAM-MAPS")


def _unknown_streams(sources: Iterable[object]) -> Iterator[str]:
    for source in sources:
        if not any(fnmatchcase(stream, str(source)) for stream in (STREAM, COVERAGE_STREAM)):
            yield (
                f"stream_maps names the stream {sanitize(source, 60)}, which does not exist: the"
                f" tap's streams are {STREAM} and {COVERAGE_STREAM}"
            )


def _unusable_options(
    stream_maps: Mapping[str, Any], maps: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Names that the SDK would take for columns, and values that it would ignore."""
    places = {f"stream_maps.{sanitize(name, 60)}": each for name, each in maps.items()}
    for place, each in [("stream_maps", stream_maps), *places.items()]:
        if each.get("__else__") not in _REMOVED:
            yield f"{place} has an __else__ that is not null: set it to null, or remove it"
    for place, each in places.items():
        for name in each:
            if name.startswith("__") and name.endswith("__") and name not in _OPTIONS:
                yield (
                    f"{place} has the option {sanitize(name, 60)}, which does not exist: the"
                    f" options are {', '.join(_OPTIONS)}"
                )
        if "__source__" in each and "__alias__" in each:
            yield (
                f"{place} has __source__ and __alias__, which would be a column: the name of a copy"
                " is its key in stream_maps"
            )


def _lost_maps(stream_maps: Mapping[str, Any], sources: Mapping[str, object]) -> Iterator[str]:
    """Maps of the events that another map replaces, or that leave no record."""
    matching = [name for name in sources if fnmatchcase(STREAM, name)]
    if len(matching) > 1 and matching[-1] != STREAM:
        earlier, later = (sanitize(name, 60) for name in matching[-2:])
        yield (
            f"stream_maps.{later} replaces stream_maps.{earlier}, as only the last map of a stream"
            f" counts: name that map {STREAM}, and put it last"
        )
    is_removed = any(stream_maps[name] in _REMOVED for name in matching)
    is_left_out = not matching and stream_maps.get("__else__", "kept") in _REMOVED
    is_copied = any(name != source and source == STREAM for name, source in sources.items())
    if (is_removed or is_left_out) and not is_copied:
        yield f"stream_maps removes {STREAM}: no record would be written"
