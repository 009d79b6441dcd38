"""`audit-events verify` compares the loaded events with those that the service shows."""

import csv
import gzip
import json
import os
import random
import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from tap_audit_events.cli.loaded.batches import Range, batch_of
from tap_audit_events.cli.loaded.database import TemporaryDatabase
from tap_audit_events.cli.proof.comparison import Comparison
from tap_audit_events.cli.verify import read_loaded
from tap_audit_events.errors.exceptions import StoppedError
from tap_audit_events.events.instants import EARLIEST, LATEST, Instant
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.sandbox import Fault, Service
from tests.builders import ORGANIZATION_ID, an_event
from tests.cli.command import Command
from tests.cli.exported import HOSTILE, LOADED_FORMATS
from tests.cli.verifying import EVENTS, counts, lines, verify


@pytest.mark.parametrize("to", LOADED_FORMATS)
def test_an_export_is_equal_to_the_service(to: str, service: Service, command: Command) -> None:
    """This holds for each format, and for times of nine digits."""
    service.add([*EVENTS, *HOSTILE])
    command("export", "--to", to).raise_for_exit_code()

    done = verify(command, to)

    found = counts(done)
    assert sum(day["service"] for day in found.values()) == len(EVENTS) + len(HOSTILE)
    assert all(day["service"] == day["loaded"] for day in found.values())
    assert done.log.startswith("Compared: 206 events in ")
    assert command.left_over == []


@pytest.mark.parametrize(
    "name", ["TAP_AUDIT_EVENTS_ACTION_TYPES", "TAP_AUDIT_EVENTS_EXCLUDE_ACTION_TYPES"]
)
def test_events_that_the_settings_leave_out_are_too_many(
    name: str, service: Service, command: Command
) -> None:
    """Each of the two settings is warned about, as it changes what counts as a difference."""
    service.add([*EVENTS, an_event(id="y", action_type="noise")])
    command("export", "--to", "a.jsonl").raise_for_exit_code()

    type_ = "noise" if "EXCLUDE" in name else "workspace_create"
    done = command("verify", "--against", "a.jsonl", **{name: json.dumps([type_])})

    assert " shows: 1 too many. " in done.error
    (warning,) = done.warnings
    assert warning.endswith("types count as too many")


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "folder/x/a.jsonl"])
def test_each_difference_is_found(name: str, service: Service, command: Command) -> None:
    """One event is missing, one is too many, one is there twice, and one has another time."""
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
    """Characters of an id that would control the terminal are not printed."""
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


@pytest.mark.parametrize("order", [1, -1])
def test_a_row_of_the_same_time_is_preferred(
    order: int, service: Service, command: Command
) -> None:
    """Of two rows of an event, the one with another time is too many; the other one is equal."""
    service.add([an_event(at="2024-05-06T08:00:00Z")])
    rows = [an_event(at=f"2024-05-06T{hour}:00:00Z") for hour in ("08", "10")]
    (command.folder / "a.jsonl").write_bytes(lines(rows[::order]))

    done = verify(command, "a.jsonl", "--list", "l", exit_code=1)

    (row,) = csv.DictReader((command.folder / "l").read_text().splitlines())
    assert (row["kind"], row["loaded_at"]) == ("too many", "2024-05-06T10:00:00Z")
    assert counts(done)["2024-05-06"]["other_time"] == 0


def test_all_counts_are_those_of_the_range(service: Service, command: Command) -> None:
    """Events next to the range are read too, as the table may have rounded their times."""
    service.add(an_event(id=f"{n}", at=f"2024-05-06T08:00:{n:02}Z") for n in range(10, 20))
    command("export", "--to", "a.parquet").raise_for_exit_code()
    bounds = ("--start", "2024-05-06T08:00:12Z", "--end", "2024-05-06T08:00:14Z")
    exported = pq.read_table(command.folder / "a.parquet", columns=["id", "occurred_at"])
    pq.write_table(exported, command.folder / "rounded.parquet")

    done = command("verify", "--against", "rounded.parquet", *bounds)

    assert done.lines[-1].split() == ["total", "3", "3", "0", "0", "0"]
    assert done.log.startswith("Compared: 3 events in ")


