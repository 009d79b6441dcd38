"""Events in files: JSON Lines, compressed or not, Parquet, and folders of them."""

from __future__ import annotations

import glob
import gzip
import os
import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast
from uuid import UUID

import msgspec

from tap_audit_events.cli.loaded.batches import (
    BATCH_ROWS,
    Loaded,
    Query,
    Range,
    batch_of,
    unreadable,
)
from tap_audit_events.cli.loaded.columns import Columns, find_columns, text_of
from tap_audit_events.cli.loaded.database import TemporaryDatabase
from tap_audit_events.cli.loaded.times import time_as_text
from tap_audit_events.errors.exceptions import OutputError, sanitize
from tap_audit_events.events.stream_names import COVERAGE_STREAM
from tap_audit_events.outputs.durable import exists

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES: Final = (".jsonl", ".jsonl.gz", ".parquet")
_MILLISECONDS: Final = re.compile("TIMESTAMP_MILLIS|MilliSeconds")
_FIRST_LINES: Final = 100
"""Lines whose fields are looked at: an event does not have all of them."""


class _Scope(msgspec.Struct, gc=False, rename="camel"):
    organization_id: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct, gc=False):
    id: str
    occurredAt: str  # noqa: N815 - the name of the field
    organization_id: msgspec.Raw = msgspec.Raw(b"null")
    scope: msgspec.Raw = msgspec.Raw(b"{}")


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_names = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_scope = msgspec.json.Decoder(_Scope).decode
_decode_text = msgspec.json.Decoder(str).decode


def loaded_files(path: Path, database: TemporaryDatabase, known: Collection[str] = ()) -> Loaded:
    """The events in a file, or in all files of a folder and its subfolders.

    Args:
        path: the file or folder. In a folder, hidden files and folders, and files of the stream of
            coverage records, are left out.
        database: reads Parquet files.
        known: the organizations in the settings, in lower case.

    Raises:
        OutputError: there is no such file, the folder has none, or one is a pipe or a device, or is
            a Parquet file that cannot be read.
    """
    name = sanitize(path)
    with _errors_of(path):
        if not exists(path):
            raise unreadable(name, "it does not exist")
        files = [path] if path.is_file() else sorted(_files_in(path))
    for file in files:
        if not file.is_file():  # to open a pipe would wait without end
            raise unreadable(sanitize(file), "it is not a file")
        if file.name.endswith((".csv", ".csv.gz")):
            raise unreadable(sanitize(file), "CSV is not read here, but JSON Lines and Parquet are")
    if not files:
        raise unreadable(name, f"it has no files that end with {', '.join(SUFFIXES)}")
    types = {file: _types(file, database) for file in files if file.suffix == ".parquet"}
    tables = {file: find_columns(each, sanitize(file)) for file, each in types.items()}

    def batches(within: Range) -> Iterator[pa.Table | Query]:
        del within
        for file in files:
            if file in tables:
                yield _query(file, tables[file])
            else:
                yield from _in_lines(file, known)

    def columns() -> Collection[str] | None:
        found = [types[file].keys() if file in types else _names_in(file) for file in files]
        has_events = [{*names} for names in found if names]
        return set.intersection(*has_events) if has_events else None

    return Loaded(
        name,
        max((each.time.unit_nanoseconds for each in tables.values()), default=0),
        batches,
        columns,
        # JSON Lines are checked as they are read.
        has_organizations=all(each.organization is not None for each in tables.values()),
        guesses_organizations=len(tables) < len(files),
        columns_are_all=len(tables) == len(files),
    )


def _files_in(folder: Path) -> Iterator[Path]:
    """The files to read, including those in folders that are links.

    Raises:
        OSError: a folder cannot be read.
    """
    seen: set[str] = set()
    for parent, folders, names in os.walk(folder, onerror=_raise, followlinks=True):
        place = os.path.realpath(parent)
        if place in seen:  # a link to a folder that has been read, or that is being read
            folders.clear()
            continue
        seen.add(place)
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.endswith(SUFFIXES) and not name.startswith((".", COVERAGE_STREAM)):
                yield Path(parent, name)


def _raise(error: OSError) -> None:
    raise error


@contextmanager
def _errors_of(file: Path) -> Iterator[None]:
    """Turn errors of the system, gzip or Arrow into an `OutputError` that names the file."""
    try:
        yield
    except OutputError:
        raise
    except Exception as error:  # noqa: BLE001 - for a damaged file they raise almost anything
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise unreadable(sanitize(file), sanitize(reason)) from None


# JSON Lines


@contextmanager
def _lines(file: Path) -> Iterator[Iterator[bytes]]:
    is_compressed = file.name.endswith(".gz")
    with gzip.open(file) if is_compressed else file.open("rb") as lines:
        yield (line.removeprefix(BOM_UTF8) for line in cast("IO[bytes]", lines))


def _names_in(file: Path) -> set[str]:
    """The names of the fields in the first lines of a file."""
    with _errors_of(file), _lines(file) as lines:
        first = [line for line in islice(lines, _FIRST_LINES) if line.strip()]
        return set().union(*map(_decode_names, first))


def _in_lines(file: Path, known: Collection[str]) -> Iterator[pa.Table]:
    with _errors_of(file), _lines(file) as lines:
        numbered = enumerate(lines, start=1)
        rows = (_row(file, number, line, known) for number, line in numbered if line.strip())
        while batch := list(islice(rows, BATCH_ROWS)):
            yield batch_of(batch)


def _row(
    file: Path, number: int, line: bytes, known: Collection[str]
) -> tuple[str | None, str, str]:
    try:
        event = _decode_line(line)
    except (msgspec.DecodeError, RecursionError) as error:
        reason = f"line {number} is not an event: {sanitize(error)}"
        raise unreadable(sanitize(file), reason) from None
    return _organization_of(event, known), event.id, event.occurredAt


def _organization_of(event: _Line, known: Collection[str]) -> str | None:
    """The UUID of an event's organization, None if the event has none.

    An event may itself have a field ``organization_id``, with another meaning. So an organization
    of the settings is preferred, in ``organization_id`` or in ``scope.organizationId``.
    """
    found = []
    with suppress(msgspec.DecodeError, ValueError):
        found.append(str(UUID(_decode_text(event.organization_id))))
    with suppress(msgspec.DecodeError, ValueError):  # of unknown form (interface.md 2.6)
        found.append(str(UUID(_decode_text(_decode_scope(event.scope).organization_id))))
    return next(filter(known.__contains__, found), found[-1] if found else None)


# Parquet


def _source(file: Path) -> str:
    path = glob.escape(str(file)).replace("'", "''")
    return f"read_parquet('{path}', binary_as_string = true, hive_partitioning = false)"


def _types(file: Path, database: TemporaryDatabase) -> dict[str, str]:
    """The type of each column, by its name, with the unit of its times."""
    details = "SELECT name, concat(converted_type, logical_type) FROM parquet_schema(?)"
    with _errors_of(file):
        types = database.execute(f"DESCRIBE FROM {_source(file)}").fetchall()
        stored = dict(database.execute(details, [glob.escape(str(file))]).fetchall())
    return {
        name: kind.replace("TIMESTAMP", "TIMESTAMP_MS")
        if _MILLISECONDS.search(stored.get(name, ""))
        else kind
        for name, kind, *_ in types
    }


def _query(file: Path, columns: Columns) -> Query:
    return Query(
        sanitize(file),
        f"SELECT {text_of(columns.organization)} AS organization,"  # noqa: S608 - quoted
        f" {text_of(columns.id)} AS id, {time_as_text(columns.time)} AS time FROM {_source(file)}",
    )
