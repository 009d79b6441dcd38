"""`audit-events verify`: what was loaded is compared with what the service shows."""

import csv
import errno
import gzip
import json
import os
import random
import signal
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tap_audit_events.cli.comparison import Comparison, Key
from tap_audit_events.cli.difference_lists import DifferenceLists
from tap_audit_events.cli.loaded.columns import check_organizations, find_columns
from tap_audit_events.cli.loaded.files import LoadedFiles
from tap_audit_events.cli.loaded.row import Range, Row, instants_of
from tap_audit_events.cli.loaded.sources import open_database
from tap_audit_events.cli.verify import Verification
from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors.exceptions import OutputError, StoppedError
from tap_audit_events.events.instants import EARLIEST, Instant
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.cli.command import Command, Done
from tests.cli.exported import EVERY_FORMAT, HOSTILE, history
from tests.project.pages import sections

EVENTS = history(200)
LAST_DAY = EVENTS[-1]["occurredAt"][:10]


def lines(events: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def counts(done: Done) -> dict[str, dict[str, int]]:
    """The counts of each day."""
    return {row.pop("day"): row for row in json.loads(done.stdout)}


def verify(command: Command, against: str, *arguments: str, exit_code: int = 0) -> Done:
    done = command("verify", "--against", against, "--format", "json", *arguments)
    assert done.exit_code == exit_code, done.log
    return done


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_an_export_is_equal_to_the_service(to: str, service: Service, command: Command) -> None:
    """In each format, and with times of nine digits."""
    service.add([*EVENTS, *HOSTILE])
    command("export", "--to", to).raise_for_exit_code()

    done = verify(command, to)

    found = counts(done)
    assert sum(day["service"] for day in found.values()) == len(EVENTS) + len(HOSTILE)
    assert all(day["service"] == day["loaded"] for day in found.values())
    assert done.log.startswith("Compared: 206 events in ")
    assert command.left_over == []


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "folder/x/a.jsonl"])
def test_each_difference_is_found(name: str, service: Service, command: Command) -> None:
    """An event that is missing, one that is too many, a copy, and one with another time."""
    service.add(EVENTS)
    missing, copy, moved = EVENTS[3], EVENTS[50], EVENTS[100]
    loaded = [event for event in EVENTS if event not in (missing, moved)]
    loaded += [copy, moved | {"occurredAt": f"{moved['occurredAt'][:-1]}.5Z"}, an_event(id="x")]
    random.Random(1).shuffle(loaded)
    path = command.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(lines(loaded)) if name.endswith(".gz") else lines(loaded))

    done = verify(command, name.partition("/")[0], "--list", "all.csv", exit_code=1)

    error = "AE-DIFFERENT: The loaded events are not those that the service shows: "
    assert done.error.startswith(f"{error}1 missing, 1 other time, 2 too many. ")
    totals = {name: sum(day[name] for day in counts(done).values()) for name in
              ("service", "loaded", "missing", "too_many", "other_time")}  # fmt: skip
    assert totals == {
        "service": 200, "loaded": 201, "missing": 1, "too_many": 2, "other_time": 1,
    }  # fmt: skip
    assert counts(done)[missing["occurredAt"][:10]]["missing"] == 1
    listed = list(csv.DictReader((command.folder / "all.csv").read_text().splitlines()))
    assert {(row["kind"], row["id"]) for row in listed} == {
        ("missing", missing["id"]),
        ("other time", moved["id"]),
        ("too many", copy["id"]),
        ("too many", "x"),
    }
    (of_moved,) = (row for row in listed if row["id"] == moved["id"])
    assert of_moved["occurred_at"] == moved["occurredAt"]
    assert of_moved["loaded_at"] == f"{moved['occurredAt'][:-1]}.5Z"


def test_lists_are_bounded_on_the_terminal(service: Service, command: Command) -> None:
    """And nothing in an id controls it."""
    service.add([an_event(id="\x1b[2J"), *EVENTS])
    (command.folder / "a.jsonl").write_bytes(lines(EVENTS[30:]))

    done = command("verify", "--against", "a.jsonl")

    assert done.exit_code == 1
    assert "Missing: 31" in done.lines
    assert "  … and 11 more; --list FILE lists all of them" in done.lines
    assert len([line for line in done.lines if "2024-05-06T" in line]) == 20
    assert b"\x1b" not in done.stdout
    (total,) = (line for line in done.lines if line.startswith("total "))
    assert total.split() == ["total", "201", "170", "31", "0", "0"]


