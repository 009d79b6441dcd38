"""The source works with PyAirbyte, and each message fits the models of the protocol."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tap_audit_events.sandbox import Fault, Service, generate, serve
from tests.airbyte.source import a_catalog
from tests.integrations.airbyte.clients import SOURCE, run_client
from tests.integrations.pipeline import NOON, PROJECT
from tests.running import settings_for

pytestmark = pytest.mark.integrations

EVENTS = list(generate(2600, days=3, seed=1, until=NOON))
EXAMPLE = PROJECT / "examples" / "pyairbyte_duckdb.py"
HERE = Path(__file__).resolve().parent


@pytest.fixture
def service() -> Service:
    service = Service()
    service.add(EVENTS[:2000])
    return service


@pytest.fixture
def config(service: Service, tmp_path: Path) -> Iterator[Path]:
    """A config file for the service."""
    with serve(service) as server:
        path = tmp_path / "config.json"
        path.write_text(json.dumps(settings_for(service, server.base_url)))
        yield path
    assert service.violations == []


# PyAirbyte


def run_example(folder: Path, config: Path) -> "subprocess.CompletedProcess[bytes]":
    settings = json.loads(config.read_text())
    variables = {
        "TAP_AUDIT_EVENTS_BASE_URL": settings["base_url"],
        "TAP_AUDIT_EVENTS_ORGANIZATION_ID": settings["organization_id"],
        "TAP_AUDIT_EVENTS_ACCESS_TOKEN": settings["access_token"],
    }
    done = run_client("python", EXAMPLE, folder=folder, environment=variables)
    assert settings["access_token"].encode() not in done.stdout + done.stderr
    return done


def rows(folder: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(folder / "audit_events.duckdb"), read_only=True) as database:
        query = "select id, entity from audit_events order by occurredat, id"
        return database.execute(query).fetchall()


def has_table(folder: Path) -> bool:
    with duckdb.connect(str(folder / "audit_events.duckdb"), read_only=True) as database:
        tables = database.execute("select table_name from information_schema.tables").fetchall()
    return ("audit_events",) in tables


def test_pyairbyte_loads_each_event_once(service: Service, config: Path, tmp_path: Path) -> None:
    """The example is run twice, and its second run reads only the new events."""
    first = run_example(tmp_path, config)
    assert first.returncode == 0, first.stderr
    assert b"2000 new events" in first.stdout
    service.add(EVENTS[2000:])
    second = run_example(tmp_path, config)
    assert second.returncode == 0, second.stderr
    assert b"600 new events" in second.stdout
    loaded = rows(tmp_path)
    assert sorted(row[0] for row in loaded) == sorted(event["id"] for event in EVENTS)
    entities = {event["id"]: event["entity"] for event in EVENTS}
    assert {row[0]: json.loads(row[1]) for row in loaded} == entities


def test_pyairbyte_fails_if_the_source_does_and_then_continues(
    service: Service, config: Path, tmp_path: Path
) -> None:
    """A run in which the token is refused loads nothing, and the next run loads everything."""
    outage = [True]
    # The check sends two requests, and the first page is the third.
    refused = Fault(kind="status", code=401, when="4-", only=lambda _: bool(outage))
    service.add_faults([refused])
    failed = run_example(tmp_path, config)
    assert failed.returncode != 0
    assert b"AirbyteConnectorFailedError" in failed.stderr
    assert not has_table(tmp_path)
    outage.clear()
    again = run_example(tmp_path, config)
    assert again.returncode == 0, again.stderr
    assert b"2000 new events" in again.stdout
    assert len(rows(tmp_path)) == 2000


# The models of the protocol


def written(*arguments: str | Path) -> bytes:
    """Return the output of the source on stdout."""
    return subprocess.run([SOURCE, *arguments], stdout=subprocess.PIPE, check=False).stdout


def test_every_message_belongs_to_the_protocol(
    service: Service, config: Path, tmp_path: Path
) -> None:
    """No message has an unknown field, in each command and in a read that fails."""
    catalog = tmp_path / "catalog.json"
    catalog.write_text(json.dumps(a_catalog()))
    read: list[str | Path] = ["read", "--config", config, "--catalog", catalog]
    lines = written("spec") + written("check", "--config", config) + written("read")
    lines += written("discover", "--config", config) + written(*read)
    service.add_faults([Fault(kind="status", code=403)])
    lines += written(*read) + written("check", "--config", config)
    done = run_client("python", HERE / "check_messages.py", folder=tmp_path, stdin=lines)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts.keys() == {
        "CATALOG", "CONNECTION_STATUS", "LOG", "RECORD", "SPEC", "STATE", "TRACE"
    }  # fmt: skip
    assert counts["RECORD"] == 2000
