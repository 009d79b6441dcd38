"""Every example in `docs/python.md` runs as it is written."""

import ast
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tap_audit_events.sandbox import Fault, Service, serve
from tests.builders import an_event
from tests.examples.environments import run_python
from tests.integrations.pipeline import PROJECT
from tests.project.pages import Section, sections

SECTIONS = sections("python.md")
COUNT = 1500
UNTIL = datetime(2026, 1, 15, tzinfo=UTC)
ELSEWHERE = {"pandas", "Polars"}
"""Examples that need libraries of the environment of dlt."""


def snippet(section: Section) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", section.text, re.DOTALL))


FIRST = snippet(SECTIONS["The first page"])
LOG = FIRST[: FIRST.index("for page")]


@dataclass
class ExampleRunner:
    """Runs examples in a folder, against a service."""

    folder: Path
    service: Service
    variables: dict[str, str]

    def run(self, title: str) -> str:
        """Return the output of the example of a section."""
        code = snippet(SECTIONS[title])
        script = self.folder / "snippet.py"
        script.write_text(code if title == "The first page" else LOG + code)
        if title in ELSEWHERE:
            done = run_python("dlt", [script], folder=self.folder, environment=self.variables)
        else:
            done = subprocess.run(
                [sys.executable, "-W", "error", script],
                cwd=self.folder,
                env={"PYTHONPATH": str(PROJECT), "HOME": str(self.folder), **self.variables},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        assert done.returncode == 0, done.stderr
        assert self.service.access_token not in done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[ExampleRunner]:
    service = Service()
    service.add_generated(COUNT, 14, 1, UNTIL)
    with serve(service) as server:
        variables = {
            "TAP_AUDIT_EVENTS_BASE_URL": server.base_url,
            "TAP_AUDIT_EVENTS_ORGANIZATION_ID": service.organization_id,
            "TAP_AUDIT_EVENTS_ACCESS_TOKEN": service.access_token,
        }
        yield ExampleRunner(tmp_path, service, variables)
    assert service.violations == []


def events_on(service: Service, day: str) -> int:
    """Count the events that the service itself returns for a day."""
    events = json.loads(
        service.respond(
            "GET",
            f"/v1/organizations/{service.organization_id}/audit_events",
            f"startTime={day}T00:00:00Z&endTime={day}T23:59:59Z&pageSize=1000".encode(),
            {"Authorization": f"Bearer {service.access_token}"},
        ).body
    )["auditEvents"]
    return sum(event["occurredAt"].startswith(day) for event in events)


def test_the_example_of_the_first_page_prints_its_events(runner: ExampleRunner) -> None:
    lines = runner.run("The first page").splitlines()
    assert len(lines) == 1000
    assert all(line.startswith("2026-01-") for line in lines)


def test_the_example_with_stored_state_writes_each_event_once(runner: ExampleRunner) -> None:
    """The second run adds the new event, and cuts off what a crash left after the state."""
    title = "Into a file, with stored state"
    assert runner.run(title) == f"{COUNT}\n"
    runner.service.add([an_event("new", "2026-01-15T00:00:01Z")])
    with (runner.folder / "events.jsonl").open("ab") as file:
        file.write(b'{"id": "written before a cra')
    assert runner.run(title) == "1\n"
    assert runner.run(title) == "0\n"
    lines = (runner.folder / "events.jsonl").read_bytes().split(b"\n")[:-1]
    found = [json.loads(line)["id"] for line in lines]
    assert len(found) == len(set(found)) == COUNT + 1


@pytest.mark.integrations
@pytest.mark.parametrize("title", sorted(ELSEWHERE))
def test_the_examples_of_data_frames_count_events(title: str, runner: ExampleRunner) -> None:
    """The printed counts by action type add up to no more than all events."""
    printed = runner.run(title)
    counts = re.findall(r"\b(\d+)(?: +│)?$", printed, re.MULTILINE)
    assert "workspace_create" in printed or "action_type" in printed
    assert counts
    assert sum(map(int, counts)) <= COUNT


def test_the_example_of_duckdb_counts_all_events(runner: ExampleRunner) -> None:
    assert runner.run("DuckDB") == f"({COUNT},)\n"


def test_the_example_of_ocsf_prints_an_event_of_the_vendor(runner: ExampleRunner) -> None:
    event = json.loads(runner.run("OCSF"))
    assert event["metadata"]["product"]["vendor_name"] == "Example"
    assert event["class_uid"] == 6003


def test_the_example_of_asyncio_counts_all_events(runner: ExampleRunner) -> None:
    assert runner.run("asyncio") == f"{COUNT}\n"


def test_the_example_of_several_threads_counts_the_events_of_each_day(
    runner: ExampleRunner,
) -> None:
    expected = {day: events_on(runner.service, day) for day in ("2026-01-05", "2026-01-06")}
    assert all(expected.values())
    assert runner.run("Several threads") == f"{expected}\n"


def test_the_example_of_many_organizations_stores_each_event_once(runner: ExampleRunner) -> None:
    """The second run continues from the states in the rows."""
    runner.run("Many organizations")
    runner.service.add([an_event("new", "2026-01-15T00:00:01Z")])
    runner.run("Many organizations")
    with closing(sqlite3.connect(runner.folder / "events.sqlite")) as database:
        query = "SELECT count(*), count(DISTINCT event ->> 'id') FROM events"
        assert database.execute(query).fetchall() == [(COUNT + 1, COUNT + 1)]


def test_the_example_of_several_processes_prints_the_action_types(runner: ExampleRunner) -> None:
    assert "workspace_create" in ast.literal_eval(runner.run("Several processes"))


@pytest.mark.parametrize("title", ["In a notebook", "Ending early", "Logging"])
def test_the_other_examples_run_and_print_nothing(title: str, runner: ExampleRunner) -> None:
    assert runner.run(title) == ""


@pytest.mark.parametrize(
    ("fault", "printed"),
    [
        (Fault(kind="status", code=403), "do what it says, then run again: AE-403: "),
        (
            Fault(kind="status", code=429, retry_after="1200"),
            "do what it says, then run again: AE-RETRY-AFTER",
        ),
        (
            Fault(kind="body", text=b'{"auditEvents": 7}'),
            "the service does not follow its interface: AE-ENVELOPE",
        ),
        (None, ""),
    ],
)
def test_the_example_of_errors_prints_what_to_do(
    fault: Fault | None, printed: str, runner: ExampleRunner
) -> None:
    runner.service.add_faults([fault] if fault else [])
    found = runner.run("Errors")
    assert found.startswith(printed)
    assert bool(found) == bool(printed)
