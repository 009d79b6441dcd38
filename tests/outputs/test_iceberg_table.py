"""`audit-events export` into a table of Iceberg that others change, too."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import MonthTransform
from pyiceberg.types import NestedField, StringType, TimestampType, TimestamptzType

from tap_audit_events.api.arrow import SCHEMA
from tap_audit_events.sandbox import Fault, Service, serve
from tap_audit_events.sandbox.several import SeveralServices
from tests.cli.command import Command
from tests.cli.exported import expected, history
from tests.cli.failing import EVENTS, SMALL_PAGES, refused
from tests.outputs.iceberg_table import IcebergTable
from tests.outputs.object_store import KEY_ID, SECRET, object_store
from tests.running import settings_for

WAIT = Fault.parse("status:code=429,retry-after=60@5")
OLD, NEW = EVENTS[:50], EVENTS[50:]


@pytest.fixture
def output(command: Command) -> IcebergTable:
    return IcebergTable(command)


@contextmanager
def waiting(output: IcebergTable) -> Iterator[list[str]]:
    """A run that has read some events, and commits them after the block. Its log follows then."""
    log: list[str] = []
    with output.command.started(*output.arguments, **SMALL_PAGES) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        yield log
        run.send_signal(signal.SIGTERM)
        log += run.stderr.read().decode().splitlines()


def compacted(table: Table) -> None:
    """Replace all files, as a compaction does."""
    table.overwrite(table.scan().to_arrow())


def test_a_change_by_another_program_during_an_export_is_kept(
    output: IcebergTable, service: Service
) -> None:
    """An export continues also if the snapshot of the last one has expired."""
    service.add(OLD)
    output.export().raise_for_exit_code()
    service.add(NEW)
    service.add_faults([Fault.parse(f"status:code=429,retry-after=60@{len(service.requests) + 3}")])

    with waiting(output) as log:
        compacted(output.table)

    assert log[0].startswith("AE-STOPPED: ")
    assert len(output.events()) > len(OLD)
    compacted(output.table)
    table = output.table
    *before, _ = [each.snapshot_id for each in table.snapshots()]
    table.maintenance.expire_snapshots().by_ids(before).commit()
    output.export().raise_for_exit_code()
    assert output.events() == expected(EVENTS)


def test_a_table_that_was_rolled_back_is_refused(output: IcebergTable, service: Service) -> None:
    """The state is newer than the events, so events would be lost."""
    service.add(OLD)
    output.export().raise_for_exit_code()
    first = output.table.current_snapshot()
    service.add(NEW)
    output.export().raise_for_exit_code()
    last = output.table.current_snapshot()
    assert first is not None
    assert last is not None
    output.table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()

    assert f"set its current snapshot to {last.snapshot_id}" in refused(output.export())

    output.table.manage_snapshots().set_current_snapshot(last.snapshot_id).commit()
    output.export().raise_for_exit_code()
    assert output.events() == expected(EVENTS)


def test_organizations_have_a_state_each(command: Command) -> None:
    services = [Service(organization_id=each * 8 + "-0000-4000-8000-000000000000") for each in "AB"]
    for each in services:
        each.add(OLD)
    with serve(SeveralServices(services)) as server:
        settings = settings_for(services[0], server.base_url)
        output = IcebergTable(Command(command.folder, settings))
        output.export().raise_for_exit_code()
        services[0].add(NEW)
        organizations = [{"organization_id": each.organization_id} for each in services]
        del settings["organization_id"]
        settings["organizations"] = json.dumps(organizations)

        IcebergTable(Command(command.folder, settings)).export().raise_for_exit_code()

    ids = output.table.scan().to_arrow()["organization_id"].to_pylist()
    assert sorted(map(ids.count, set(ids))) == [len(OLD), len(EVENTS)]


def fields(**types: Any) -> list[NestedField]:
    """The columns of an export, all optional, with other types."""
    usual = {each.name: StringType() for each in SCHEMA} | {"occurred_at": TimestamptzType()}
    return [NestedField(number, name, type_, required=False)
            for number, (name, type_) in enumerate((usual | types).items(), 1)]  # fmt: skip


UNFIT = {
    "columns are missing": ([fields()[0]], "there is no id, occurred_at, "),
    "another type": (fields(occurred_at=TimestampType()), "occurred_at is timestamp, but must be"),
    "a column without a value": (
        [*fields(), NestedField(99, "x", StringType(), required=True)],
        "'x' must be optional",
    ),
}


@pytest.mark.parametrize(("columns", "problem"), UNFIT.values(), ids=UNFIT)
def test_a_table_with_other_columns_is_refused(
    columns: list[NestedField], problem: str, output: IcebergTable, service: Service
) -> None:
    output.catalog.create_namespace("audit")
    output.catalog.create_table("audit.events", Schema(*columns))
    service.add(OLD)

    assert problem in refused(output.export())

    assert output.table.current_snapshot() is None


def test_a_table_of_others_is_used_while_it_is_empty(
    output: IcebergTable, service: Service
) -> None:
    """It may have other partitions, and more columns."""
    schema = Schema(*fields(), NestedField(99, "note", StringType(), required=False))
    source = schema.find_field("occurred_at").field_id
    months = PartitionSpec(PartitionField(source, 1000, MonthTransform(), "month"))
    output.catalog.create_namespace("audit")
    table = output.catalog.create_table("audit.events", schema, partition_spec=months)
    service.add(OLD)
    output.export().raise_for_exit_code()
    table.refresh()
    assert table.scan().count() == len(OLD)

    table.transaction().remove_properties(*table.properties).commit_transaction()

    assert "has rows, but not the state of an export" in refused(output.export())


@pytest.mark.parametrize(
    ("to", "problem"),
    [
        ("iceberg:audit.events", "does not name a table"),
        ("iceberg:lake/events", "does not name a table"),
        ("iceberg:other.one/audit.events", "PYICEBERG_CATALOG__OTHER_ONE__URI"),
    ],
)
def test_a_table_or_catalog_that_is_not_known_is_one_line(
    to: str, problem: str, output: IcebergTable
) -> None:
    assert problem in refused(output.command("export", "--to", to))


def unreadable(output: IcebergTable, secret: str) -> dict[str, str]:
    (output.command.folder / ".pyiceberg.yaml").write_text(f"catalog:\n  lake: {{uri: {secret}\n")
    return {}


def refusing(output: IcebergTable, secret: str) -> dict[str, str]:
    """The service is no catalog: it responds with 404 to each request."""
    base_url = output.command.settings["base_url"]
    host = base_url.replace("//", f"//me:{secret}@")
    return {"PYICEBERG_CATALOG__LAKE__URI": host, "PYICEBERG_CATALOG__LAKE__TOKEN": secret}


def no_warehouse(output: IcebergTable, secret: str) -> dict[str, str]:
    (output.command.folder / "warehouse").write_text("not a folder")
    return {"PYICEBERG_CATALOG__LAKE__S3__SECRET_ACCESS_KEY": secret}


def no_database(output: IcebergTable, secret: str) -> dict[str, str]:
    return {"PYICEBERG_CATALOG__LAKE__URI": f"sqlite:////nothing/{secret}@/catalog.db"}


@pytest.mark.parametrize("broken", [unreadable, refusing, no_warehouse, no_database])
def test_a_catalog_that_fails_is_one_line_without_a_secret(
    broken: Callable[[IcebergTable, str], dict[str, str]], output: IcebergTable, service: Service
) -> None:
    secret = "S3cr3tOfTheCatalog"

    done = output.export(**broken(output, secret))

    assert "docs/export.md" in refused(done)
    assert secret not in done.log
    service.violations.clear()


def test_a_service_without_events_leaves_an_empty_table(output: IcebergTable) -> None:
    output.export().raise_for_exit_code()

    assert output.events() == []
    assert output.table.current_snapshot() is None


def test_the_table_is_what_verify_and_report_find(output: IcebergTable, service: Service) -> None:
    """Only the files of the days in the range are read."""
    service.add(EVENTS)
    output.export().raise_for_exit_code()
    against = ("verify", "--against", output.to)
    output.command(*against).raise_for_exit_code()

    output.table.delete("id == '00007'")

    done = output.command(*against)
    assert done.error.startswith("AE-DIFFERENT: ")
    assert "00007" in done.stdout.decode()
    year = ("--year", EVENTS[0]["occurredAt"][:4])
    done = output.command("report", "--from", output.to, *year, "--to", "year.svg")
    assert f"{len(EVENTS) - 1} events in" in done.raise_for_exit_code().log
    first, after = (EVENTS[n]["occurredAt"][:10] for n in (0, 40))
    for path in output.command.folder.rglob(f"*={first}/*.parquet"):
        path.unlink()
    output.command(*against, "--start", after).raise_for_exit_code()
    error = output.command("verify", "--against", "iceberg:lake/audit.db").error
    assert error.startswith("AE-LOADED: ")
    assert "NoSuchTableError" in error


def test_the_files_can_be_in_a_bucket(command: Command, service: Service) -> None:
    with object_store() as store:
        output = IcebergTable(
            command,
            **{
                "warehouse": f"s3://{store.bucket}/warehouse",
                "s3.endpoint": store.url,
                "s3.region": "us-east-1",
                "s3.access-key-id": KEY_ID,
                "s3.secret-access-key": SECRET,
            },
        )
        for events in (OLD, NEW):
            service.add(events)
            output.export().raise_for_exit_code()
        assert output.events() == expected(EVENTS)
        output.command("verify", "--against", output.to).raise_for_exit_code()

        service.add(history(1, start=len(EVENTS)))
        with store.refusing():
            done = output.export()

        assert "ACCESS_DENIED" in refused(done)
        assert not [each for each in (KEY_ID, SECRET) if each in done.log]
        output.export().raise_for_exit_code()
        assert len(output.events()) == len(EVENTS) + 1
