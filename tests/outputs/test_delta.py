"""An export into a Delta table in a folder: each event once, whatever others do to the table."""

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.outputs import delta_table
from tap_audit_events.outputs.output import Output
from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.exported import expected, history
from tests.cli.failing import EVENTS, refused
from tests.outputs.delta_log import commits, files, in_delta
from tests.outputs.opened import page_of

TO = "delta:events/"
EXPORT = ("export", "--to", TO)
NEW = history(60, start=100)


@pytest.fixture
def events(command: Command) -> Path:
    """The folder of the table."""
    return command.folder / "events"


@pytest.fixture
def table(events: Path, service: Service, command: Command) -> deltalake.DeltaTable:
    """A table that an export has created."""
    service.add(EVENTS)
    command(*EXPORT).raise_for_exit_code()
    return deltalake.DeltaTable(events)


def test_a_table_has_the_types_that_engines_read(table: deltalake.DeltaTable) -> None:
    schema = {field.name: json.loads(field.to_json()) for field in table.schema().fields}

    assert schema["occurred_at"]["type"] == "timestamp"
    assert schema["day"]["type"] == "date"
    assert {field["type"] for field in schema.values()} == {"string", "timestamp", "date"}
    assert table.protocol().min_reader_version == 1


def test_the_log_has_no_values_of_the_columns_that_describe_persons(
    events: Path, table: deltalake.DeltaTable
) -> None:
    """Otherwise each commit would have some names and addresses of each of its files."""
    assert "zoe@example.com" not in json.dumps(commits(events))


def test_a_part_is_committed_while_another_program_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts are small here. The first run creates the table; others commit between its parts."""
    monkeypatch.setattr(Output, "PART_EVENTS", 20)
    first, second = (delta_table.DeltaTable(f"delta:{tmp_path}/t") for _ in range(2))
    assert first.begin() == {}
    for start in range(0, 100, 20):
        first.write(page_of(EVENTS[start : start + 20]))
        assert first.is_part_complete
        first.commit({"organization_id": "x", "start": start})
        if start == 20:
            assert second.begin()["start"] == 20
            assert deltalake.DeltaTable(tmp_path / "t").optimize.compact()["numFilesAdded"] == 1

    second.write(page_of(EVENTS[40:]))
    with pytest.raises(SettingsError, match="AE-BUSY"):
        second.commit({"organization_id": "x", "start": 80})

    assert in_delta(tmp_path / "t") == expected(EVENTS)
    second.discard()
    assert second.begin()["start"] == 80


def test_of_two_runs_that_create_the_table_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one creates the table when the first one has seen that there is none."""
    first, second = (delta_table.DeltaTable(f"delta:{tmp_path}/t") for _ in range(2))
    for run in (first, second):
        assert run.begin() == {}
        run.write(page_of(EVENTS))
    write = deltalake.write_deltalake

    def write_later(target: str, rows: pa.RecordBatchReader, **options: Any) -> None:
        def batches() -> Iterator[pa.RecordBatch]:
            monkeypatch.setattr(deltalake, "write_deltalake", write)
            with ThreadPoolExecutor() as pool:
                pool.submit(second.commit, {"organization_id": "x"}).result()
            yield from rows

        write(target, pa.RecordBatchReader.from_batches(rows.schema, batches()), **options)

    monkeypatch.setattr(deltalake, "write_deltalake", write_later)
    with pytest.raises(SettingsError, match="AE-BUSY"):
        first.commit({"organization_id": "x"})

    assert in_delta(tmp_path / "t") == expected(EVENTS)


def maintain(table: deltalake.DeltaTable) -> None:
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    table.create_checkpoint()


def expire_log(table: deltalake.DeltaTable, folder: Path) -> None:
    """Remove the files of the log that are older than its property allows; all seem a year old."""
    for path in (folder / "_delta_log").iterdir():
        os.utime(path, (time.time() - 365 * 86_400,) * 2)
    deltalake.DeltaTable(folder).cleanup_metadata()


def test_an_export_continues_after_maintenance(
    events: Path, table: deltalake.DeltaTable, service: Service, command: Command
) -> None:
    """The state is still in the log, however old it is, and whatever was committed after it."""
    maintain(table)
    expire_log(table, events)
    assert len(files(events)) < 5 * len(commits(events))
    service.add(NEW)

    command(*EXPORT).raise_for_exit_code()

    assert in_delta(events) == expected(EVENTS + NEW)


def test_a_table_whose_log_lost_the_state_is_refused(
    events: Path, table: deltalake.DeltaTable, service: Service, command: Command
) -> None:
    """It would be unknown which events the table has. Another folder gets all of them."""
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 30 days"})
    maintain(table)
    expire_log(table, events)
    service.add(NEW)
    before = sorted(events.rglob("*"))

    assert "has no state any more" in refused(command(*EXPORT))

    assert sorted(events.rglob("*")) == before
    command("export", "--to", "delta:other").raise_for_exit_code()
    assert in_delta(command.folder / "other") == expected(EVENTS + NEW)


def add_column(table: deltalake.DeltaTable) -> None:
    table.alter.add_columns([deltalake.Field("note", deltalake.schema.PrimitiveType("string"))])


