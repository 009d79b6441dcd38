"""The gaps of a calendar, without a picture."""

from datetime import date, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from tap_audit_events.cli.loaded.database import temporary_database
from tap_audit_events.cli.loaded.sources import open_database
from tap_audit_events.cli.proof.calendar import Calendar, Span, year_span
from tap_audit_events.cli.report import read_calendar


def at(month: int, day: int, hour: int = 0) -> datetime:
    return datetime(2026, month, day, hour)  # noqa: DTZ001 - in UTC


YEAR = at(1, 1), at(3, 1)


def gaps_of(folder: Path, covered: dict[str, list[Span]], kind: str = "TIMESTAMP") -> list[Span]:
    """Return the gaps until the end of `YEAR`, if each span is a record of an organization."""
    path = folder / f"{kind}.duckdb"
    rows = [(name, *map(str, span)) for name, spans in covered.items() for span in spans]
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE audit_events (id TEXT, occurred_at TIMESTAMP)")
        connection.execute(
            "CREATE TABLE audit_events_coverage"
            f" (organization_id TEXT, covered_from {kind}, covered_until {kind})"
        )
        for row in rows:
            connection.execute("INSERT INTO audit_events_coverage VALUES (?, ?, ?)", row)
    with temporary_database() as own, open_database(str(path), "--from", own) as database:
        return list(read_calendar(database, 2026, None, YEAR[1]).gaps or ())


@pytest.mark.parametrize(
    ("covered", "gaps"),
    [
        ({}, [YEAR]),
        ({"a": [(datetime.min, at(4, 1))]}, []),  # noqa: DTZ901 - in UTC
        ({"a": [(at(2, 1), at(3, 1)), (at(1, 1), at(2, 1))]}, []),
        ({"a": [(at(1, 1), at(2, 1)), (at(1, 1), at(1, 5))]}, [(at(2, 1), at(3, 1))]),
        (
            {"a": [(at(1, 1), at(1, 9)), (at(1, 10), at(3, 1))], "b": [(at(1, 1), at(2, 27))]},
            [(at(1, 9), at(1, 10)), (at(2, 27), at(3, 1))],
        ),
        ({"a": [(at(1, 1), at(3, 1)), (at(1, 5), at(1, 6)), (at(1, 7), at(1, 8))]}, []),
        (
            {"a": [(at(1, 3), at(3, 1))], "b": [(at(1, 2), at(3, 1))]},
            [(at(1, 1), at(1, 3))],
        ),
    ],
)
def test_a_time_is_covered_only_if_all_organizations_cover_it(
    covered: dict[str, list[Span]], gaps: list[Span], tmp_path: Path
) -> None:
    """The records may overlap, as after a fork, and may be in any order."""
    assert gaps_of(tmp_path, covered) == gaps


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NS", "VARCHAR"])
def test_each_type_of_time_of_a_record_is_understood(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loaders also store times as text, and with a zone."""
    monkeypatch.setenv("TZ", "UTC")
    assert gaps_of(tmp_path, {"a": [(at(1, 1), at(2, 1))]}, kind) == [(at(2, 1), at(3, 1))]


def test_a_microsecond_is_not_a_gap(tmp_path: Path) -> None:
    """An `end_date` may end with many nines, and loaders keep only its microseconds."""
    microsecond = timedelta(microseconds=1)
    end = YEAR[1] - microsecond
    covered = [(YEAR[0] + microsecond, at(2, 1) - microsecond), (at(2, 1), end)]
    assert gaps_of(tmp_path, {"a": covered}) == []

    covered[0] = (YEAR[0], at(2, 1) - 2 * microsecond)
    (tmp_path / "TIMESTAMP.duckdb").unlink()
    assert gaps_of(tmp_path, {"a": covered}) == [(at(2, 1) - 2 * microsecond, at(2, 1))]


def test_a_gap_is_split_into_parts_of_days() -> None:
    gap = (at(1, 1, 12), at(1, 3, 6))
    calendar = Calendar(2026, {}, (gap,), until=YEAR[1], organizations=1)

    parts = [calendar.gaps_of(date(2026, 1, day)) for day in (1, 2, 3, 4)]

    assert parts == [[(0.5, 1.0)], [(0.0, 1.0)], [(0.0, 0.25)], []]


def test_the_span_of_a_year_does_not_extend_into_the_future() -> None:
    assert year_span(2026, at(2, 1)) == (at(1, 1), at(2, 1))
    assert year_span(2026, datetime(2030, 1, 1)) == (at(1, 1), datetime(2027, 1, 1))  # noqa: DTZ001
    assert year_span(2026, datetime(2020, 1, 1)) == (at(1, 1), at(1, 1))  # noqa: DTZ001
