"""The calendar of `audit-events report`, with all its libraries."""

from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest

from tests.cli.command import Done
from tests.loaders.proof import audit_events

pytestmark = pytest.mark.integrations

TABLES = """
CREATE TABLE audit_events (id VARCHAR, occurredat TIMESTAMP);
INSERT INTO audit_events SELECT i, TIMESTAMP '2025-02-01 12:00:00' FROM range(100) AS t (i);
INSERT INTO audit_events VALUES ('one', '2025-03-01 00:00:00'), ('before', '2024-12-31 23:59:59');
CREATE TABLE audit_events_coverage
    (organization_id VARCHAR, covered_from TIMESTAMP, covered_until TIMESTAMP);
INSERT INTO audit_events_coverage VALUES
    ('o', '0001-01-01', '2025-05-03'), ('o', '2025-05-04 12:00:00', '2026-01-01');
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the tables."""
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as connection:
        connection.execute(TABLES)
    return tmp_path


def report(folder: Path, to: str, year: str = "2025") -> Done:
    return audit_events(
        folder, {}, "report", "--from", "warehouse.duckdb", "--year", year, "--to", to
    )


def test_the_picture_has_a_title_and_a_description(folder: Path) -> None:
    """They state the events and the missing time, also for a year without events."""
    report(folder, "calendar.svg").raise_for_exit_code()
    report(folder, "empty.svg", year="1999").raise_for_exit_code()

    svg = ElementTree.parse(folder / "calendar.svg").getroot()  # noqa: S314 - our own file
    names = [svg.find(f"{{http://www.w3.org/2000/svg}}{name}") for name in ("title", "desc")]
    assert svg.get("role") == "img"
    assert [each.text for each in names if each is not None] == [
        "Audit events in 2025",
        "101 events; not covered: 1 gap, 36.0 hours until 2026-01-01 00:00 UTC",
    ]
    assert "0 events; no time is missing" in (folder / "empty.svg").read_text()


def test_without_coverage_records_the_number_of_organizations_is_not_shown(folder: Path) -> None:
    """The number is unknown, so the events are not attributed to 0 organizations."""
    with duckdb.connect(str(folder / "warehouse.duckdb")) as connection:
        connection.execute("DELETE FROM audit_events_coverage")
    report(folder, "calendar.svg").raise_for_exit_code()
    assert "101 events; not covered: 1 gap, 8,760.0 hours" in (folder / "calendar.svg").read_text()


def test_an_error_of_the_report_is_one_line(folder: Path) -> None:
    assert report(folder, "calendar.png").error.startswith("AE-EXPORT: --to 'calendar.png' has no")
    (folder / "warehouse.duckdb").unlink()
    assert report(folder, "calendar.svg").error.startswith("AE-LOADED: ")
