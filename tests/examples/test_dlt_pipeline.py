"""`examples/dlt_pipeline.py` with the real dlt loads each event once into DuckDB."""

import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tap_audit_events.sandbox import Fault, Service, serve
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.builders import an_event
from tests.examples.dlt_runs import SCRIPT, TABLE, Database, Kill, Loads
from tests.examples.environments import python_of
from tests.integrations.pipeline import PROJECT
from tests.project.pages import sections, shell

pytestmark = pytest.mark.integrations

PIPELINE = "dlt.pipeline.pipeline"
DISPOSITIONS = ["append", "merge"]
FIRST, SECOND = 2500, 1500
NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)


@pytest.fixture
def loads(tmp_path: Path) -> Iterator[Loads]:
    service = Service()
    service.add_generated(FIRST, 10, 1, NOON)
    with serve(service) as server:
        yield Loads(service, server.base_url, Database(tmp_path), tmp_path)
    assert service.violations == []


@pytest.fixture(params=DISPOSITIONS)
def disposition(request: pytest.FixtureRequest, loads: Loads) -> str:
    loads.disposition = request.param
    return loads.disposition


def add_more(loads: Loads) -> None:
    loads.service.add_generated(SECOND, 1, 2, NOON + timedelta(days=1))


def check_each_once(loads: Loads, count: int = FIRST + SECOND) -> None:
    ids = loads.database.ids()
    assert len(ids) == len(set(ids)) == count


def test_each_run_loads_only_new_events(loads: Loads, disposition: str) -> None:
    """A run without new events sends one request and loads nothing."""
    assert loads.succeed() == FIRST
    add_more(loads)
    late = NOON + timedelta(days=1) - timedelta(seconds=100)
    assert loads.succeed() == SECOND
    loads.service.add([an_event("late", f"{late:%Y-%m-%dT%H:%M:%SZ}")])
    assert loads.succeed() == 1
    requests = len(loads.service.requests)
    assert loads.succeed() == 0
    assert len(loads.service.requests) == requests + 1
    check_each_once(loads, FIRST + SECOND + 1)
    assert loads.files_with(loads.service.access_token) == []


def test_nothing_of_a_package_is_loaded_if_the_service_fails(
    loads: Loads, disposition: str
) -> None:
    """The service fails in the middle of the first run, and in a later one."""
    for before, count in ((0, FIRST), (FIRST, SECOND)):
        requests = len(loads.service.requests)
        loads.service.add_faults([f"status:code=403@{requests + 2}"])
        failed = loads.run()
        assert failed.returncode == 1
        assert failed.stderr.splitlines()[-1].startswith("dlt_pipeline.py: AE-403: ")
        assert loads.succeed() == count
        check_each_once(loads, before + count)
        if not before:
            add_more(loads)


def is_second_page_of_second_package(request: ReceivedRequest) -> bool:
    return {"startTime", "cursor"} <= request.params.keys()


def test_packages_before_a_failure_are_loaded(loads: Loads, disposition: str) -> None:
    """Their state is stored, and covers only them."""
    refused = Fault(kind="status", when="1", code=403, only=is_second_page_of_second_package)
    loads.service.add_faults([refused])
    assert loads.run("--most-events", "1000").returncode == 1
    check_each_once(loads, 1000)
    add_more(loads)
    assert loads.succeed("--most-events", "1000") == FIRST + SECOND - 1000
    check_each_once(loads)


EXTRACTED = Kill("dlt.extract.extract", "commit_packages", "Extract", afterwards=True)
"""At this point, the load package is complete, but dlt has not saved its own state."""


@pytest.mark.parametrize(
    ("kill", "killed"),
    [
        pytest.param(EXTRACTED, 2, id="second run, before dlt saves its state"),
        pytest.param(Kill(PIPELINE, "load"), 1, id="first run, before load"),
    ],
)
def test_the_run_after_a_killed_one_loads_the_rest(loads: Loads, kill: Kill, killed: int) -> None:
    """The next run loads the events that are left, and the new ones."""
    if killed == 2:
        assert loads.succeed() == FIRST
        add_more(loads)
    assert loads.run(kill=kill).returncode == -signal.SIGKILL
    if killed == 1:
        add_more(loads)
    loads.succeed()
    check_each_once(loads)
    assert loads.succeed() == 0


