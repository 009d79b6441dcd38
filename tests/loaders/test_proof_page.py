"""The SQL and the Python of `docs/proof.md` run on tables that real loaders wrote."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.builders import an_event
from tests.integrations.pipeline import PROJECT
from tests.loaders.cases import CASES
from tests.loaders.duckdb_file import TargetDuckdb
from tests.loaders.pipeline import load, tap_command, written
from tests.loaders.postgres import PostgresLoader
from tests.loaders.postgres_server import USER
from tests.loaders.proof import audit_events, python_of_proof
from tests.loaders.trial import Trial
from tests.project.pages import sections
from tests.running import run, settings_for

pytestmark = [pytest.mark.loaders, pytest.mark.usefixtures("servers")]

PAGE = (PROJECT / "docs" / "proof.md").read_text()
Rows = list[tuple[str, ...]]


@pytest.fixture(params=["meltanolabs-target-postgres, raw_event", "target-duckdb, raw_event"])
def trial(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trial]:
    """A loader, and a service with ten events on each of three days."""
    (case,) = (case for case in CASES if case.name == request.param)
    with ExitStack() as stack:
        trial = Trial.start(case, tmp_path / "trial", stack)
        trial.service.add(
            [an_event(id=f"{n:02}", at=f"2026-01-0{1 + n // 10}T08:{n:02}:00Z") for n in range(30)]
        )
        yield trial


def load_until(trial: Trial, end: str, state: Any = None) -> Any:
    """Load both streams up to a time, and return the state."""
    settings = settings_for(
        trial.service, trial.base_url, raw_event=True, start_date="2026-01-01T00:00:00Z",
        end_date=end,
    )  # fmt: skip
    catalog = json.loads(run(settings, "--discover").stdout)
    for stream in catalog["streams"]:
        (root,) = [each for each in stream["metadata"] if not each["breadcrumb"]]
        root["metadata"]["selected"] = True
    command = [
        *tap_command(trial.folder, settings, state),
        *("--catalog", written(trial.folder / "catalog.json", catalog)),
    ]
    return load([command, trial.loader.command()], trial.folder).check().state


def load_three_days(trial: Trial) -> list[Any]:
    states = [None]
    for day in (2, 3, 4):
        states.append(load_until(trial, f"2026-01-0{day}T00:00:00Z", states[-1]))
    return states


def documented(trial: Trial, name: str) -> Rows:
    (sql,) = re.findall(rf"<!-- sql: {name} -->\n```sql\n(.*?)```", PAGE, re.DOTALL)
    return query(trial, sql)


def query(trial: Trial, sql: str) -> Rows:
    """The rows of a query as text, in which a null is empty."""
    if isinstance(trial.loader, PostgresLoader):
        return [tuple(line.split("\t")) for line in trial.loader.query(sql)]
    assert isinstance(trial.loader, TargetDuckdb)
    rows = trial.loader.query(sql)
    return [tuple("" if value is None else str(value) for value in row) for row in rows]


def change(trial: Trial, sql: str) -> None:
    if isinstance(trial.loader, PostgresLoader):
        trial.loader.query(sql)
    else:
        assert isinstance(trial.loader, TargetDuckdb)
        with duckdb.connect(str(trial.loader.file)) as connection:
            connection.execute(sql)


def test_the_documented_queries_find_gaps_lateness_and_broken_chains(trial: Trial) -> None:
    """The chain is complete until one record is deleted."""
    load_three_days(trial)
    organization = trial.service.organization_id
    rest = (organization, "2026-01-04 00:00:00", "2027-01-01 00:00:00")

    assert documented(trial, "gaps") == [rest]
    assert documented(trial, "chain") == []
    hours = documented(trial, "lateness")
    assert len(hours) == 365 * 24
    known = [row for row in hours if row[2]]
    assert [row[1] for row in known][::24] == [f"2026-01-0{day} 00:00:00" for day in (1, 2, 3)]
    assert len(known) == 3 * 24
    late = datetime.fromisoformat(known[0][2]) - datetime(2026, 1, 1, 1)  # noqa: DTZ001 - in UTC
    assert known[0][3].startswith(f"{late // timedelta(days=1)} days")

    change(trial, "DELETE FROM audit_events_coverage WHERE covered_from = '2026-01-02'")
    gap = (organization, "2026-01-02 00:00:00", "2026-01-03 00:00:00")
    assert documented(trial, "gaps") == [gap, rest]
    assert [row[1:] for row in documented(trial, "chain")] == [
        ("2026-01-03 00:00:00", "2026-01-04 00:00:00", "broken link")
    ]
    known_hours = [row[1] for row in documented(trial, "lateness") if row[2]]
    assert len(known_hours) == 48
    assert not any(hour.startswith("2026-01-02") for hour in known_hours)


def place(trial: Trial) -> str:
    """The database, as a URL or a path."""
    loader = trial.loader
    if isinstance(loader, PostgresLoader):
        server = loader.server
        return f"postgresql://{USER}:{server.password}@127.0.0.1:{server.port}/{loader.database}"
    assert isinstance(loader, TargetDuckdb)
    return str(loader.file)


def test_the_calendar_counts_events_and_gaps(trial: Trial) -> None:
    """The time after the three days, to the end of the year or until now, is one gap."""
    load_three_days(trial)
    arguments = ("report", "--from", place(trial), "--year", "2026", "--to", "calendar.html")

    done = audit_events(trial.folder, {}, *arguments).raise_for_exit_code()
    assert "30 events in 2026, 1 gap\n" in done.log
    days = (trial.folder / "calendar.html").read_text()
    assert "2026-01-02" in days

    change(trial, "DELETE FROM audit_events_coverage WHERE covered_from = '2026-01-02'")
    done = audit_events(trial.folder, {}, *arguments).raise_for_exit_code()
    assert "30 events in 2026, 2 gaps\n" in done.log


def test_the_documented_query_finds_forks_and_new_chains(trial: Trial) -> None:
    """A loader died before its STATE was stored, and later a state was removed."""
    _, first, *_ = load_three_days(trial)
    load_until(trial, "2026-01-02T12:00:00Z", first)
    load_until(trial, "2026-01-05T00:00:00Z")

    problems = [row[3] for row in documented(trial, "chain")]
    assert problems == ["fork", "fork", "fork", "new chain"]


def test_the_documented_program_checks_the_digests(trial: Trial) -> None:
    """The digests are equal until one letter of an event is changed."""
    if not isinstance(trial.loader, PostgresLoader):
        pytest.skip("the page shows it for PostgreSQL")
    load_three_days(trial)
    sections("proof.md")["Recompute the digests"].write_files(trial.folder)

    def check() -> tuple[int, str]:
        command: list[str | Path] = [
            python_of_proof(),
            trial.folder / "check_digests.py",
            place(trial),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout or done.stderr

    assert check() == (0, "equal\n")
    change(trial, "UPDATE audit_events SET raw_event = replace(raw_event, 'Zoë', 'Zoe')"
                  " WHERE id = '07'")  # fmt: skip
    assert check() == (1, "different\n")
