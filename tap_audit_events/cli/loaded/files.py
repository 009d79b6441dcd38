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

import duckdb
import msgspec

from tap_audit_events.cli.loaded.batches import BATCH_ROWS, Query, Range, batch_of, unreadable
from tap_audit_events.cli.loaded.columns import Columns, check_organizations, find_columns, quoted
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


class LoadedFiles:
    """A file, or all files of a folder and its subfolders.

    Args:
        path: the file or folder. In a folder, hidden files and folders, and files of the stream of
            coverage records, are left out.
        known: the organizations in the settings, in lower case.

    Raises:
        OutputError: there is no such file, the folder has none, or one is a pipe or a device.
        SettingsError: a file is Parquet, and ``pyarrow`` is not installed.
    """

    def __init__(self, path: Path, known: Collection[str] = ()) -> None:
        self.name = sanitize(path)
        self._known = known
        with _errors_of(path):
            if not exists(path):
                raise unreadable(self.name, "it does not exist")
            self._files = [path] if path.is_file() else sorted(_files_in(path))
        for file in self._files:
            if not file.is_file():  # to open a pipe would wait without end
                raise unreadable(sanitize(file), "it is not a file")
        if not self._files:
            raise unreadable(self.name, f"it has no files that end with {', '.join(SUFFIXES)}")
        self._tables = list(filter(_is_table, self._files))

    @property
    def has_organizations(self) -> bool:
        """Whether each Parquet file has organizations; JSON Lines are checked as they are read."""
        return all(_columns(file).organization is not None for file in self._tables)

    @property
    def guesses_organizations(self) -> bool:
        """Whether there are JSON Lines."""
        return len(self._tables) < len(self._files)

    @property
    def unit_nanoseconds(self) -> int:
        """The unit of the least exact file."""
        return max((_columns(file).time.unit_nanoseconds for file in self._tables), default=0)

    @property
    def columns_are_all(self) -> bool:
        return len(self._tables) == len(self._files)

    def columns(self) -> Collection[str] | None:
        """The columns of Parquet, and the fields in the first lines of JSON Lines."""
        found = [names for file in self._files if (names := _names_in(file)) is not None]
        return set.intersection(*found) if found else None

    def batches(self, within: Range) -> Iterator[pa.Table | Query]:
        del within
        for file in self._files:
            if _is_table(file):
                yield _query(file)
            else:
                with _errors_of(file):
                    yield from _in_lines(file, self._known)


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


def _is_table(file: Path) -> bool:
    return file.name.endswith(".parquet")


def _names_in(file: Path) -> set[str] | None:
    """The names in a file, None if it has no event."""
    with _errors_of(file):
        if _is_table(file):
            return set(_types(file))
        with _open_lines(file) as lines:
            first = [line.removeprefix(BOM_UTF8) for line in islice(lines, _FIRST_LINES)]
        return set().union(*(_decode_names(each) for each in first if each.strip())) or None


# JSON Lines


def _open_lines(file: Path) -> IO[bytes]:
    is_compressed = file.name.endswith(".gz")
    return cast("IO[bytes]", gzip.open(file) if is_compressed else file.open("rb"))


def _in_lines(file: Path, known: Collection[str]) -> Iterator[pa.Table]:
    with _open_lines(file) as lines:
        numbered = enumerate(lines, start=1)
        rows = (_row(file, number, line, known) for number, line in numbered if line.strip())
        while batch := list(islice(rows, BATCH_ROWS)):
            yield batch_of(batch)


def _row(
    file: Path, number: int, line: bytes, known: Collection[str]
) -> tuple[str | None, str, str]:
    try:
        event = _decode_line(line.removeprefix(BOM_UTF8))
    except (msgspec.DecodeError, RecursionError) as error:
        reason = f"line {number} is not an event: {sanitize(error)}"
        raise unreadable(sanitize(file), reason) from None
    return _organization_of(event, known), event.id, event.occurredAt


def _organization_of(event: _Line, known: Collection[str]) -> str | None:
    """The UUID of an event's organization, None if the event has none.

    An event may itself have a field ``organization_id``, with another meaning. So an organization
    of the settings is preferred, in ``organization_id`` or in ``scope.organizationId``.
    """
    organization = None
    for organization in _organizations_in(event):
        if organization in known:
            break
    return organization


def _organizations_in(event: _Line) -> Iterator[str]:
    with suppress(msgspec.DecodeError, ValueError):
        yield str(UUID(_decode_text(event.organization_id)))
    with suppress(msgspec.DecodeError, ValueError):  # of unknown form (interface.md 2.6)
        yield str(UUID(_decode_text(_decode_scope(event.scope).organization_id)))


# Parquet


def _source(file: Path) -> str:
    path = glob.escape(str(file)).replace("'", "''")
    return f"read_parquet('{path}', binary_as_string = true, hive_partitioning = false)"


def _types(file: Path) -> dict[str, str]:
    """The type of each column, by its name, with the unit of its times."""
    with duckdb.connect() as database:
        types = database.execute(f"DESCRIBE FROM {_source(file)}").fetchall()
        path = glob.escape(str(file))
        details = "SELECT name, concat(converted_type, logical_type) FROM parquet_schema(?)"
        stored = dict(database.execute(details, [path]).fetchall())
    return {
        name: kind.replace("TIMESTAMP", "TIMESTAMP_MS")
        if _MILLISECONDS.search(stored.get(name, ""))
        else kind
        for name, kind, *_ in types
    }


def _columns(file: Path) -> Columns:
    with _errors_of(file):
        types = _types(file)
    columns = find_columns(types, sanitize(file))
    check_organizations(columns, types, sanitize(file))
    return columns


def _query(file: Path) -> Query:
    columns = _columns(file)
    organization = "NULL" if columns.organization is None else quoted(columns.organization)
    return Query(
        sanitize(file),
        f"SELECT CAST({organization} AS VARCHAR) AS organization,"  # noqa: S608 - quoted
        f" CAST({quoted(columns.id)} AS VARCHAR) AS id, {time_as_text(columns.time)} AS time"
        f" FROM {_source(file)}",
    )