def test_the_list_gives_back_any_id(service: Service, command: Command) -> None:
    """Also one with line breaks, commas and quotes."""
    ids = {"a\nb", "a\rb", "\r\n", 'a","b', " a "}
    service.add(an_event(id=each) for each in ids)
    (command.folder / "a.jsonl").touch()

    verify(command, "a.jsonl", "--list", "l", exit_code=1)

    with (command.folder / "l").open(newline="") as file:
        assert {row["id"] for row in csv.DictReader(file)} == ids


def test_only_the_range_is_compared(service: Service, command: Command) -> None:
    service.add(EVENTS)
    days = [EVENTS[n]["occurredAt"][:10] for n in (40, 80)]
    within = [event for event in EVENTS if days[0] <= event["occurredAt"][:10] <= days[1]]
    later = EVENTS[-5:]
    (command.folder / "a.jsonl").write_bytes(lines([*within, *later]))
    bounds = ("--start", f"{days[0]}T00:00:00Z", "--end", f"{days[1]}T23:59:59.999999999Z")

    found = counts(verify(command, "a.jsonl", *bounds))

    assert sorted(found) == sorted({event["occurredAt"][:10] for event in within})
    assert sum(day["loaded"] for day in found.values()) == len(within)


AT_BOUNDS = [
    an_event(id="before", at="2024-05-05T23:59:59.9999999Z"),
    an_event(id="first", at="2024-05-06T00:00:00Z"),
    an_event(id="last", at="2024-05-06T23:59:59.9999999Z"),
    an_event(id="after", at="2024-05-07T00:00:00Z"),
]
OF_THE_DAY = ("--start", "2024-05-06T00:00:00Z", "--end", "2024-05-06T23:59:59.999999999Z")


@pytest.mark.parametrize("rounded", [True, False])
def test_times_are_compared_at_the_precision_of_the_table(
    rounded: bool, service: Service, command: Command
) -> None:
    """Whether it rounds or cuts digits, an event next to a bound is neither lost nor too many."""
    service.add(AT_BOUNDS)
    (before, last) = ("2024-05-06 00:00:00", "2024-05-07 00:00:00") if rounded else (
        "2024-05-05 23:59:59.999999", "2024-05-06 23:59:59.999999")  # fmt: skip
    times = [before, "2024-05-06 00:00:00", last, "2024-05-07 00:00:00"]
    rows = [(event["id"], time) for event, time in zip(AT_BOUNDS, times, strict=True)]
    path = command.folder / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE audit_events (id VARCHAR, occurredat TIMESTAMP)")
        connection.executemany("INSERT INTO audit_events VALUES (?, ?)", rows)

    assert counts(verify(command, "a.duckdb", *OF_THE_DAY))["2024-05-06"]["loaded"] == 2

    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "UPDATE audit_events SET occurredat = occurredat + INTERVAL 2 microseconds"
            " WHERE id = 'first'"
        )
    done = verify(command, "a.duckdb", *OF_THE_DAY, exit_code=1)
    assert counts(done)["2024-05-06"]["other_time"] == 1


@pytest.mark.parametrize(
    "kind", ["TIMESTAMPTZ", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S", "VARCHAR"]
)
def test_each_type_of_time_is_understood(kind: str, service: Service, command: Command) -> None:
    """Each is compared as exactly as it can be."""
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


def test_a_parquet_file_of_others_is_understood(service: Service, command: Command) -> None:
    service.add([an_event(at="2024-05-06T07:08:09.1239Z")])
    time = pa.scalar(1714979289123, pa.timestamp("ms"))
    table = pa.table({"id": ["event-1"], "occurredAt": pa.array([time.as_py()], time.type)})
    pq.write_table(table, command.folder / "a.parquet")

    verify(command, "a.parquet")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "+02:00", "UTC"])
@pytest.mark.parametrize("unit", [pytest.param("s", marks=pytest.mark.long), "ns"])
def test_a_parquet_file_may_have_times_in_any_zone(
    zone: str, unit: str, service: Service, command: Command
) -> None:
    """They are the same instants."""
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
    """Interface.md 2.6 does not show the form."""
    name = form.format(service.organization_id) if isinstance(form, str) else form
    events = [each | {"scope": {"organizationId": name}} for each in EVENTS]
    service.add(events)
    (command.folder / "a.jsonl").write_bytes(lines(events))

    verify(command, "a.jsonl")


