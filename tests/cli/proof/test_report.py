"""How `audit-events report` reads the tables of a warehouse; nothing is drawn here."""

import re
import signal
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import duckdb
import pytest

from tap_audit_events.cli.loaded.database import temporary_database
from tap_audit_events.cli.loaded.sources import open_database
from tap_audit_events.cli.proof.calendar import Calendar
from tap_audit_events.cli.report import read_calendar, run_report, summary
from tap_audit_events.cli.terminal.process import lines_of
from tap_audit_events.errors.exceptions import OutputError, StoppedError
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import LOADED_FORMATS

NOW = datetime(2027, 1, 1)  # noqa: DTZ001 - in UTC
COVERAGE = (
    "CREATE TABLE audit_events_coverage (organization_id VARCHAR, action_types JSON,"
    " covered_from TIMESTAMP, covered_until TIMESTAMP)"
)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A database with an empty table of events, and none of coverage records."""
    path = tmp_path / "a.duckdb"
    execute(path, "CREATE TABLE audit_events (id VARCHAR, occurred_at TIMESTAMP)")
    return path


def execute(path: Path, *statements: str) -> None:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def calendar_of(path: Path) -> Calendar:
    with temporary_database() as own, open_database(str(path), "--from", own) as database:
        return read_calendar(database, 2026, None, NOW)


def test_without_coverage_records_a_report_says_that_gaps_are_not_known(warehouse: Path) -> None:
    """An export has no such records: its days are drawn, but no time counts as missing."""
    execute(warehouse, "INSERT INTO audit_events VALUES ('a', '2026-05-06'), ('b', '2025-05-06')")

    calendar = calendar_of(warehouse)

    assert calendar.gaps is None
    assert summary(calendar).startswith("1 event in 2026; there are no coverage records, so")


@pytest.mark.parametrize("to", [*LOADED_FORMATS, "events.duckdb"])
def test_a_report_can_be_made_of_an_export(
    to: str,
    service: Service,
    command: Command,
) -> None:
    """Events of other years are not counted."""
    times = ["2024-12-31T23:59:59.9999999Z", "2025-01-01T00:00:00Z", "2025-12-31T23:59:59.9999999Z",
             "2025-12-31T12:00:00+02:00", "2026-01-01T00:00:00Z"]  # fmt: skip
    service.add(an_event(id=f"{n}", at=time) for n, time in enumerate(times))
    command("export", "--to", to).raise_for_exit_code()
    page = command.folder / "a.html"

    run_report(str(command.folder / to), 2025, str(page), None, Stop())

    days = re.findall(r"<title>(.*?): ([1-9].*?) events?</title>", page.read_text())
    assert days == [("2025-01-01", "1"), ("2025-12-31", "2")]
    assert "there are no coverage records" in page.read_text()


def test_the_picture_is_valid_and_shows_gaps(warehouse: Path, tmp_path: Path) -> None:
    """A part of a day that is not covered is hatched."""
    execute(
        warehouse,
        COVERAGE,
        "INSERT INTO audit_events_coverage VALUES"
        " ('a', '[]', '2025-01-01', '2025-05-06 18:00'), ('a', '[]', '2025-05-07', '2026-01-01')",
    )
    run_report(str(warehouse), 2025, str(tmp_path / "a.svg"), None, Stop())

    root = ElementTree.parse(tmp_path / "a.svg").getroot()  # noqa: S314 - our own
    hatched = [each for each in root.iter() if each.get("fill") == "url(#hatch)"]
    assert ["".join(each.itertext()) for each in hatched] == [
        "2025-05-06: not covered",
        "not covered",
    ]


def test_a_report_reads_few_rows_of_many_records(warehouse: Path) -> None:
    """The database adds them up: three years of five organizations, which ran each hour."""
    execute(
        warehouse,
        "INSERT INTO audit_events SELECT n, TIMESTAMP '2024-01-01' + n * INTERVAL 1 minute"
        " FROM range(100_000) AS t (n)",
        COVERAGE,
        "INSERT INTO audit_events_coverage SELECT o, '[]', TIMESTAMP '2024-01-01' + n * INTERVAL 1"
        " hour, TIMESTAMP '2024-01-01' + (n + 1) * INTERVAL 1 hour"
        " FROM range(26_304) AS t (n), range(5) AS organizations (o) WHERE n <> 20_000",
    )
    rows = 0
    with temporary_database() as own, open_database(str(warehouse), "--from", own) as database:
        query = database.query

        def counted(sql: str) -> list[tuple[Any, ...]]:
            nonlocal rows
            found = query(sql)
            rows += len(found)
            return found

        database.query = counted  # type: ignore[method-assign]
        calendar = read_calendar(database, 2026, None, NOW)

    assert calendar.organizations == 5
    assert len(calendar.gaps or ()) == 1
    assert rows < 20


def test_a_report_without_a_table_of_events_does_not_advise_to_turn_on_another_stream(
    tmp_path: Path,
) -> None:
    """The table of the other stream is there, so that such advice would be wrong."""
    path = tmp_path / "a.duckdb"
    columns = "organization_id VARCHAR, covered_from TIMESTAMP, covered_until TIMESTAMP"
    execute(path, f"CREATE TABLE audit_events_coverage ({columns})")
    with pytest.raises(OutputError) as raised:
        calendar_of(path)
    (line,) = lines_of(raised.value)
    assert "off by default" not in line


def test_a_report_says_that_records_are_only_for_some_action_types(warehouse: Path) -> None:
    """Within the ranges of such records, events of other types may be missing."""
    execute(
        warehouse,
        COVERAGE,
        """INSERT INTO audit_events_coverage VALUES ('a', '[]', '2026-01-01', '2027-01-01'),
        ('a', '["X"]', '2025-01-01', '2026-01-01'), ('a', '["X"]', '2027-01-01', '2028-01-01')""",
    )
    assert summary(calendar_of(warehouse)) == "0 events in 2026, 0 gaps"

    execute(
        warehouse,
        """UPDATE audit_events_coverage SET action_types = '["X"]'
        WHERE covered_from = '2026-01-01'""",
    )
    assert summary(calendar_of(warehouse)) == (
        "0 events in 2026, 0 gaps; coverage records only for some action types: 1"
    )

    execute(warehouse, "ALTER TABLE audit_events_coverage DROP COLUMN action_types")  # deselected
    assert summary(calendar_of(warehouse)) == "0 events in 2026, 0 gaps"

    execute(
        warehouse,
        "ALTER TABLE audit_events_coverage ADD COLUMN exclude_action_types JSON",
        """UPDATE audit_events_coverage SET exclude_action_types = '["X"]'
        WHERE covered_from = '2026-01-01'""",
    )
    assert "coverage records only for some action types: 1" in summary(calendar_of(warehouse))


def test_an_organization_is_the_same_in_capital_letters(warehouse: Path) -> None:
    """If only the case of the setting changes, the state is continued, and so is the coverage."""
    execute(
        warehouse,
        COVERAGE,
        "INSERT INTO audit_events_coverage VALUES"
        " ('AB', '[]', '0001-01-01', '2026-03-01'), ('ab', '[]', '2026-03-01', '2027-01-01')",
    )
    calendar = calendar_of(warehouse)
    assert (calendar.gaps, calendar.organizations) == ((), 1)


def test_a_signal_ends_a_report_without_a_picture(warehouse: Path, tmp_path: Path) -> None:
    """Reading the tables may take long."""
    execute(warehouse, COVERAGE)
    stop = Stop()
    run_report(str(warehouse), 2026, str(tmp_path / "a.svg"), None, stop)
    stop.request(signal.SIGTERM)

    with pytest.raises(StoppedError):
        run_report(str(warehouse), 2026, str(tmp_path / "b.svg"), None, stop)

    assert {each.name for each in tmp_path.iterdir()} == {"a.duckdb", "a.svg"}
