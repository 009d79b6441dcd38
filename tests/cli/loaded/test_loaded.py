"""The loaded files and tables that `audit-events verify` reads, of any loader."""

import json
import tracemalloc
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tap_audit_events.cli.loaded.batches import Range
from tap_audit_events.cli.loaded.columns import find_columns
from tap_audit_events.cli.loaded.database import TemporaryDatabase
from tap_audit_events.cli.loaded.files import loaded_files
from tap_audit_events.events.instants import EARLIEST, LATEST
from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.verifying import EVENTS, counts, lines, verify

AT_BOUNDS = [
    an_event(id="before", at="2024-05-05T23:59:59.9999999Z"),
    an_event(id="first", at="2024-05-06T00:00:00Z"),
    an_event(id="last", at="2024-05-06T23:59:59.9999999Z"),
    an_event(id="after", at="2024-05-07T00:00:00Z"),
]
OF_THE_DAY = ("--start", "2024-05-06T00:00:00Z", "--end", "2024-05-06T23:59:59.999999999Z")


def a_table(command: Command, columns: str, rows: Sequence[Sequence[Any]]) -> Path:
    """A DuckDB file with a table of events."""
    path = command.folder / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE audit_events ({columns})")
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO audit_events VALUES ({marks})", rows)  # noqa: S608 - ours
    return path


@pytest.mark.parametrize("rounded", [True, False])
def test_times_are_compared_at_the_precision_of_the_table(
    rounded: bool, service: Service, command: Command
) -> None:
    """A table may round or cut times: an event next to a bound is neither missing nor too many."""
    service.add(AT_BOUNDS)
    (before, last) = ("2024-05-06 00:00:00", "2024-05-07 00:00:00") if rounded else (
        "2024-05-05 23:59:59.999999", "2024-05-06 23:59:59.999999")  # fmt: skip
    times = [before, "2024-05-06 00:00:00", last, "2024-05-07 00:00:00"]
    rows = [(event["id"], time) for event, time in zip(AT_BOUNDS, times, strict=True)]
    path = a_table(command, "id VARCHAR, occurredat TIMESTAMP", rows)

    assert counts(verify(command, "a.duckdb", *OF_THE_DAY))["2024-05-06"]["loaded"] == 2

    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "UPDATE audit_events SET occurredat = occurredat + INTERVAL 2 microseconds"
            " WHERE id = 'first'"
        )
    done = verify(command, "a.duckdb", *OF_THE_DAY, exit_code=1)
    assert counts(done)["2024-05-06"]["other_time"] == 1


def test_a_row_next_to_the_range_is_not_too_many(service: Service, command: Command) -> None:
    """Such rows are read, as the table may have rounded a time of the range."""
    service.add(AT_BOUNDS)
    rows = [(event["id"], event["occurredAt"][:26]) for event in AT_BOUNDS]
    removed = ("removed at the service", "2024-05-05 23:59:59.5")
    a_table(command, "id VARCHAR, occurred_at TIMESTAMP", [*rows, removed])

    assert counts(verify(command, "a.duckdb", *OF_THE_DAY))["2024-05-06"]["loaded"] == 2


def test_byte_order_marks_and_blank_lines_are_not_events(
    service: Service, command: Command
) -> None:
    """Some editors write them, and files that are joined may have several."""
    service.add(AT_BOUNDS)
    marked = [f"\ufeff{json.dumps(event)}\n \r\n" for event in AT_BOUNDS]
    (command.folder / "a.jsonl").write_text("".join(marked), encoding="utf-8")

    verify(command, "a.jsonl")


def test_a_row_without_a_time_is_found(service: Service, command: Command) -> None:
    """It has "other time" and is not missing, so that a repair does not load its event again."""
    service.add(AT_BOUNDS)
    a_table(command, "id VARCHAR, occurred_at TIMESTAMP", [("first", None)])

    found = counts(verify(command, "a.duckdb", *OF_THE_DAY, exit_code=1))["2024-05-06"]
    assert (found["missing"], found["other_time"]) == (1, 1)


def test_the_time_zone_of_the_machine_does_not_matter(service: Service, command: Command) -> None:
    """DuckDB would use it for its times."""
    service.add(AT_BOUNDS)
    rows = [(event["id"], event["occurredAt"]) for event in AT_BOUNDS]
    a_table(command, "id VARCHAR, occurred_at TIMESTAMPTZ", rows)
    arguments = ("verify", "--against", "a.duckdb", *OF_THE_DAY)

    command(*arguments, TZ="Asia/Tokyo").raise_for_exit_code()