def test_several_organizations_are_compared_by_organization_and_id() -> None:
    """The same id in two organizations is two events."""
    comparison = Comparison(Path(":memory:"), Range(Instant("2024"), Instant("2025")), 0)
    time = Instant("2024-05-06T00:00:00")
    comparison.add_rows([Row("a", "1", f"{time}Z"), Row("b", "2", f"{time}Z")])
    comparison.all_rows_added()

    found = comparison.compare([Key("a", "1", time), Key("b", "1", time)])

    assert [(position, each.organization_id) for position, each in found] == [(1, "b")]
    assert [(each.organization_id, each.id) for each in comparison.too_many()] == [("b", "2")]


def test_a_row_is_one_event_only() -> None:
    """A service that shows an id at two times shows two events; the table has one of them."""
    comparison = Comparison(Path(":memory:"), Range(Instant("2024"), Instant("2025")), 0)
    times = Instant("2024-05-06T00:00:00"), Instant("2024-05-06T00:00:01")
    comparison.add_rows([Row("", "1", f"{times[1]}Z")])
    comparison.all_rows_added()

    found = comparison.compare([Key("", "1", times[1]), Key("", "1", times[0])])

    assert [(position, each.kind) for position, each in found] == [(1, "missing")]
    assert list(comparison.too_many()) == []


def test_every_option_of_the_page_exists(command: Command) -> None:
    """Of the commands in `docs/proof.md`."""
    commands = [
        each.split()[1:]
        for section in sections("proof.md").values()
        for each in section.commands
        if each.startswith("audit-events ")
    ]

    assert {name for name, *_ in commands} == {"export", "verify", "report"}
    for name, *arguments in commands:
        shown = command(name, "--help").raise_for_exit_code().stdout.decode()
        assert all(each in shown for each in arguments if each.startswith("--"))


