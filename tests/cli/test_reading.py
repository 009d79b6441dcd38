"""The examples of `docs/export.md` read exports with the real query engines."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import Service, generate
from tests.builders import an_event
from tests.cli.command import Command
from tests.examples.environments import run_python
from tests.integrations.pipeline import NOON
from tests.project.pages import sections

pytestmark = pytest.mark.integrations


def examples(text: str) -> dict[str, str]:
    """Return each example, by the engine that it imports last."""
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return {re.findall(r"^(?:import|from) (\w+)", block, re.MULTILINE)[-1]: block
            for block in blocks}  # fmt: skip


PAGE = sections("export.md")["Read it"]
TABLES, LINES = map(examples, PAGE.text.split("### JSON Lines"))
DATA_FRAMES = [name for name in TABLES if name not in {"pyiceberg", "deltalake"}]

SEEN = {
    "duckdb": "events.project('id, action').fetchall()",
    "polars": "[(event['id'], event['action']) for event in"
    " map(json.loads, events.collect()['event'])]",
    "pyspark": "events.select('id', 'action').collect()",
    "chdb": "[json.loads(line) for line in"
    " str(chdb.query(f'SELECT id, action FROM {events}', 'JSONCompactEachRow')).splitlines()]",
    "pandas": "events[['id', 'action']].values.tolist()",
}
"""Expressions for the ids and actions that the examples of JSON Lines have read."""

HUGE = 12345678901234567890123


def hostile(id_: str, **details: Any) -> dict[str, Any]:
    return an_event(id_, action={"type": "role_change", "details": details})


EVENTS = [
    *generate(120, days=3, seed=1, until=NOON),
    hostile("007", count=HUGE),
    hostile("1e5", count="text"),
    hostile("2024-05-06", Region="eu"),
    hostile("9F3A0E6E-0000-4000-8000-00000000000A", region="us", REGION="asia"),
]


def run(engine: str, code: str, folder: Path) -> str:
    """Return what a program prints."""
    environment = "readers"
    if engine == "pyspark":
        environment = "spark"
        if shutil.which("java") is None:
            pytest.skip("Spark needs Java, and there is none")
    script = folder / "example.py"
    script.write_text(code)
    # Spark and its workers talk to each other on this machine only.
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": ""}
    done = run_python(environment, [script], folder=folder, environment=local)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(service: Service, command: Command) -> Path:
    """A folder with an export of each kind."""
    service.add(EVENTS)
    for to in ("events/", "events.jsonl"):
        command("export", "--to", to, "--state", f"{to.strip('/')}.json").raise_for_exit_code()
    return command.folder


@pytest.mark.parametrize("engine", DATA_FRAMES)
def test_the_engine_counts_the_events_of_each_day(engine: str, folder: Path) -> None:
    printed = run(engine, TABLES[engine], folder)

    days = Counter(event["occurredAt"][:10] for event in EVENTS)
    found = re.findall(r"\b(20\d\d-\d\d-\d\d)\b\D+?(\d+)", printed)
    assert {day: int(count) for day, count in found} == days


def test_duckdb_opens_the_file_of_an_export(service: Service, command: Command) -> None:
    """The file was written with the oldest DuckDB, and is read with the newest."""
    service.add(EVENTS)
    command("export", "--to", "events.duckdb").raise_for_exit_code()
    (expression,) = re.findall(r"^A `\.duckdb` file: `(.+)`\.$", PAGE.text, re.MULTILINE)

    printed = run("duckdb", f"import duckdb\nprint(len({expression}.fetchall()))\n", command.folder)

    assert printed == f"{len(EVENTS)}\n"


def test_iceberg_reads_the_days_of_the_filter_and_adds_later_exports(
    service: Service, command: Command, folder: Path
) -> None:
    """The filter of the example begins on a day of its own."""
    code = TABLES["pyiceberg"].replace("2026-01-01", NOON.date().isoformat())
    today = sum(event["occurredAt"] >= NOON.date().isoformat() for event in EVENTS)
    assert 0 < today < len(EVENTS)
    assert run("pyiceberg", code, folder) == f"{today}\n"

    later = NOON.strftime("%Y-%m-%dT%H:%M:01Z")
    service.add([an_event("later", later)])
    command("export", "--to", "events/", "--state", "events.json").raise_for_exit_code()

    assert run("pyiceberg", code, folder) == f"{today + 1}\n"
    assert run("pyiceberg", code, folder) == f"{today + 1}\n"


def test_deltalake_converts_the_folder(folder: Path) -> None:
    """Afterwards the example of Polars still reads it."""
    assert run("deltalake", TABLES["deltalake"], folder) == f"{len(EVENTS)}\n"
    run("polars", TABLES["polars"], folder)


@pytest.mark.parametrize("engine", LINES)
def test_the_columns_keep_ids_numbers_and_keys_of_json_lines(engine: str, folder: Path) -> None:
    """Each value is what the event has: ids, an integer of 23 digits, and keys of any case."""
    code = f"{LINES[engine]}\nimport json\nprint(json.dumps({SEEN[engine]}))\n"

    printed = run(engine, code, folder)

    rows = json.loads(printed.splitlines()[-1])
    actions = {id_: json.loads(text) if isinstance(text, str) else text for id_, text in rows}
    assert actions == {event["id"]: event["action"] for event in EVENTS}