@pytest.mark.parametrize(
    "kind", ["TIMESTAMPTZ", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S", "VARCHAR"]
)
def test_each_type_of_time_is_understood(kind: str, service: Service, command: Command) -> None:
    """Times are compared at the precision of their type."""
    service.add([an_event(at="2024-05-06T07:08:09.123456789Z")])
    shown = {"TIMESTAMP_S": "2024-05-06 07:08:09", "VARCHAR": "2024-05-06 07:08:09.123456789+00"}
    with duckdb.connect(str(command.folder / "a.duckdb")) as connection:
        connection.execute(
            f"CREATE SCHEMA raw; CREATE TABLE raw.t (id VARCHAR, occurred_at {kind})"
        )
        text = shown.get(kind, "2024-05-06 07:08:09.123456789")
        text += "+00" if kind == "TIMESTAMPTZ" else ""
        if kind == "TIMESTAMPTZ":
            text = text.replace("789+", "+")
        connection.execute("SET timezone = 'UTC'")
        connection.execute("INSERT INTO raw.t VALUES ('event-1', ?)", [text])

    assert counts(verify(command, "a.duckdb", "--table", "raw.t"))["2024-05-06"]["loaded"] == 1


def test_a_parquet_file_of_another_program_is_understood(
    service: Service, command: Command
) -> None:
    service.add([an_event(at="2024-05-06T07:08:09.1239Z")])
    time = pa.scalar(1714979289123, pa.timestamp("ms"))
    table = pa.table({"id": ["event-1"], "occurredAt": pa.array([time.as_py()], time.type)})
    pq.write_table(table, command.folder / "a.parquet")

    verify(command, "a.parquet")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "+02:00", "UTC", "Nowhere"])
@pytest.mark.parametrize("unit", [pytest.param("s", marks=pytest.mark.long), "ns"])
def test_a_parquet_file_may_have_times_in_any_zone(
    zone: str, unit: str, service: Service, command: Command
) -> None:
    """Times in different zones are compared as instants."""
    service.add(EVENTS)
    times = pa.array([datetime.fromisoformat(event["occurredAt"]) for event in EVENTS])
    table = pa.table(
        {
            "id": [event["id"] for event in EVENTS],
            "occurred_at": times.cast(pa.timestamp(unit, zone)),
        }
    )
    pq.write_table(table, command.folder / "a.parquet")

    verify(command, "a.parquet")


@pytest.mark.parametrize(
    "form",
    ["org_7f3a", "{{{0}}}", "urn:uuid:{0}", "{0}", 7, None],
    ids=["own", "braces", "urn", "usual", "number", "null"],
)
def test_an_event_may_name_its_organization_in_any_form(
    form: Any, service: Service, command: Command
) -> None:
    """Interface.md 2.6 does not show the format of such ids."""
    name = form.format(service.organization_id) if isinstance(form, str) else form
    events = [each | {"scope": {"organizationId": name}} for each in EVENTS]
    service.add(events)
    (command.folder / "a.jsonl").write_bytes(lines(events))

    verify(command, "a.jsonl")


@pytest.mark.parametrize("value", ["acme", str(UUID(int=7)), 7, {"name": "acme"}, None])
def test_an_event_may_have_a_field_organization_id(
    value: Any, service: Service, command: Command
) -> None:
    """In JSON Lines, the field belongs to the event, and does not name its organization."""
    scope = {"scope": {"organizationId": service.organization_id}}
    service.add([each | scope | {"organization_id": value} for each in EVENTS])
    command("export", "--to", "a.jsonl").raise_for_exit_code()

    verify(command, "a.jsonl")


@pytest.mark.parametrize("form", ["{0}", "{{{0}}}", "urn:uuid:{0}", "no hyphens"])
@pytest.mark.parametrize("is_upper", [True, False])
def test_a_column_may_name_the_organization_in_any_form_of_a_uuid(
    form: str, is_upper: bool, service: Service, command: Command
) -> None:
    """Otherwise all events would be missing, and a repair would load them again."""
    service.add(EVENTS)
    name = form.format(service.organization_id)
    if form == "no hyphens":
        name = service.organization_id.replace("-", "")
    rows = [(each["id"], each["occurredAt"], name.upper() if is_upper else name) for each in EVENTS]
    a_table(command, "id TEXT, occurred_at TEXT, organization_id TEXT", rows)

    verify(command, "a.duckdb")


ONE = {"id": ["1"], "occurred_at": ["2024-05-06T00:00:00Z"]}
"""Columns of a Parquet file with one event."""


def test_a_path_may_look_like_a_url(service: Service, command: Command) -> None:
    """A path that exists is not a URL, so it contains no password."""
    service.add(EVENTS)
    folder = command.folder / "day:1@password=x"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(lines(EVENTS))

    verify(command, folder.name)


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-06T07:08:09.5Z",
        "2024-05-06 07:08:09.50",
        "2024-05-06t07:08:09.500000000z",
        "2024-05-06T09:08:09.50+02:00",
        "2024-05-06 07:08:09.5+00",
        " 2024-05-06 04:38:09.5-0230 ",
    ],
)
def test_times_are_understood_as_loaders_write_them(
    text: str, service: Service, command: Command
) -> None:
    """Without an offset, a time is in UTC, whatever the version of DuckDB makes of it."""
    service.add([an_event(at="2024-05-06T07:08:09.5Z")])
    (command.folder / "a.jsonl").write_bytes(lines([an_event(at=text)]))

    verify(command, "a.jsonl")


