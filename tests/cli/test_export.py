"""`audit-events export`: each format holds every event, as the service sent it, once."""

import json
import stat
from datetime import UTC
from operator import itemgetter
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from tap_audit_events.outputs import duckdb_files
from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.cli.exported import (
    EVERY_FORMAT,
    FIRST,
    HOSTILE,
    expected,
    exported,
    history,
    without_nulls,
)
from tests.outputs.opened import begun, write_and_commit


def contents(command: Command, to: str) -> list[dict[str, object]]:
    return list(map(without_nulls, exported(command.folder / to)))


def test_the_state_file_may_be_in_the_folder(service: Service, command: Command) -> None:
    """An empty folder is accepted although it contains the lock of the state file."""
    (command.folder / "events").mkdir()
    for start in (0, 50):
        service.add(history(50, start=start))
        command("export", "--to", "events/", "--state", "events/s.json").raise_for_exit_code()

    assert contents(command, "events/") == expected(history(100))


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_a_last_page_without_events_updates_the_state(
    to: str, service: Service, command: Command
) -> None:
    """It completes a window with events out of order; the next export requests only later ones."""
    service.add(history(45))
    empty_page = Fault(kind="body", text=b'{"auditEvents": []}', when="3")
    service.add_faults(["displaced:places=3,event=5@1", empty_page])
    options = ("export", "--to", to, "--state", "s.json")
    few = {"TAP_AUDIT_EVENTS_PAGE_SIZE": "20", "TAP_AUDIT_EVENTS_CONCURRENCY": "1"}

    command(*options, **few).raise_for_exit_code()
    assert len(contents(command, to)) == 40
    command(*options, **few).raise_for_exit_code()

    found = sorted(contents(command, to), key=itemgetter("id"))
    assert found == expected(history(45))
    assert len(service.requests) == 4


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_pages_of_excluded_events_move_only_the_state(
    to: str, service: Service, command: Command
) -> None:
    """An output may begin without events; the next export continues after those left out."""
    *noise, shown = history(45)
    service.add(each | {"action": {"type": "noise"}} for each in noise)
    options = ("export", "--to", to, "--state", "s.json")
    settings = {
        "TAP_AUDIT_EVENTS_PAGE_SIZE": "20",
        "TAP_AUDIT_EVENTS_LOOKBACK_SECONDS": "0",
        "TAP_AUDIT_EVENTS_EXCLUDE_ACTION_TYPES": "noise",
    }

    done = command(*options, **settings).raise_for_exit_code()
    assert done.log.endswith("; 44 left out by exclude_action_types\n")
    service.add([shown])
    command(*options, **settings).raise_for_exit_code()

    assert contents(command, to) == expected([shown])
    assert service.requests[-1].params["startTime"] == f"{noise[-1]['occurredAt'][:19]}Z"


def test_the_output_and_the_state_file_must_differ(service: Service, command: Command) -> None:
    done = command("export", "--to", "a.jsonl", "--state", "./a.jsonl")

    assert done.error.startswith("AE-EXPORT: --to and --state name the same file")
    assert not service.requests


def test_only_events_of_the_range_are_exported(service: Service, command: Command) -> None:
    """Both ends are inclusive; the options override the settings."""
    service.add(history(100))
    start, end = "2024-05-06T03:00:00Z", "2024-05-07T01:00:00+00:00"

    command(
        *("export", "--to", "a.jsonl", "--start", start, "--end", end),
        TAP_AUDIT_EVENTS_START_DATE="2024-05-07T00:00:00Z",
        TAP_AUDIT_EVENTS_END_DATE="2024-05-08T00:00:00Z",
    ).raise_for_exit_code()

    within = [each for each in history(100) if start <= each["occurredAt"] <= end[:19] + "Z"]
    assert contents(command, "a.jsonl") == expected(within)
    assert 0 < len(within) < 100


def test_an_existing_folder_needs_no_slash(service: Service, command: Command) -> None:
    service.add(history(100))
    (command.folder / "events.parquet").mkdir()

    command("export", "--to", "events.parquet").raise_for_exit_code()

    days = sorted(path.name for path in (command.folder / "events.parquet").iterdir())
    assert days == ["day=2024-05-06", "day=2024-05-07", "day=2024-05-08"]