def test_the_run_after_a_failed_load_loads_the_events(loads: Loads, disposition: str) -> None:
    """The database refuses the events of the second run, and accepts them later."""
    assert loads.succeed() == FIRST
    add_more(loads)
    after = f"occurred_at > '{NOON:%Y-%m-%dT%H:%M:%SZ}'"
    loads.database.execute(
        f"CREATE UNIQUE INDEX one_new ON {TABLE} ((CASE WHEN {after} THEN 1 END))"
    )
    failed = loads.run()
    assert failed.returncode == 1, failed.stdout
    check_each_once(loads, FIRST)
    loads.database.execute("DROP INDEX audit_events.one_new")
    loads.succeed()
    check_each_once(loads)


def test_texts_and_times_are_loaded_unchanged(loads: Loads, disposition: str) -> None:
    """Texts and numbers are exact, unknown fields are kept, and times have microseconds."""
    text = "quotes \" ' `, comma, \\ backslash, \t tab, \r\n lines, {braces}, 🦉, \u2028, NULL, \\N"
    hostile = an_event("🦉 '\"\\", "2026-01-15T11:59:58.123456789Z", entity={"name": text})
    raw = json.dumps(hostile).replace('"Research"', "0.10000000000000000000000000001", 1)
    loads.service.add_raw([raw.encode()])
    loads.service.add([an_event("unknown", "2026-01-15T11:59:59Z", severity={"level": 2**70})])
    assert loads.succeed() == FIRST + 2
    columns = "id, occurred_at_text, action_details, entity_name, other_fields"
    rows = loads.database.query(
        f"SELECT to_json(r) FROM (SELECT {columns}, CAST(occurred_at AT TIME ZONE 'UTC' AS VARCHAR)"  # noqa: S608 - a constant
        f" AS at FROM {TABLE} WHERE occurred_at >= '2026-01-15T11:59:58Z') r"
    )
    by_id = {row["id"]: row for row in rows}
    found = by_id[hostile["id"]]
    assert found["entity_name"] == text
    assert found["occurred_at_text"] == hostile["occurredAt"]
    assert found["at"] == "2026-01-15 11:59:58.123456"
    assert found["action_details"] == '{"fields": {"name": 0.10000000000000000000000000001}}'
    assert json.loads(by_id["unknown"]["other_fields"]) == {"severity": {"level": 2**70}}


def test_the_settings_may_be_in_the_files_of_dlt(loads: Loads, tmp_path: Path) -> None:
    """The files are `.dlt/secrets.toml` and `.dlt/config.toml`."""
    variables = loads.environment
    token = variables.pop("TAP_AUDIT_EVENTS_ACCESS_TOKEN")
    url = variables.pop("TAP_AUDIT_EVENTS_BASE_URL")
    organization_id = variables.pop("TAP_AUDIT_EVENTS_ORGANIZATION_ID")
    (tmp_path / ".dlt").mkdir()
    section = "[sources.audit_events]\n"
    config = f'{section}base_url = "{url}"\norganization_id = "{organization_id}"\n'
    (tmp_path / ".dlt" / "config.toml").write_text(config)
    secrets = tmp_path / ".dlt" / "secrets.toml"
    secrets.write_text(f'{section}access_token = "{token}"\n')
    assert loads.run(environment=variables).stdout == f"{FIRST} events loaded\n"
    assert loads.files_with(token) == [secrets]


def test_a_refused_token_is_not_shown(loads: Loads, tmp_path: Path) -> None:
    """Neither the output of the run nor a file of dlt contains it."""
    wrong = "acme_pat_" + os.urandom(8).hex()
    variables = loads.environment | {"TAP_AUDIT_EVENTS_ACCESS_TOKEN": wrong}
    failed = loads.run(environment=variables)
    assert failed.returncode == 1
    assert "AE-401" in failed.stderr
    assert wrong not in failed.stdout + failed.stderr
    assert loads.files_with(wrong) == []


def test_the_commands_of_the_page_load_new_events(tmp_path: Path) -> None:
    """They are run twice in a clone, where dlt is installed already."""
    install, *commands = sections("python.md")["dlt"].commands
    assert install == "pip install 'dlt[duckdb,postgres]'"
    (tmp_path / "examples").symlink_to(SCRIPT.parent)
    service = Service()
    service.add_generated(FIRST, 10, 1, NOON)
    with serve(service) as server:
        loads = Loads(service, server.base_url, Database(tmp_path), tmp_path)
        path = f"{python_of('dlt').parent}:{os.environ['PATH']}"
        variables = os.environ | loads.environment | {"PATH": path, "PYTHONPATH": str(PROJECT)}
        del variables["DESTINATION__DUCKDB__CREDENTIALS"]
        for count in (FIRST, 0):
            done = shell("; ".join(commands), tmp_path, variables | {"HOME": str(tmp_path)})
            assert (done.returncode, done.stdout) == (0, f"{count} events loaded\n"), done.stderr
        check_each_once(loads, FIRST)