@pytest.mark.parametrize("text", ["2024-05-06T07:08:09+2", "2024-13-06T07:08:09Z", "x"])
def test_a_text_that_is_not_a_time_is_another_time(
    text: str, service: Service, command: Command
) -> None:
    service.add([an_event()])
    (command.folder / "a.jsonl").write_bytes(lines([an_event(at=text)]))

    (found,) = counts(verify(command, "a.jsonl", exit_code=1)).values()

    assert found["other_time"] == 1


@pytest.mark.parametrize("digit", [6, 9, 12, 30])
def test_every_digit_of_a_text_is_compared(digit: int, service: Service, command: Command) -> None:
    zeros = "0" * (digit - 1)
    service.add([an_event(at=f"2024-05-06T07:08:09.{zeros}1Z")])
    for name, last in (("equal", "100"), ("other", "2")):
        event = an_event(at=f"2024-05-06 07:08:09.{zeros}{last}+00:00")
        (command.folder / f"{name}.jsonl").write_bytes(lines([event]))

    verify(command, "equal.jsonl")
    verify(command, "other.jsonl", exit_code=1)


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        ("timestamp without time zone", 1_000),
        ("timestamp(3) with time zone", 1_000_000),
        ("timestamp(0) without time zone", 1_000_000_000),
        ("TIMESTAMP_NS", 1),
        ("TIMESTAMP_MS WITH TIME ZONE", 1_000_000),
        ("date", 86_400_000_000_000),
        ("text", 0),
    ],
)
def test_the_precision_of_a_column_is_that_of_its_type(kind: str, unit: int) -> None:
    assert find_columns({"ID": "text", "occurredAt": kind}, "x").time.unit_nanoseconds == unit


def test_a_folder_is_as_precise_as_its_least_precise_file(
    tmp_path: Path, database: TemporaryDatabase
) -> None:
    for unit in ("ns", "ms", "us"):
        table = pa.table({"id": ["1"], "occurred_at": pa.array([0], pa.timestamp(unit))})
        pq.write_table(table, tmp_path / f"{unit}.parquet")

    assert loaded_files(tmp_path, database).unit_nanoseconds == 1_000_000


def ids_in(batch: Any) -> list[str]:
    ids: list[str] = batch["id"].to_pylist()
    return ids


def test_hidden_files_and_coverage_records_are_not_read(
    tmp_path: Path, database: TemporaryDatabase
) -> None:
    """A copy in a hidden folder would conceal that an event is missing."""
    for name in ("a.jsonl", ".b.jsonl", ".old/c.jsonl", "audit_events_coverage.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(lines([an_event(id=name)]))

    (rows,) = loaded_files(tmp_path, database).batches(Range(EARLIEST, LATEST))

    assert ids_in(rows) == ["a.jsonl"]


def test_a_column_that_names_another_organization_is_trusted(
    service: Service, command: Command
) -> None:
    """Nothing of this organization was loaded, so all of its events are missing."""
    service.add([an_event(id="a")])
    row = {"id": "a", "occurredAt": "2024-05-06T07:08:09Z", "organization_id": str(UUID(int=7))}
    pq.write_table(pa.Table.from_pylist([row]), command.folder / "a.parquet")

    done = verify(command, "a.parquet", exit_code=1)

    assert done.error.startswith("AE-DIFFERENT: ")
    assert [day["missing"] for day in counts(done).values()] == [1]


def test_large_loaded_events_are_not_kept_in_memory(
    tmp_path: Path, database: TemporaryDatabase
) -> None:
    """An event may have megabytes; only its id and its time are kept."""
    megabyte = 1_000_000
    event = an_event(large="x" * megabyte)
    (tmp_path / "a.jsonl").write_bytes(lines([event]) * 20)

    tracemalloc.start()
    (rows,) = loaded_files(tmp_path, database).batches(Range(EARLIEST, LATEST))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(rows) == 20
    assert peak < 5 * megabyte


def test_a_folder_that_is_a_link_is_read_once(service: Service, command: Command) -> None:
    """The links may lead to the same folder, or back to a folder that contains them."""
    service.add(EVENTS)
    elsewhere = command.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.jsonl").write_bytes(lines(EVENTS))
    loaded = command.folder / "loaded"
    loaded.mkdir()
    (loaded / "day=2024-05-06").symlink_to(elsewhere)
    (loaded / "again").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(loaded)

    command("verify", "--against", "loaded").raise_for_exit_code()