def test_events_of_days_out_of_order_are_all_exported(service: Service, command: Command) -> None:
    """An event out of order may belong to a day whose file is already complete."""
    events = [
        {**each, "occurredAt": f"2024-05-{1 + n // 10:02}T00:{n % 10:02}:00Z"}
        for n, each in enumerate(history(200))
    ]
    service.add(events)
    service.add_faults([Fault.parse("displaced:places=90,event=20@*")])

    command("export", "--to", "days/").raise_for_exit_code()

    found = sorted(str(each["id"]) for each in contents(command, "days/"))
    assert found == sorted(each["id"] for each in events)
    assert len(list((command.folder / "days").iterdir())) == 20


def test_other_tables_of_a_database_stay_unchanged(service: Service, command: Command) -> None:
    """An export changes only its own tables, with a state file and without one."""
    path = command.folder / "events.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 42 AS answer")
    service.add(HOSTILE)

    for arguments in ([], ["--state", "s.json"]):
        if arguments:
            with duckdb.connect(str(path)) as connection:
                connection.execute("DROP TABLE audit_events")
        command("export", "--to", "events.duckdb", *arguments).raise_for_exit_code()
        assert contents(command, "events.duckdb") == expected(HOSTILE)

    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("FROM mine").fetchall() == [(42,)]
        (state,) = connection.execute("SELECT state FROM audit_events_state").fetchall()
    assert json.loads(state[0]) == json.loads((command.folder / "s.json").read_text())["state"]


def test_a_link_is_followed_and_permissions_stay(service: Service, command: Command) -> None:
    service.add(HOSTILE)
    real = command.folder / "elsewhere.jsonl"
    real.write_text("old")
    real.chmod(0o640)
    (command.folder / "events.jsonl").symlink_to(real)

    command("export", "--to", "events.jsonl").raise_for_exit_code()

    assert (command.folder / "events.jsonl").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert contents(command, "elsewhere.jsonl") == expected(HOSTILE)


def test_small_row_groups_are_merged(service: Service, command: Command) -> None:
    """A file that grew in many runs can be read as efficiently as one that was written at once."""
    for start in range(0, 30, 10):
        service.add(history(10, start))
        command("export", "--to", "a.parquet", "--state", "s").raise_for_exit_code()

    assert pq.ParquetFile(command.folder / "a.parquet").num_row_groups == 1


def test_a_table_with_a_large_index_can_grow(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """DuckDB needs the whole index in memory, so a higher memory limit is set."""
    monkeypatch.setattr(duckdb_files, "MEMORY_LIMIT", "6MB")
    path = tmp_path / "a.duckdb"

    def export(events: list[dict[str, object]]) -> None:
        write_and_commit(begun(tmp_path, "a.duckdb"), events)

    export(history(1))
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "INSERT INTO audit_events SELECT t.* REPLACE (md5(n::VARCHAR) AS id)"
            " FROM audit_events AS t, range(80_000) AS numbers (n)"
        )
        connection.execute("CREATE INDEX by_id ON audit_events (id)")
    export(history(2))

    with duckdb.connect(str(path)) as connection:
        assert connection.table("audit_events").shape[0] == 1 + 80_000 + 2


def test_quiet_prints_nothing(service: Service, command: Command) -> None:
    service.add(HOSTILE)

    done = command("export", "--to", "a.jsonl", "-q").raise_for_exit_code()

    assert (done.stdout, done.log) == (b"", "")


@pytest.mark.parametrize("to", ["/", f"{'x' * 300}.jsonl"])
def test_a_path_that_cannot_be_written_is_reported_in_one_line(to: str, command: Command) -> None:
    """The path is the root folder, or its name is too long."""
    for arguments in [("--to", to), ("--to", to, "--state", "s.json")]:
        done = command("export", *arguments)
        assert done.exit_code == 1
        assert done.error.startswith("AE-EXPORT: ")


def test_times_of_a_table_can_be_read_into_python(service: Service, command: Command) -> None:
    """DuckDB 1.x needs another package for that, which the extra `[duckdb]` brings."""
    service.add(history(3))
    command("export", "--to", "a.duckdb").raise_for_exit_code()

    with duckdb.connect(command.folder / "a.duckdb") as connection:
        connection.execute("SET timezone = 'UTC'")
        (time,) = connection.execute("SELECT min(occurred_at) FROM audit_events").fetchall()[0]

    assert time == FIRST.replace(tzinfo=UTC)
