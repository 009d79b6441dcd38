"""How `audit-events report` reads the tables of a warehouse; nothing is drawn here."""

import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

from tap_audit_events.cli.loaded.sources import open_database
from tap_audit_events.cli.proof.calendar_data import Calendar
from tap_audit_events.cli.report import read_calendar, run_report, summary
from tap_audit_events.cli.terminal.process import lines_of
from tap_audit_events.errors.exceptions import OutputError, StoppedError
from tap_audit_events.extraction.shutdown import Stop

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
    with open_database(str(path), "--from") as database:
        return read_calendar(database, 2026, None, datetime(2026, 12, 31, tzinfo=UTC))


def test_a_report_names_the_stream_that_it_needs(warehouse: Path) -> None:
    """An export has no table of this stream, and checking the name of the file would not help."""
    advice = "needs the table of the stream audit_events_coverage, which is off by default"
    with pytest.raises(OutputError) as raised:
        calendar_of(warehouse)
    (line,) = lines_of(raised.value)
    assert advice in line


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


def test_a_signal_ends_a_report_without_a_picture(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading the tables may take long. The test replaces the libraries for pictures."""
    execute(warehouse, COVERAGE)
    pictures = SimpleNamespace(svg_picture=str, html_page=str)
    monkeypatch.setitem(sys.modules, "tap_audit_events.cli.proof.calendar_picture", pictures)
    stop = Stop()
    run_report(str(warehouse), 2026, str(tmp_path / "a.svg"), None, stop)
    stop.request(signal.SIGTERM)

    with pytest.raises(StoppedError):
        run_report(str(warehouse), 2026, str(tmp_path / "b.svg"), None, stop)

    assert {each.name for each in tmp_path.iterdir()} == {"a.duckdb", "a.svg"}
