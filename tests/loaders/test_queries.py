"""The SQL of `docs/fields.md` runs on the real engines, and its results fit the events."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest

from tap_audit_events.sandbox import generate
from tests.builders import an_event
from tests.loaders.cases import CASES
from tests.loaders.duckdb_file import TargetDuckdb
from tests.loaders.fields import EXAMPLE, LOCATIONS, fields
from tests.loaders.files import TargetCsv
from tests.loaders.pipeline import PROJECT
from tests.loaders.postgres import PipelinewisePostgres, PostgresLoader
from tests.loaders.trial import Trial

pytestmark = [pytest.mark.loaders, pytest.mark.usefixtures("servers")]

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
PAGE = (PROJECT / "docs" / "fields.md").read_text()
OF_REQUEST = [an_event(id=f"request-{n}", at=f"2026-01-16T07:08:0{n}Z") for n in range(3)]
EVENTS = [*generate(300, days=5, seed=4, until=NOON), *OF_REQUEST, EXAMPLE]

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module", params=LOCATIONS)
def loaded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Trial]:
    """The events in the tables of a loader."""
    request.getfixturevalue("servers")
    (case,) = (case for case in CASES if case.name == request.param)
    with ExitStack() as stack:
        trial = Trial.start(case, tmp_path_factory.mktemp("loaded") / "trial", stack)
        trial.service.add(EVENTS)
        trial.load().check()
        yield trial


def test_each_field_is_where_the_page_says(loaded: Trial) -> None:
    """This holds for each loader whose columns are on the page."""
    for field in fields():
        found = _value(loaded, LOCATIONS[loaded.case.name](field))
        if field.is_object:
            assert json.loads(found) == field.example
        elif field.name == "occurredAt":
            assert datetime.fromisoformat(found).replace(tzinfo=UTC) == datetime.fromisoformat(
                field.example
            )
        else:
            assert found == field.example, field.name


def _value(trial: Trial, expression: str) -> str:
    """The value of an expression, or of a column, for the example."""
    if isinstance(trial.loader, TargetCsv):
        (row,) = (row for row in trial.loader.rows() if row["id"] == EXAMPLE["id"])
        return str(row[expression])
    sql = f"SELECT {expression} FROM audit_events WHERE id = '{EXAMPLE['id']}'"  # noqa: S608
    ((value,),) = _query(trial, sql)
    return str(value)


def _without_zone(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=None)


def _query(trial: Trial, sql: str) -> Rows:
    if isinstance(trial.loader, TargetDuckdb):
        return trial.loader.query(sql)
    assert isinstance(trial.loader, PostgresLoader)
    return [tuple(line.split("\t")) for line in trial.loader.query(sql)]


def _documented(trial: Trial, name: str) -> Rows:
    """The rows of a query of the page, as text."""
    if isinstance(trial.loader, TargetCsv):
        pytest.skip("a file has no SQL")
    engine = "duckdb" if isinstance(trial.loader, TargetDuckdb) else "postgresql"
    (sql,) = re.findall(rf"<!-- sql: {engine}, {name} -->\n```sql\n(.*?)```", PAGE, re.DOTALL)
    if isinstance(trial.loader, PipelinewisePostgres):
        sql = sql.replace('"occurredAt"', "occurredat")
    return [tuple(map(str, row)) for row in _query(trial, sql)]


def _time(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["occurredAt"])


def test_the_documented_query_counts_events_a_day(loaded: Trial) -> None:
    days = Counter(event["occurredAt"][:10] for event in EVENTS)

    assert _documented(loaded, "events a day") == [(day, str(days[day])) for day in sorted(days)]


def test_the_documented_query_counts_actions_by_actor(loaded: Trial) -> None:
    found = _documented(loaded, "who did what")
    counts = Counter(
        (event["actor"]["type"], event["actor"]["id"], event["action"]["type"]) for event in EVENTS
    )

    assert {
        (kind, actor, action): int(count) for kind, actor, _, action, count, _ in found
    } == counts
    assert [int(row[4]) for row in found] == sorted(counts.values(), reverse=True)


def test_the_documented_query_finds_the_last_sign_in_of_each_user(loaded: Trial) -> None:
    found = _documented(loaded, "last sign-in")
    last: dict[str, datetime] = {}
    for event in EVENTS:
        if event["action"]["type"] == "user_sign_in" and event["actor"]["type"] == "user":
            person = event["actor"]["id"]
            last[person] = _without_zone(event["occurredAt"])

    assert last
    assert {person: _without_zone(found_last) for person, _, found_last in found} == last


def test_the_documented_query_finds_the_events_of_a_request(loaded: Trial) -> None:
    found = _documented(loaded, "one request")
    expected = sorted([*OF_REQUEST, EXAMPLE], key=lambda event: (_time(event), event["id"]))

    assert [row[1] for row in found] == [event["id"] for event in expected]
    assert [json.loads(row[-1]) for row in found] == [
        event["action"]["details"] for event in expected
    ]
