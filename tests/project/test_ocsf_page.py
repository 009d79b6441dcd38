"""The recipes of `docs/ocsf.md` keep every event, as an export writes it."""

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from tap_audit_events.events.ocsf.conversion import to_ocsf
from tap_audit_events.events.page import parse_page
from tap_audit_events.sandbox import generate
from tests.builders import ORGANIZATION_ID
from tests.events.bodies import an_envelope
from tests.examples.environments import python_of
from tests.loaders import hostile
from tests.project.pages import sections

DEEP = "150 levels"


def code(section: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", sections("ocsf.md")[section].text, re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The events of the file `events.jsonl`, by their ids, in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    generated = generate(500, days=30, seed=5, until=datetime(2026, 1, 31, tzinfo=UTC))
    texts = [*(json.dumps(each).encode() for each in generated), *hostile.texts()]
    page = parse_page(an_envelope(*texts))
    lines = to_ocsf(page.texts, page.instants, ORGANIZATION_ID)
    (tmp_path / "events.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    return by_id(map(json.loads, lines))


def by_id(events: Iterator[Any]) -> dict[str, Any]:
    return {event["metadata"]["uid"]: event for event in events}


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_nulls(each) for k, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def test_the_files_of_security_lake_have_every_event(events: dict[str, Any]) -> None:
    duckdb.connect().execute(code("Security Lake", "sql"))
    found: dict[str, Any] = {}
    for path in Path("lake").rglob("*.parquet"):
        rows = pq.ParquetFile(path).read().to_pylist()
        days = {f"{datetime.fromtimestamp(row['time'] // 1000, UTC):%Y%m%d}" for row in rows}
        folder = f"lake/region=eu-central-1/accountId=123456789012/eventDay={days.pop()}"
        assert (str(path.parent), days) == (folder, set())
        found |= by_id(map(without_nulls, rows))
    for row in found.values():
        row["unmapped"] = json.loads(row["unmapped"])
        for resource in row.get("resources", []):
            if "data" in resource:
                resource["data"] = json.loads(resource["data"])
    nulls = [name for name in events if "null" in name]
    assert {k: v for k, v in found.items() if k not in nulls} == {
        k: v for k, v in events.items() if k not in nulls
    }
    assert [found[name]["raw_data"] for name in nulls] == [
        events[name]["raw_data"] for name in nulls
    ]


@pytest.mark.integrations
def test_tenzir_casts_every_event_without_a_warning(events: dict[str, Any]) -> None:
    """Its reader, not the cast, warns about the event that is nested too deeply for it."""
    pipeline = code("Tenzir", "tql")
    lines = Path("events.jsonl").read_bytes().splitlines(keepends=True)
    deep = [line for line in lines if json.loads(line)["metadata"]["uid"] == DEEP]
    Path("events.jsonl").write_bytes(b"".join(line for line in lines if line not in deep))
    found, log = run(pipeline)
    assert log == ""
    Path("events.jsonl").write_bytes(b"".join(deep))
    found_deep, log = run(pipeline)
    assert re.findall("^(?:warning|error).*", log, re.MULTILINE) == [
        "warning: JSON nesting is too deep"
    ]
    assert found_deep[DEEP]["raw_data"] == events[DEEP]["raw_data"]
    del events[DEEP]
    for event in [*events.values(), *found.values()]:
        event["unmapped"] = texts_for_large_integers(event["unmapped"])
        del event["time"]  # Tenzir prints it as text
    assert found == events


def run(pipeline: str) -> tuple[dict[str, Any], str]:
    """Run a pipeline; return the events that it prints, by their ids, and what it warns about."""
    tenzir = python_of("tenzir").with_name("tenzir")
    done = subprocess.run(
        [tenzir, pipeline], capture_output=True, text=True, check=True, timeout=120
    )
    return by_id(map(json.loads, done.stdout.split("\n")[:-1])), done.stderr


def texts_for_large_integers(value: Any) -> Any:
    """Tenzir reads an integer of more than 64 bits as a text."""
    if isinstance(value, dict):
        return {k: texts_for_large_integers(each) for k, each in value.items()}
    if isinstance(value, list):
        return [texts_for_large_integers(each) for each in value]
    is_large = isinstance(value, int) and abs(Decimal(value)) >= 2**63
    return str(value) if is_large else value