def test_a_table_that_was_restored_gets_the_events_after_its_version(
    events: Path, table: deltalake.DeltaTable, service: Service, command: Command
) -> None:
    """The transaction of the last export stays, while its events are gone."""
    for new in (NEW[:30], NEW[30:]):
        service.add(new)
        command(*EXPORT).raise_for_exit_code()
    deltalake.DeltaTable(events).restore(1)
    assert in_delta(events) == expected(EVENTS + NEW[:30])
    deltalake.DeltaTable(events).restore(0)
    assert in_delta(events) == expected(EVENTS)

    for _ in range(2):
        command(*EXPORT).raise_for_exit_code()
        assert in_delta(events) == expected(EVENTS + NEW)


def test_a_table_that_was_restored_by_a_time_is_refused(
    events: Path, table: deltalake.DeltaTable, service: Service, command: Command
) -> None:
    for new in (NEW[:30], NEW[30:]):
        service.add(new)
        command(*EXPORT).raise_for_exit_code()
    milliseconds = deltalake.DeltaTable(events).history()[1]["timestamp"]
    deltalake.DeltaTable(events).restore(datetime.fromtimestamp(milliseconds / 1000, UTC))

    assert "was restored by a time" in refused(command(*EXPORT))


def test_a_table_may_have_more_columns(
    events: Path, table: deltalake.DeltaTable, service: Service, command: Command
) -> None:
    add_column(table)
    service.add(NEW)

    command(*EXPORT).raise_for_exit_code()

    rows = deltalake.DeltaTable(events).to_pyarrow_table()
    assert (rows.num_rows, rows["note"].null_count) == (160, 160)


def replaced(change: Callable[[pa.Table], pa.Table], *by: str) -> Callable[[Path], None]:
    """Replaces the table by another one of the same rows."""

    def replace(folder: Path) -> None:
        rows = change(deltalake.DeltaTable(folder).to_pyarrow_table())
        deltalake.write_deltalake(
            folder, rows, mode="overwrite", schema_mode="overwrite", partition_by=[*by]
        )

    return replace


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (replaced(lambda rows: rows), "it must be partitioned by day"),
        (replaced(lambda rows: rows.drop(["actor_id"]), "day"), "there is no actor_id"),
        (
            replaced(lambda rows: rows.set_column(1, "id", pa.array(range(100))), "day"),
            "id is 'long', but must be 'string'",
        ),
    ],
)
def test_a_table_that_was_changed_is_refused(
    change: Callable[[Path], None],
    problem: str,
    events: Path,
    table: deltalake.DeltaTable,
    command: Command,
) -> None:
    change(events)

    assert problem in refused(command(*EXPORT))


def test_the_table_of_another_program_is_refused(events: Path, command: Command) -> None:
    deltalake.write_deltalake(events, pa.table({"id": ["1"]}))

    assert "was not created by an export" in refused(command(*EXPORT))


def test_a_folder_that_cannot_be_used_is_refused(
    events: Path, service: Service, command: Command
) -> None:
    service.add(EVENTS)
    events.write_text("a file")
    assert refused(command(*EXPORT)).count("delta:events/") == 1
    for folder in ("a%20b", "a#b", "a?b", "a[b", "a|b", "a^b", "a\\b", "a\tb"):
        assert "choose a path without " in refused(command("export", "--to", f"delta:{folder}"))
    for place in (
        *("", "//bucket/a", "s3://bucket/[a]", "ftp://a/b"),
        *("s3://key:SeCr3t@bucket/a", "az://a/b?sig=SeCr3t"),
    ):
        error = refused(command("export", "--to", f"delta:{place}"))
        assert "delta: must be followed by a folder" in error
        assert "SeCr3t" not in error


def test_the_table_is_what_verify_and_report_find(
    events: Path, table: deltalake.DeltaTable, command: Command
) -> None:
    """Only the files with events in the range are read."""
    against = ("verify", "--against", TO)
    command(*against).raise_for_exit_code()

    table.delete("id = '00007'")

    done = command(*against)
    assert done.error.startswith("AE-DIFFERENT: ")
    assert "00007" in done.stdout.decode()
    year = ("--year", EVENTS[0]["occurredAt"][:4])
    done = command("report", "--from", TO, *year, "--to", "year.svg")
    assert f"{len(EVENTS) - 1} events in" in done.raise_for_exit_code().log
    first, after = (EVENTS[n]["occurredAt"][:10] for n in (0, 40))
    for path in events.glob(f"day={first}/*.parquet"):
        path.unlink()
    command(*against, "--start", after).raise_for_exit_code()
    assert command("verify", "--against", "delta:others").error.startswith("AE-LOADED: ")
    error = command("verify", "--against", "delta:s3://key:SeCr3t@bucket/a").error
    assert "SeCr3t" not in error


def test_a_damaged_log_is_one_line(
    events: Path, table: deltalake.DeltaTable, command: Command
) -> None:
    (events / "_delta_log" / f"{0:020}.json").write_text("{")

    assert "_delta_log" in refused(command(*EXPORT))
