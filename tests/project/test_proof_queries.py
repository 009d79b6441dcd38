"""The queries of `docs/proof.md` are correct also for coverage records with odd times."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

import duckdb

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


def test_time_that_two_records_cover_counts_once() -> None:
    """After a fork whose records end at the fiftieth minute, the hour is not complete."""
    fork = [minutes(0, 10), minutes(0, 20), minutes(20, 30), minutes(30, 40), minutes(40, 50)]
    assert known_hours((start, end) for start, end in fork) == []
    assert known_hours((start, end) for start, end in [*fork, minutes(50, 60)]) == [START]


def test_a_gap_within_an_hour_is_found() -> None:
    parts = [minutes(0, 20), minutes(20.001, 60), minutes(60, 120)]
    assert known_hours((start, end) for start, end in parts) == [START + timedelta(hours=1)]


def test_fractions_of_seconds_do_not_add_up_to_less_than_an_hour() -> None:
    """The records of about seven minutes each cover 81 hours without a gap."""
    random = Random(3)
    bounds = [timedelta(minutes=7 * n, microseconds=random.randrange(10**6)) for n in range(700)]
    hours = known_hours(pairwise([timedelta(), *bounds[1:]]))
    assert hours == [START + timedelta(hours=n) for n in range(81)]


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
