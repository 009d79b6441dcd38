"""With this project's meltano.yml, Meltano loads all events first and then only new ones.

The demo checks that a second run into DuckDB writes only new events: `test_documents.py`.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tap_audit_events.sandbox import generate
from tests.builders import an_event
from tests.integrations.pipeline import (
    NOON,
    PROJECT,
    Event,
    Pipeline,
    a_pipeline,
    borrow_plugins,
)
from tests.project.pages import Section

pytestmark = pytest.mark.meltano

OBJECTS = ("action", "actor", "context", "scope", "entity")


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    borrow_plugins(tmp_path)
    with a_pipeline(tmp_path) as pipeline:
        yield pipeline


def as_rows(events: list[Event]) -> list[Event]:
    """Return the values in the events' columns; times have no zone there."""
    return [
        {
            "id": event["id"],
            "occurredat": datetime.fromisoformat(event["occurredAt"]).replace(tzinfo=None),
            **{name: event[name] for name in OBJECTS},
        }
        for event in sorted(events, key=_by_time)
    ]


def _by_time(event: Event) -> tuple[datetime, str]:
    return datetime.fromisoformat(event["occurredAt"]), event["id"]


def without_loader_columns(rows: list[dict[str, Any]]) -> list[Event]:
    return [
        {
            name: json.loads(value) if name in OBJECTS else value
            for name, value in row.items()
            if not name.startswith("_sdc_")
        }
        for row in rows
    ]


def ids(records: list[Event]) -> list[str]:
    return sorted(record["id"] for record in records)


def test_every_field_of_every_event_arrives_in_duckdb(pipeline: Pipeline) -> None:
    """This includes unknown fields, integers beyond 64 bits, and text that CSV would quote."""
    odd = an_event(
        id="odd",
        at="2026-01-15T11:00:00.000001Z",
        action={
            "type": "not_seen_before",
            "details": {"big": 10**30, "text": 'a,"b"\r\n\t\\ é 漢 🦉'},
        },
        actor={"type": "robot", "id": "r-1", "newField": [1, {"deep": None}]},
        context={},
    )
    events = [*generate(2_345, days=3, seed=7, until=NOON), odd]
    pipeline.service.add(events)

    pipeline.run("target-duckdb")

    assert without_loader_columns(pipeline.rows()) == as_rows(events)


def test_a_repair_leaves_out_what_the_pipeline_leaves_out(pipeline: Pipeline) -> None:
    """The commands are those of `docs/proof.md`."""
    text = (PROJECT / "docs" / "proof.md").read_text()
    section = Section(text.partition("#### With Meltano")[2].partition("####")[0])
    pipeline.service.add(generate(20, days=3, seed=7, until=NOON))
    stream_maps = {"audit_events": {"actor": "{'id': md5(actor['id'])}"}}
    for arguments in (
        ("select", "tap-audit-events", "audit_events", "*"),
        ("select", "--exclude", "tap-audit-events", "audit_events", "context*"),
        ("config", "set", "tap-audit-events", "stream_maps", json.dumps(stream_maps)),
    ):
        assert pipeline.meltano(*arguments).returncode == 0
    pipeline.run("target-duckdb")
    before = pipeline.rows()
    with duckdb.connect(str(pipeline.project / "output" / "warehouse.duckdb")) as connection:
        connection.execute(
            "DELETE FROM audit_events WHERE id IN (SELECT id FROM audit_events LIMIT 5)"
        )

    done = pipeline.execute(["bash", "-c", "\n".join(section.commands)])

    assert done.returncode == 0, done.stderr
    assert "5 missing" in done.stderr
    assert without_loader_columns(pipeline.rows()) == without_loader_columns(before)
    assert set(json.loads(pipeline.rows()[0]["actor"])) == {"id"}
