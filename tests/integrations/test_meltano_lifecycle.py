"""Runs with Meltano after the first one: loaders, states, failures and environments.

`docs/meltano.md` describes the setup; `test_meltano_page.py` runs its commands.
"""

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.events.instants import parse_instant, text_of
from tap_audit_events.sandbox import Fault, generate
from tests.integrations.pipeline import (
    NOON,
    PROJECT,
    Event,
    Pipeline,
    a_pipeline,
    borrow_plugins,
)
from tests.integrations.test_meltano import ids

pytestmark = [pytest.mark.meltano, pytest.mark.long, pytest.mark.timeout(900)]

PAGE = (PROJECT / "docs" / "meltano.md").read_text()
STATE_ID = "dev:tap-audit-events-to-target-jsonl"
OLD = generate(60, days=3, seed=7, until=NOON)
NEW = generate(20, days=1, seed=8, until=NOON.replace(day=17))
HANG = Fault(kind="hang", seconds=600, when="2")
UNREAD = "6a0f3b9e-2d54-4c1b-8f1e-7b2f0c9d1e35"
SMALL_PAGES = {"TAP_AUDIT_EVENTS_PAGE_SIZE": "10", "TAP_AUDIT_EVENTS_CONCURRENCY": "1"}


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    borrow_plugins(tmp_path)
    with a_pipeline(tmp_path) as pipeline:
        pipeline.service.add(OLD)
        yield pipeline


def newest(events: list[Event]) -> str:
    return text_of(max(parse_instant(event["occurredAt"]) for event in events))


def state(pipeline: Pipeline, state_id: str = STATE_ID) -> dict[str, Any]:
    done = pipeline.meltano("state", "get", state_id)
    found: dict[str, Any] = json.loads(done.stdout)["singer_state"]["bookmarks"]["audit_events"]
    return found


def test_a_full_refresh_that_fails_at_once_leaves_the_old_state(pipeline: Pipeline) -> None:
    """Meltano merges the failed run's empty state into the old one, as docs/meltano.md warns."""
    pipeline.run("target-jsonl")
    pipeline.service.add_faults([Fault(kind="status", code=403, when="2")])
    arguments = ("run", "--full-refresh", "tap-audit-events", "target-jsonl")
    assert pipeline.meltano(*arguments).returncode == 1
    pipeline.run("target-jsonl")

    assert ids(pipeline.lines()) == ids(OLD)


def test_the_run_after_a_failed_run_continues_where_it_ended(pipeline: Pipeline) -> None:
    """The exit code of the failed run is 1, and the log contains the tap's error."""
    pipeline.service.add_faults([Fault(kind="status", code=403, when="3")])
    failed = pipeline.meltano("run", "tap-audit-events", "target-jsonl", **SMALL_PAGES)
    assert failed.returncode == 1
    assert "AE-403: " in failed.stderr
    assert len(pipeline.lines()) == 20

    pipeline.run("target-jsonl")
    assert ids(pipeline.lines()) == ids(OLD)


def start(pipeline: Pipeline, loader: str) -> "subprocess.Popen[bytes]":
    """Start a run whose second request gets no response."""
    pipeline.service.add_faults([HANG])
    run = subprocess.Popen(
        ["meltano", "run", "tap-audit-events", loader],
        cwd=pipeline.project,
        env=pipeline.environment | SMALL_PAGES,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while len(pipeline.service.requests) < 2:
        assert run.poll() is None
        time.sleep(0.1)
    return run


def test_a_stopped_tap_writes_the_state_of_the_loaded_events(pipeline: Pipeline) -> None:
    """After SIGTERM to the tap only, the loader gets its last state, which Meltano keeps."""
    run = start(pipeline, "target-jsonl")
    (stop,) = re.findall(r"<!-- stop -->\n```bash\n(.+)\n```", PAGE)
    subprocess.run(stop.replace("PID", str(run.pid)).split(), check=True)
    assert run.wait(timeout=120) == 1
    assert len(pipeline.lines()) == 10
    assert state(pipeline)["replication_key_value"] == newest(pipeline.lines())


def test_a_stopped_meltano_loses_nothing(pipeline: Pipeline) -> None:
    """SIGTERM to Meltano stops the loader too; the next run loads what was not acknowledged."""
    run = start(pipeline, "target-duckdb")
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=120) != 0
    pipeline.run("target-duckdb")
    assert ids(pipeline.rows()) == ids(OLD)


def test_a_merged_state_replaces_the_bookmark_as_a_whole(pipeline: Pipeline) -> None:
    """Bookmark and ids stay consistent: the next run repeats only events after that bookmark."""
    pipeline.run("target-jsonl")
    before = state(pipeline)
    pipeline.service.add(NEW)
    pipeline.run("target-jsonl")
    assert state(pipeline)["replication_key_value"] == newest(NEW)

    merged = {"singer_state": {"bookmarks": {"audit_events": before}}}
    done = pipeline.meltano("state", "merge", STATE_ID, json.dumps(merged))
    assert done.returncode == 0, done.stderr
    assert state(pipeline) == before

    pipeline.run("target-jsonl")
    assert ids(pipeline.lines()) == ids(OLD + NEW + NEW)


def test_an_inherited_plugin_replaces_organizations_by_a_list_of_one(pipeline: Pipeline) -> None:
    """With `organization_id`, both settings would be set, as docs/meltano.md says."""
    inherit = ("add", "tap-audit-events--acme", "--inherit-from", "tap-audit-events")
    assert pipeline.meltano(*inherit, "--no-install").returncode == 0
    variables = pipeline.environment
    variables["TAP_AUDIT_EVENTS_ORGANIZATIONS"] = f'[{{"organization_id": "{UNREAD}"}}]'
    organization_id = variables.pop("TAP_AUDIT_EVENTS_ORGANIZATION_ID")

    run = ("run", "tap-audit-events--acme", "target-jsonl")
    refused = pipeline.meltano(*run, TAP_AUDIT_EVENTS__ACME_ORGANIZATION_ID=organization_id)
    of_one = f'[{{"organization_id": "{organization_id}"}}]'
    done = pipeline.meltano(*run, TAP_AUDIT_EVENTS__ACME_ORGANIZATIONS=of_one)

    assert "AE-SETTINGS: organization_id and organizations are both set" in refused.stderr
    assert done.returncode == 0, done.stderr
    assert ids(pipeline.lines()) == ids(OLD)