def test_a_loader_does_not_wait_for_the_service(service: Service, command: Command) -> None:
    """While the command waits for the service, another program can write into the file."""
    service.add(EVENTS)
    command("export", "--to", "a.duckdb").raise_for_exit_code()
    wait = Fault.parse(f"status:code=429,retry-after=60@{len(service.requests) + 1}")
    service.add_faults([wait])

    with command.started("verify", "--against", "a.duckdb") as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        with duckdb.connect(str(command.folder / "a.duckdb")) as connection:
            connection.execute("ALTER TABLE audit_events ADD COLUMN new VARCHAR")
        run.send_signal(signal.SIGTERM)
        run.wait(60)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("2024-05-07T00:00:00Z", "2024-05-08T23:59:59.999999999Z"),
        (EVENTS[100]["occurredAt"], EVENTS[100]["occurredAt"]),
    ],
    ids=["days", "one instant"],
)
def test_only_the_range_is_compared(
    first: str, last: str, service: Service, command: Command
) -> None:
    """Both bounds are inclusive."""
    service.add(EVENTS)
    within = [event for event in EVENTS if first <= event["occurredAt"] <= last]
    (command.folder / "a.jsonl").write_bytes(lines([*within, *EVENTS[-5:]]))

    found = counts(verify(command, "a.jsonl", "--start", first, "--end", last))

    assert sorted(found) == sorted({event["occurredAt"][:10] for event in within})
    assert sum(day["loaded"] for day in found.values()) == len(within) > 0


def test_events_dated_in_the_future_are_not_compared(service: Service, command: Command) -> None:
    """The service is read up to now, whichever end is given, so a future event is not too many."""
    events = [*EVENTS, an_event(id="future", at="2999-01-01T00:00:00Z")]
    service.add(events)
    (command.folder / "a.jsonl").write_bytes(lines(events))

    found = counts(verify(command, "a.jsonl", "--end", "2999-12-31T00:00:00Z"))

    assert sum(day["loaded"] for day in found.values()) == len(EVENTS)


def test_a_row_matches_only_one_event(database: TemporaryDatabase) -> None:
    """A service that shows an id at two times shows two events; the table has one of them."""
    times = [Instant("2024-05-06T00:00:00"), Instant("2024-05-06T00:00:01")]
    within = Range(EARLIEST, LATEST)
    comparison = Comparison(database, within, 0, [ORGANIZATION_ID], are_several=False)
    comparison.add_loaded(batch_of([(None, "1", f"{times[1]}Z")]))
    comparison.add_service(ORGANIZATION_ID, ["1", "1"], times)

    found = list(comparison.differences())

    assert [(number, each.kind) for number, each in found] == [(0, "missing")]


def test_after_an_error_no_differences_are_reported(service: Service, command: Command) -> None:
    """If only a part of the range was read, the rest would look like differences."""
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=403@1")])
    (command.folder / "a.jsonl").write_bytes(lines(EVENTS))

    done = command("verify", "--against", "a.jsonl", "--repair", "r", "--list", "l")

    assert (done.exit_code, done.stdout) == (1, b"")
    assert done.error.startswith("AE-403: ")
    assert [path.name for path in command.folder.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize("levels", range(972, 992, 4))
def test_an_event_that_is_nested_too_deeply_is_reported_in_one_line(
    levels: int, service: Service, command: Command
) -> None:
    """How deep is too deep depends on Python. The page of the event may still be readable."""
    deep = b"[" * levels + b"]" * levels
    body = json.dumps({"auditEvents": [an_event(other=0)]}).encode().replace(b"0}", deep + b"}")
    service.add_faults([Fault(kind="body", text=body, when="*")])
    (command.folder / "a.jsonl").touch()

    done = command("verify", "--against", "a.jsonl")

    assert done.error.startswith(("AE-DIFFERENT: ", "AE-NESTING: "))


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_leaves_early_changes_neither_the_verdict_nor_the_files(
    stream: str, service: Service, command: Command
) -> None:
    """For example, `head` ends while the command still runs."""
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


def test_wrong_options_are_reported_in_one_line(command: Command) -> None:
    file = command("verify", "--against", "a.jsonl", "--table", "x")
    future = command("verify", "--against", "a.jsonl", "--start", "9000-01-01T00:00:00Z")
    several = command("verify", "--against", "a.jsonl", "--against", "b.jsonl")

    assert file.error == "AE-SETTINGS: --table names a table of a database: leave it out for a file"
    assert future.error.startswith("AE-SETTINGS: --start or start_date lies in the future")
    assert "Error: Invalid value for '--against': give it once" in several.log
    assert several.exit_code == 2


def test_a_signal_ends_the_reading_of_the_loaded_rows() -> None:
    """Reading them may take long, and nothing has been requested yet."""
    stop = Stop()
    within = Range(EARLIEST, Instant("2027-01-01T00:00:00"))
    added = []

    def batches(within: Range) -> Iterator[Any]:
        yield "first"
        os.kill(os.getpid(), signal.SIGTERM)
        yield "second"

    def add_loaded(batch: str) -> int:
        added.append(batch)
        return 1

    common: Any = SimpleNamespace(stop=stop, quiet=True)
    loaded: Any = SimpleNamespace(name="loaded", guesses_organizations=False, batches=batches)
    comparison: Any = SimpleNamespace(add_loaded=add_loaded)
    with pytest.raises(StoppedError):
        read_loaded(loaded, within, comparison, common)
    assert added == ["first"]