def test_after_an_error_nothing_is_judged(service: Service, command: Command) -> None:
    """A part of the range would look like missing events."""
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=403@1")])
    (command.folder / "a.jsonl").write_bytes(lines(EVENTS))

    done = command("verify", "--against", "a.jsonl", "--repair", "r", "--list", "l")

    assert (done.exit_code, done.stdout) == (1, b"")
    assert done.error.startswith("AE-403: ")
    assert [path.name for path in command.folder.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize("levels", range(972, 992, 4))
def test_an_event_that_is_nested_too_deeply_is_one_line(
    levels: int, service: Service, command: Command
) -> None:
    """Also if it can still be read as part of its page. How deep that is depends on Python."""
    deep = b"[" * levels + b"]" * levels
    body = json.dumps({"auditEvents": [an_event(other=0)]}).encode().replace(b"0}", deep + b"}")
    service.add_faults([Fault(kind="body", text=body, when="*")])
    (command.folder / "a.jsonl").touch()

    done = command("verify", "--against", "a.jsonl")

    assert done.error.startswith(("AE-DIFFERENT: ", "AE-NESTING: "))


@pytest.mark.parametrize(
    ("against", "says"),
    [
        ("absent.jsonl", "it does not exist"),
        ("absent.duckdb", "it does not exist"),
        ("empty/", "it has no files that end with"),
        ("no-events.jsonl", "line 2 is not an event"),
        ("no-gzip.jsonl.gz", "Not a gzipped file"),
        ("no-parquet.parquet", "Parquet magic bytes"),
        ("no-duckdb.duckdb", "not a valid DuckDB database file"),
        ("\udcff.duckdb", "its path is not UTF-8, which DuckDB needs"),
        ("no-table.duckdb", "Table with name audit_events does not exist"),
    ],
)
def test_what_cannot_be_read_is_one_line(against: str, says: str, command: Command) -> None:
    folder = command.folder
    (folder / "empty").mkdir()
    (folder / "no-events.jsonl").write_bytes(b'{"id":"1","occurredAt":"x"}\n{"id":1}\n')
    for name in ("no-gzip.jsonl.gz", "no-parquet.parquet", "no-duckdb.duckdb", "\udcff.duckdb"):
        (folder / name).write_bytes(b"something else" * 1000)
    duckdb.connect(str(folder / "no-table.duckdb")).close()

    done = command("verify", "--against", against)

    assert done.exit_code == 1
    assert done.error.startswith("AE-LOADED: The loaded events cannot be read: ")
    assert says in done.error


PASSWORD = "S3cret"
ONE = {"id": ["1"], "occurred_at": ["2024-05-06T00:00:00Z"]}
UNUSUAL = {
    "bytes as ids": (ONE | {"id": [b"\xff"]}, "Invalid UTF8"),
    "lists as times": (ONE | {"occurred_at": [["2024"]]}, "Unsupported cast from list"),
    "numbers as organizations": (ONE | {"organization_id": [7]}, "organization_id has int64"),
    "bytes as organizations": (ONE | {"organization_id": [b"\xff"]}, "Invalid UTF8"),
}
"""Columns of a Parquet file that no loader creates, and what the error says."""


@pytest.mark.parametrize(("columns", "says"), UNUSUAL.values(), ids=UNUSUAL)
def test_an_unusual_parquet_file_is_one_line(
    columns: dict[str, Any], says: str, service: Service, command: Command
) -> None:
    service.add(EVENTS)
    pq.write_table(pa.table(columns), command.folder / "a.parquet")

    done = command("verify", "--against", ".")

    assert done.exit_code == 1
    assert done.error.startswith("AE-LOADED: The loaded events cannot be read: 'a.parquet': ")
    assert says in done.error


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.parquet"])
@pytest.mark.parametrize(
    "at",
    [pytest.param(n, marks=() if n % 30 == 0 else pytest.mark.long) for n in range(0, 100, 10)],
)
def test_a_damaged_file_is_one_line(name: str, at: int, service: Service, command: Command) -> None:
    """Wherever in it the damage is."""
    service.add(EVENTS)
    command("export", "--to", name).raise_for_exit_code()
    path = command.folder / name
    data = bytearray(path.read_bytes())
    damaged = slice(len(data) * at // 100, len(data) * (at + 10) // 100)
    data[damaged] = bytes(0xFF - byte for byte in data[damaged])
    path.write_bytes(data)

    done = command("verify", "--against", ".")

    if done.exit_code:
        assert done.error.startswith(
            (f"AE-LOADED: The loaded events cannot be read: '{name}': ", "AE-DIFFERENT: ")
        )


NO_PLACES = {
    "a driver in the scheme": "postgresql+psycopg2://reader:S3cretS3cret@db/warehouse",
    "another database": "mysql://reader:S3cret@db/warehouse.db",
    "a connection string": "host=db user=reader PASSWORD = S3cret dbname=warehouse",
    "a missing slash": "postgresql:/reader:S3cret@db/warehouse",
    "no scheme": "reader:S3cret@db/warehouse",
    "an @ in the password": "Postgresql://reader:p@S3cret@db/warehouse",
    "a slash in the password": "postgres://reader:p/S3cret@db/warehouse",
    "a slash and a mark": "postgres://reader:p/?host=S3cret@db/warehouse",
}
"""Texts that are no place, or of which a part of the password looks like the host."""


@pytest.mark.parametrize("against", NO_PLACES.values(), ids=NO_PLACES)
def test_a_password_is_not_shown_as_part_of_a_path_or_a_host(
    against: str, command: Command
) -> None:
    """The error says which forms are accepted."""
    done = command("verify", "--against", against)

    assert done.exit_code == 1
    assert PASSWORD not in done.log
    assert done.error.startswith("AE-LOADED: The loaded events cannot be read: --against: ")
    assert "%40" in done.error or "postgresql:// or postgres://" in done.error
    with pytest.raises(OutputError, match="--from: ") as raised, open_database(against, "--from"):
        pass
    assert PASSWORD not in str(raised.value)


def test_a_path_may_look_like_a_url(service: Service, command: Command) -> None:
    """If it exists, it has no password."""
    service.add(EVENTS)
    folder = command.folder / "day:1@password=x"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(lines(EVENTS))

    verify(command, folder.name)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_leaves_early_changes_neither_the_verdict_nor_the_files(
    stream: str, service: Service, command: Command
) -> None:
    """As `head` does, which ends while the command still runs."""
    service.add(EVENTS)
    (command.folder / "a.jsonl").write_bytes(lines(EVENTS[:50]))
    arguments = ("--against", "a.jsonl", "--repair", "r", "--list", "l")

    with command.started("verify", *arguments) as run:
        getattr(run, stream).close()
        assert run.wait(60) == 1
        log = b"" if stream == "stderr" else run.stderr.read()

    assert log == b"" or log.splitlines()[-1].startswith(b"AE-DIFFERENT: ")
    assert len((command.folder / "r").read_bytes().splitlines()) == 1 + 150
    assert len((command.folder / "l").read_bytes().splitlines()) == 1 + 150


def test_a_reader_that_leaves_early_is_no_error_if_nothing_differs(
    service: Service, command: Command
) -> None:
    service.add(EVENTS)
    (command.folder / "a.jsonl").write_bytes(lines(EVENTS))

    with command.started("verify", "-q", "--against", "a.jsonl") as run:
        run.stdout.close()
        assert run.wait(60) == 0
        assert run.stderr.read() == b""


def test_wrong_options_are_one_line(command: Command) -> None:
    file = command("verify", "--against", "a.jsonl", "--table", "x")
    future = command("verify", "--against", "a.jsonl", "--start", "9000-01-01T00:00:00Z")

    assert file.error == "AE-SETTINGS: --table names a table of a database: leave it out for a file"
    assert future.error.startswith("AE-SETTINGS: --start is in the future")


def test_times_are_understood_as_loaders_write_them() -> None:
    found = instants_of(
        [
            "2024-05-06 07:08:09", "2024-05-06T07:08:09.50+02:00", "2024-05-06 07:08:09+00",
            "2024-05-06 07:08:09-0230", "2024-05-06", "2024-05-06T07:08:09+2", "x", None,
        ]
    )  # fmt: skip

    assert found == [
        "2024-05-06T07:08:09", "2024-05-06T05:08:09.5", "2024-05-06T07:08:09",
        "2024-05-06T09:38:09", "2024-05-06T00:00:00", None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        ("timestamp without time zone", 1_000),
        ("timestamp(3) with time zone", 1_000_000),
        ("timestamp(0) without time zone", 1_000_000_000),
        ("TIMESTAMP_NS", 1),
        ("timestamp[ms, tz=UTC]", 1_000_000),
        ("date", 86_400_000_000_000),
        ("date32[day]", 86_400_000_000_000),
        ("text", 0),
    ],
)
def test_the_precision_of_a_column_is_that_of_its_type(kind: str, unit: int) -> None:
    assert find_columns({"ID": "text", "occurredAt": kind}, "x").time.unit_nanoseconds == unit


@pytest.mark.parametrize(
    "kind", ["bigint", "UINTEGER", "HUGEINT", "int64", "uint8", "double", "decimal128(9, 0)"]
)
def test_organizations_are_no_numbers(kind: str) -> None:
    """No row would be of an organization in the settings; a report does not need to know."""
    types = {"id": "text", "occurred_at": "text", "organization_id": kind}
    columns = find_columns(types, "x")
    with pytest.raises(OutputError, match=r"organization_id has .*, not text"):
        check_organizations(columns, types, "x")


@pytest.mark.parametrize("kind", ["uuid", "character varying(36)", "string", "interval"])
def test_organizations_are_anything_else(kind: str) -> None:
    types = {"id": "text", "occurred_at": "text", "organization_id": kind}
    columns = find_columns(types, "x")
    check_organizations(columns, types, "x")

    assert columns.organization == "organization_id"


def test_a_folder_that_is_a_link_is_read_once(service: Service, command: Command) -> None:
    """Also if it leads back to where it is."""
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


def test_a_folder_that_cannot_be_read_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its events would all be missing, and be repeated by a repair."""
    (tmp_path / "a.jsonl").touch()
    inside = tmp_path / "inside"
    inside.mkdir()
    scandir = os.scandir

    def refuses(path: str) -> Any:
        if Path(path) == inside:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuses)
    with pytest.raises(OutputError, match=r"AE-LOADED: .*Permission denied"):
        LoadedFiles(tmp_path)


def test_a_signal_ends_the_reading_of_what_was_loaded(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    """It may take long, and nothing has been requested yet."""
    stop = Stop()
    within = Range(EARLIEST, Instant("2027-01-01T00:00:00"))

    class Loaded:
        def rows(self, within: Range) -> Iterator[list[Row]]:
            yield [Row(None, "a", within.end)]
            stop.request(signal.SIGTERM)
            yield [Row(None, "b", within.end)]

    common: Any = SimpleNamespace(stop=stop, quiet=True)
    loaded: Any = Loaded()
    loaded.name, loaded.guesses_organizations = "loaded", False
    with closing(Comparison(tmp_path / "rows", within, 0)) as comparison:
        lists = DifferenceLists(None)
        verification = Verification(read_settings(settings), common, comparison, lists, None)
        with pytest.raises(StoppedError):
            verification.read_loaded(loaded, within)
        assert comparison.rows == 1
