"""Counts the output of a candidate in a run that is not timed, and prints one JSON object."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import msgspec

State: TypeAlias = dict[str, Any]


class _Event(msgspec.Struct):
    id: str


class _SingerMessage(msgspec.Struct):
    type: str
    record: _Event | None = None
    value: State | None = None


class _AirbyteRecord(msgspec.Struct):
    data: _Event


class _AirbyteMessage(msgspec.Struct):
    type: str
    record: _AirbyteRecord | None = None
    state: State | None = None


class _Page(msgspec.Struct):
    auditEvents: list[_Event]  # noqa: N815 - the interface's name


class Counted(msgspec.Struct):
    """The numbers of records, distinct ids and bytes, and the last state if there is one."""

    records: int = 0
    distinct: int = 0
    output_bytes: int = 0
    state: State | None = None


Found: TypeAlias = tuple[list[_Event], State | None]


def _singer(line: bytes) -> Found:
    message = msgspec.json.decode(line, type=_SingerMessage)
    return [message.record] if message.record else [], message.value


def _airbyte(line: bytes) -> Found:
    message = msgspec.json.decode(line, type=_AirbyteMessage)
    return [message.record.data] if message.record else [], message.state


def _pages(line: bytes) -> Found:
    return msgspec.json.decode(line, type=_Page).auditEvents, None


def _dlt(line: bytes) -> Found:
    return msgspec.json.decode(line, type=list[_Event]), None


FORMATS: Final[dict[str, Callable[[bytes], Found]]] = {
    "singer": _singer,
    "airbyte": _airbyte,
    "pages": _pages,
    "dlt": _dlt,
}


TABLES: Final = {
    "parquet": "'{}'",
    "duckdb": "file.audit_events",
    "dlt-duckdb": "file.main.audit_events",
}
"""The SQL relation that is counted in a file, by the file's format."""


def count(lines: Iterable[bytes], read: Callable[[bytes], Found]) -> Counted:
    counted = Counted()
    ids: set[str] = set()
    for line in lines:
        events, state = read(line)
        counted.records += len(events)
        counted.output_bytes += len(line)
        counted.state = state or counted.state
        ids.update(event.id for event in events)
    counted.distinct = len(ids)
    return counted


def _count_table(path: Path, relation: str) -> Counted:
    import duckdb  # noqa: PLC0415 - few candidates need it

    with duckdb.connect() as connection:
        if path.suffix == ".duckdb":
            connection.execute(f"ATTACH '{path}' AS file (READ_ONLY)")
        query = f"SELECT count(*), count(DISTINCT id) FROM {relation}"  # noqa: S608 - own names
        records, distinct = connection.execute(query).fetchall()[0]
    return Counted(records, distinct, path.stat().st_size)


def lines_of(folder: Path | None, standard_input: IO[bytes]) -> Iterator[bytes]:
    """Return the lines of dlt's extracted files, or of standard input."""
    if folder is None:
        yield from standard_input
        return
    for path in sorted(folder.rglob("new_jobs/audit_events.*")):
        with path.open("rb") as file:
            yield from file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format", choices=[*FORMATS, *TABLES])
    parser.add_argument("--file", type=Path, help="the file that was written")
    parser.add_argument(
        "--folder",
        type=Path,
        help="the folder that dlt wrote to; without it, standard input is read",
    )
    given = parser.parse_args()
    if given.file is not None:
        counted = _count_table(given.file, TABLES[given.format].format(given.file))
    else:
        counted = count(lines_of(given.folder, sys.stdin.buffer), FORMATS[given.format])
    sys.stdout.write(msgspec.json.encode(counted).decode())


if __name__ == "__main__":
    main()
