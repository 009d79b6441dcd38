"""Writes missing events into a file, as Singer messages or JSON Lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from tap_audit_events.cli.loaded.batches import Loaded
from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.events.record_shape import RAW_EVENT
from tap_audit_events.events.schema import SCHEMA, leaves_of
from tap_audit_events.events.stream_names import ORGANIZATION_KEY
from tap_audit_events.run.runtime import Runtime

_MAPPING: Final = ("stream_maps", "flattening_enabled")
_ADDED: Final = ((RAW_EVENT,), (ORGANIZATION_KEY,))
_NOT_COMPARED: Final = re.compile(r"[^0-9a-z]")

_Path = tuple[str, ...]


class Repair(NamedTuple):
    """Writes missing events into a file.

    Attributes:
        fields: the fields of the records; several lists if stream maps write several streams.
        write: writes events of an organization, as the service sent them.
    """

    fields: Sequence[Sequence[_Path]]
    write: Callable[[str, Sequence[bytes]], None]


def singer_repair(
    config: Mapping[str, Any],
    settings: Settings,
    catalog: dict[str, Any] | None,
    *,
    runtime: Runtime,
    write: Callable[[bytes], None],
) -> Repair:
    """Writes the messages that the tap would write, with its settings and its catalog.

    Args:
        config: the settings of the tap.
        settings: the same, checked.
        catalog: its catalog, if any.
        runtime: what the tap needs from outside.
        write: writes lines into the file; those of the schema at once.

    Raises:
        SettingsError: they cannot be used.
    """
    from tap_audit_events.singer.repair import TapMessages  # noqa: PLC0415 - imports the SDK

    messages = TapMessages(config, catalog, runtime=runtime, write=write)

    def write_events(organization_id: str, texts: Sequence[bytes]) -> None:
        shape = settings.record_shape
        if shape.organization_id is not None:
            shape = replace(shape, organization_id=organization_id)
        messages.write([shape.apply(text) for text in texts])

    repair = Repair(list(messages.fields()), write_events)
    messages.write_schema()
    return repair


def json_lines_repair(
    config: Mapping[str, Any], *, has_catalog: bool, write: Callable[[bytes], None]
) -> Repair:
    """Writes the events as an export writes them.

    Raises:
        SettingsError: the settings or a catalog would change records of the tap.
    """
    shaping = ["--catalog"] if has_catalog else []
    shaping += [name for name in _MAPPING if config.get(name)]
    if shaping:
        problem = f"--repair-format jsonl writes whole events, without {' and '.join(shaping)}"
        hint = "use the format singer, or leave that out if whole events were loaded"
        raise SettingsError([f"{problem}: {hint}"])
    return Repair(
        [list(leaves_of(SCHEMA))], lambda _, texts: write(b"".join(text + b"\n" for text in texts))
    )


def check_columns(repair: Repair, loaded: Loaded) -> None:
    """Check that the loaded events have the fields that a repair would write.

    Otherwise the tap probably runs with a catalog or stream maps that leave them out.

    Raises:
        SettingsError: they lack fields.
    """
    columns = loaded.columns()
    if columns is None or not repair.fields:
        return
    known = {_compared(each) for each in columns}
    find = _missing if loaded.columns_are_all else _missing_whole
    missing = min((list(find(fields, known)) for fields in repair.fields), key=len)
    if missing:
        names = sanitize(", ".join(missing))
        problem = f"{loaded.name} has no column for {names}, which the file of --repair would have"
        hint = (
            "give the stream_maps of the tap in --config, and the catalog of the tap as --catalog"
        )
        raise SettingsError([f"{problem}: {hint}"])


def _missing(fields: Iterable[_Path], columns: Collection[str]) -> Iterator[str]:
    """The fields without a column: one of an object is also in the column of the object.

    Those that settings add to an event may have been added after the others were loaded.
    """
    for path in fields:
        if path in _ADDED:
            continue
        parents = {_compared("".join(path[:end])) for end in range(1, len(path))}
        whole = _compared("".join(path))
        if parents.isdisjoint(columns) and not any(each.startswith(whole) for each in columns):
            yield ".".join(path)


def _missing_whole(fields: Iterable[_Path], columns: Collection[str]) -> Iterator[str]:
    """The fields of the interface of which nothing is in any column."""
    written = {_compared(path[0]) for path in fields}
    for name in SCHEMA["properties"]:
        begin = _compared(name)
        is_written = any(each.startswith(begin) for each in written)
        if is_written and not any(each.startswith(begin) for each in columns):
            yield name


def _compared(name: str) -> str:
    """A name without what loaders change in it: ``actor__requestId``, ``ACTOR_REQUEST_ID``."""
    return _NOT_COMPARED.sub("", name.lower())
