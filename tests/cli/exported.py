"""Reads the events back from an export of any format."""

import gzip
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tap_audit_events.api.arrow import SCHEMA
from tap_audit_events.api.columns import COLUMNS
from tap_audit_events.outputs import formats
from tests.builders import an_event

FIRST = datetime(2024, 5, 6)  # noqa: DTZ001 - only its text matters
Event = dict[str, Any]

FORMATS = tuple(f"events{suffix}" for suffix in formats.FORMATS)
QUICK = ("events.duckdb", "events.jsonl", "events/")
EVERY_FORMAT = [pytest.param(to, marks=() if to in QUICK else pytest.mark.long) for to in FORMATS]
"""Every format. Quick runs leave out those that write a single file as JSON Lines does."""

LOADED_FORMATS = [each for each in EVERY_FORMAT if ".csv" not in str(each.values[0])]
"""Every format that `verify` and `report` read."""

HOSTILE = [
    an_event(id="1", at="2024-05-06T00:00:00Z", actor={"type": "robot", "id": "😀\u2028", "x": []}),
    an_event(id="2", at="2024-05-06T00:00:00Z", new={"deep": [1, {"n": 2**70}]}, flag=None),
    an_event(id="3", at="2024-05-06T00:00:00.123456789Z", entity={}, context={"requestIp": None}),
    an_event(id="4", at="2024-05-06T23:59:59.999999999Z", action={"type": "t", "details": [1.50]}),
    an_event(id="5", at="2024-05-07T00:00:00Z", action={"type": 5, "details": {"é": "\n\t\"'"}}),
    an_event(id="6", at="2024-05-07T00:00:00Z", scope="none", actor={"id": "", "name": "0" * 5000}),
]
"""Unknown fields, values of another type, huge numbers, emoji, ties, nine digits, two days."""


def history(count: int, start: int = 0) -> list[Event]:
    """Events of several days, forty a day; every two share an instant."""
    return [
        an_event(id=f"{n:05}", at=f"{FIRST + n // 2 * timedelta(minutes=72):%Y-%m-%dT%H:%M:%SZ}")
        for n in range(start, start + count)
    ]


def exported(path: Path) -> list[Event]:
    """The events of a file or folder, in the order stored; none if it does not exist."""
    if not path.exists():
        return []
    if path.is_dir():
        return [event for each in _parts(path) for event in of_table(pq.read_table(each), path)]
    if path.suffix == ".parquet":
        return of_table(pq.read_table(path), path)
    if path.suffix == ".duckdb":
        return _of_duckdb(path)
    if ".csv" in path.suffixes:
        return of_table(csv_table(_data(path)), path)
    return [_loads(line) for line in _lines(path)]


def ocsf_texts(path: Path) -> list[str]:
    """The OCSF events of a file or folder: the lines, or the values of the column."""
    if path.is_dir() or path.suffix == ".parquet":
        files = _parts(path) if path.is_dir() else [path]
        return [text for file in files for text in pq.read_table(file)["ocsf"].to_pylist()]
    if path.suffix == ".duckdb":
        with duckdb.connect(str(path), read_only=True) as connection:
            return [text for (text,) in connection.sql("SELECT ocsf FROM audit_events").fetchall()]
    if ".csv" in path.suffixes:
        texts: list[str] = csv_table(_data(path))["ocsf"].to_pylist()
        return texts
    return [line.decode() for line in _lines(path)]


def _data(path: Path) -> bytes:
    assert path.suffix in {".jsonl", ".csv", ".gz"}
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def _lines(path: Path) -> list[bytes]:
    lines = _data(path)
    assert not lines or lines.endswith(b"\n")
    return lines.split(b"\n")[:-1]


def csv_table(lines: bytes) -> pa.Table:
    """The values of a CSV file: without its marks of what could be a formula."""
    table = pyarrow.csv.read_csv(
        pa.BufferReader(lines),
        read_options=pyarrow.csv.ReadOptions(block_size=1 << 30),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys([*COLUMNS, "ocsf"], pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    columns = {
        name: [text and text.removeprefix("'") for text in values]
        for name, values in table.to_pydict().items()
    }
    times = map(datetime.fromisoformat, columns["occurred_at"])
    return pa.table({**columns, "occurred_at": pa.array(times, SCHEMA.field("occurred_at").type)})


def expected(events: Iterable[Event]) -> list[Event]:
    """Events as they are compared: in order, without nulls, with exact numbers."""
    ordered = sorted(events, key=lambda each: (each["occurredAt"].rstrip("Z"), each["id"]))
    return [without_nulls(_loads(json.dumps(event))) for event in ordered]


def without_nulls(event: Mapping[str, Any]) -> Event:
    """The event without its null fields and without empty objects.

    A column cannot distinguish them from absent ones.
    """
    kept = {
        name: without_nulls(value) if isinstance(value, dict) and name != "details" else value
        for name, value in event.items()
        if value is not None
    }
    return {name: value for name, value in kept.items() if value != {}}


def _parts(folder: Path) -> list[Path]:
    paths = sorted(folder.glob("day=*/part-*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    assert sorted(folder.rglob("*.parquet")) == sorted(paths)
    return sorted(paths, key=lambda path: path.parent)


def _of_duckdb(path: Path) -> list[Event]:
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
        if "audit_events" not in tables:
            return []
        connection.execute("SET timezone = 'UTC'")
        table = connection.sql("FROM audit_events").to_arrow_table()
    return of_table(table, path)


def of_table(table: pa.Table, path: Path) -> list[Event]:
    assert table.column_names[: len(COLUMNS)] == SCHEMA.names
    columns = table.select(SCHEMA.names).to_pydict()
    if path.is_dir():
        days = {f"{time:%Y-%m-%d}" for time in columns["occurred_at"]}
        assert len(days) <= 1, days
    times = zip(columns["occurred_at"], columns["occurred_at_text"], strict=True)
    for time, text in times:
        digits = text.rstrip("Z").partition(".")[2][:6].ljust(6, "0")
        assert f"{time:%Y-%m-%dT%H:%M:%S.%f}" == f"{text[:19]}.{digits}"
    rows = zip(*(columns[name] for name in COLUMNS), strict=True)
    return [_event(dict(zip(COLUMNS, row, strict=True))) for row in rows]


def _event(row: dict[str, Any]) -> Event:
    event: Event = {}
    for name, path in COLUMNS.items():
        value = row[name]
        if path and value is not None:
            *parents, last = path
            inner = event
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[last] = _loads(value) if name == "action_details" else value
    return _merged(event, _loads(row["other_fields"] or "{}"))


def _merged(event: Event, other: Event) -> Event:
    for name, value in other.items():
        if isinstance(value, dict) and isinstance(event.get(name), dict):
            _merged(event[name], value)
        else:
            assert name not in event
            event[name] = value
    return event


def _loads(text: str | bytes) -> Any:
    return json.loads(text, parse_float=Decimal)
