"""Real query engines read exports as `docs/export.md` says, and what arrives is what it shows."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.engines import (
    EVENTS,
    HAVE_DAYS,
    NUMBER,
    READINGS,
    Reading,
    cells,
    export_all,
    read,
    run,
)
from tests.cli.exported import Event
from tests.project.pages import sections

pytestmark = pytest.mark.integrations


def examples(text: str) -> dict[str, str]:
    """Return each example, by the engine that it imports last."""
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return {re.findall(r"^(?:import|from) (\w+)", block, re.MULTILINE)[-1]: block
            for block in blocks}  # fmt: skip


PAGE = sections("export.md")["Read it"]
LINES = examples(PAGE.text.partition("### JSON Lines")[2])

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an export of each kind."""
    created = tmp_path_factory.mktemp("exports")
    export_all(created)
    return created


@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_the_engine_reads_every_value_and_the_page_shows_its_types(
    reading: Reading, folder: Path
) -> None:
    """The page is updated by `make test-integrations UPDATE=1`."""
    found = read(reading, folder)

    rows = {
        id_: (micros, text, json.loads(details), *day)
        for id_, micros, text, details, *day in found.rows
    }
    assert rows == {event["id"]: values_of(event, reading.output) for event in EVENTS}
    assert NUMBER in json.dumps(found.exact)
    assert NUMBER not in json.dumps(found.rounded)
    name, version, *others = cells(reading, found)
    shown = [line for line in PAGE.text.splitlines() if line.endswith(f"| {' | '.join(others)} |")]
    assert any(line.startswith(f"| {name} ") and version in line for line in shown)


def values_of(event: Event, output: str) -> tuple[object, ...]:
    """The microseconds, the exact time, the details and the day of an event."""
    text = event["occurredAt"]
    time = datetime.fromisoformat(f"{text[:-1][:26]}+00:00")
    micros = (time - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
    return micros, text, event["action"]["details"], *([text[:10]] if output in HAVE_DAYS else [])


@pytest.mark.parametrize("engine", LINES)
def test_the_columns_keep_ids_numbers_and_keys_of_json_lines(engine: str, folder: Path) -> None:
    """Each value is what the event has: ids, an integer of 23 digits, and keys of any case."""
    code = f"{LINES[engine]}\nimport json\nprint(json.dumps({SEEN[engine]}))\n"

    printed = run("spark" if engine == "pyspark" else "readers", code, folder)

    rows = json.loads(printed.splitlines()[-1])
    actions = {id_: json.loads(text) if isinstance(text, str) else text for id_, text in rows}
    assert actions == {event["id"]: event["action"] for event in EVENTS}
