"""The queries of `docs/proof.md` are correct also for coverage records with odd times."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from random import Random
from typing import Any

import duckdb
import pytest

from tests.integrations.pipeline import PROJECT

PAGE = (PROJECT / "docs" / "proof.md").read_text()
START = datetime(2026, 5, 1, 10)  # noqa: DTZ001 - in UTC


Spans = Iterable[tuple[timedelta, timedelta]]


def known_hours(spans: Spans) -> list[datetime]:
    """Return the hours that are complete, if each span after `START` is a record."""
    return [row[1] for row in documented("lateness", spans) if row[2] is not None]


def gaps(spans: Spans) -> list[tuple[datetime, datetime]]:
    """Return the gaps, if each span after `START` is a record."""
    return [row[1:] for row in documented("gaps", spans)]


def documented(name: str, spans: Spans) -> list[tuple[Any, ...]]:
    """Return the result of a query, if each span after `START` is a record of one chain.

    Every other record has the organization in capital letters.
    """
    (sql,) = re.findall(rf"<!-- sql: {name} -->\n```sql\n(.*?)```", PAGE, re.DOTALL)
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE audit_events_coverage (organization_id VARCHAR, covered_from TIMESTAMP,"
            " covered_until TIMESTAMP, read_at TIMESTAMP, digest INT, previous_digest INT)"
        )
        connection.executemany(
            "INSERT INTO audit_events_coverage VALUES (?, ?, ?, ?, ?, ?)",
            [
                ("oO"[n % 2], START + start, START + end, START + end, n, n - 1 if n else None)
                for n, (start, end) in enumerate(spans)
            ],
        )
        return connection.execute(sql).fetchall()


def minutes(*bounds: float) -> list[timedelta]:
    return [timedelta(minutes=each) for each in bounds]


def test_a_range_that_ends_just_before_the_next_one_leaves_no_gap() -> None:
    """Loaders cut the end of a day, as in docs/recipes.md, to microseconds."""
    microsecond = timedelta(microseconds=1)
    start, end = timedelta(days=-200), timedelta(days=300)
    hour = timedelta(hours=1)
    assert known_hours([(start, hour - microsecond), (hour, 2 * hour)])[-2:] == [
        START,
        START + hour,
    ]
    assert gaps([(start, hour - microsecond), (hour, end - microsecond)]) == []

    longer = hour - 2 * microsecond
    assert START not in known_hours([(start, longer), (hour, 2 * hour)])
    assert gaps([(start, longer), (hour, end)]) == [(START + longer, START + hour)]


def test_capital_letters_in_the_organization_do_not_matter() -> None:
    """A state is continued if only the case of the letters in the setting changed."""
    hour = timedelta(hours=1)
    spans = [(n * hour, (n + 1) * hour) for n in range(4)]
    assert known_hours(spans) == [START + start for start, _ in spans]
    assert len(gaps(spans)) == len(["before", "after"])
    assert documented("chain", spans) == []
    assert [row[3] for row in documented("chain", [*spans, spans[3]])] == ["fork", "fork"]


def lateness(rows: str, *, steps: bool = False) -> list[tuple[Any, ...]]:
    """Return the result of the query for hours, if a query returns the records.

    With `steps`, return instead how many pieces of records the query looks at.
    """
    (sql,) = re.findall(r"<!-- sql: lateness -->\n```sql\n(.*?)```", PAGE, re.DOTALL)
    if steps:
        sql = sql.partition(",\nparts AS (")[0] + " SELECT count(*) FROM pieces"  # noqa: S608
    with duckdb.connect(config={"temp_directory": ""}) as connection:  # no files in this project
        connection.execute(f"CREATE TABLE audit_events_coverage AS {rows}")
        return connection.execute(sql).fetchall()


Record = tuple[str, datetime, datetime, datetime]


def expected_hours(records: list[Record]) -> list[tuple[str, datetime, datetime | None]]:
    """Return when each hour of the first days of the year was complete, as the page defines it."""
    tolerance, hour = timedelta(microseconds=1), timedelta(hours=1)
    found: list[tuple[str, datetime, datetime | None]] = []
    for organization in sorted({each[0].lower() for each in records}):
        for n in range(HOURS):
            start, end = NEW_YEAR + n * hour, NEW_YEAR + (n + 1) * hour
            within = [
                each
                for each in records
                if each[0].lower() == organization and each[1] < end and each[2] > start
            ]
            reached, is_covered = start, True
            for _, covered_from, covered_until, _ in sorted(within, key=lambda each: each[1:3]):
                is_covered = is_covered and covered_from - reached <= tolerance
                reached = max(reached, covered_until)
            is_covered = is_covered and reached >= end - tolerance and bool(within)
            read_at = max(each[3] for each in within) if is_covered else None
            found.append((organization, start, read_at))
    return found


NEW_YEAR = datetime(2026, 1, 1)  # noqa: DTZ001 - in UTC
HOURS = 100
RUNS = 365 * 24 * 12


@pytest.mark.parametrize("seed", range(8))
def test_the_query_for_hours_is_right_for_records_that_overlap(seed: int) -> None:
    """Ranges are read again, in part or as a whole, earlier or later; some lack a microsecond."""
    random = Random(seed)
    records: list[Record] = []
    for _ in range(random.randrange(10, 50)):
        first = random.choice([-100, 0, 3600 * random.randrange(HOURS), random.randrange(300_000)])
        seconds = random.choice([1, 300, 3600, 7200, 36_000, random.randrange(1, 300_000)])
        start = NEW_YEAR + timedelta(seconds=first)
        end = start + timedelta(seconds=seconds, microseconds=-random.choice([0, 0, 1, 2]))
        read_at = end + timedelta(seconds=random.randrange(-9000, 100_000))
        records.append((random.choice("oOp"), start, end, read_at))
    values = ", ".join(
        f"('{name}', TIMESTAMP '{start}', TIMESTAMP '{end}', TIMESTAMP '{read_at}')"
        for name, start, end, read_at in records
    )
    columns = "organization_id, covered_from, covered_until, read_at"

    found = lateness(f"SELECT * FROM (VALUES {values}) AS t ({columns})")  # noqa: S608

    expected = expected_hours(records)
    assert [row[:3] for row in found if row[1] < NEW_YEAR + timedelta(hours=HOURS)] == expected
    assert any(row[2] for row in expected)


@pytest.mark.parametrize("start", ["n * INTERVAL 5 minute", "INTERVAL 0 minute"])
def test_the_query_for_hours_looks_at_a_year_of_records_once(start: str) -> None:
    """A run each five minutes; the replication method is INCREMENTAL or FULL_TABLE.

    A query that joins each record with all hours, or with all that it covers, takes minutes.
    """
    end = "TIMESTAMP '2026-01-01' + (n + 1) * INTERVAL 5 minute"
    rows = (
        "SELECT CAST(o AS VARCHAR) AS organization_id,"  # noqa: S608 - our own
        f" TIMESTAMP '2026-01-01' + {start} AS covered_from,"
        f" {end} AS covered_until, {end} AS read_at"
        f" FROM range({RUNS}) AS t (n), range(2) AS organizations (o)"
    )

    found = lateness(rows)
    ((pieces,),) = lateness(rows, steps=True)

    assert len(found) == 2 * 365 * 24
    assert pieces <= 2 * RUNS
    if start.startswith("n"):
        assert {row[3] for row in found} == {timedelta()}
    else:
        assert {row[2] for row in found} == {datetime(2027, 1, 1)}  # noqa: DTZ001 - in UTC
