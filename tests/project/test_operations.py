"""The alerts in `docs/operations.md` work on real logs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import Service, serve
from tap_audit_events.sandbox.several import SeveralServices
from tests.conftest import Sync
from tests.integrations.pipeline import PROJECT
from tests.reporting.test_log_lines import TEN_EVENTS
from tests.running import run

PAGE = (PROJECT / "docs" / "operations.md").read_text()


def block(kind: str, name: str) -> str:
    """Return the fenced block that follows a comment of the page."""
    (text,) = re.findall(rf"<!-- {kind}: {re.escape(name)} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    return str(text)


def alert(name: str, log: str, folder: Path) -> str:
    """Return the output of an alert on a log; its exit code is 1 if it prints, otherwise 0."""
    for name_of_log in ("tap.log", "last-run.log"):
        (folder / name_of_log).write_text(log)
    return alert_of(name, folder)


def alert_of(name: str, folder: Path) -> str:
    """Return the output of an alert on the logs in the folder."""
    command = block("alert", name).removeprefix("$ ")
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == bool(done.stdout), done
    assert done.stderr == ""
    return done.stdout


def a_log(*runs: tuple[int, float]) -> str:
    """Return a log with the metrics of runs; each has its number of records and its lag."""
    lines = []
    for records, lag in runs:
        for metric, value in (("record_count", records), ("lag_seconds", lag)):
            point = {"type": "t", "metric": metric, "value": value, "tags": {"pid": 1}}
            lines.append(f"METRIC: {json.dumps(point, separators=(',', ':'))}\n")
    return "".join(lines)


def test_the_alert_for_nothing_new_reads_a_real_log(
    service: Service, sync: Sync, tmp_path: Path
) -> None:
    """It prints after no event for long, or none at all; an event of a minute ago is enough."""
    service.add(TEN_EVENTS)
    assert alert("silent", sync().log, tmp_path).startswith("nothing new for ")
    assert alert("silent", a_log((5, 60.25)), tmp_path) == ""
    assert alert("silent", a_log((0, 9000.5)), tmp_path) != ""


def test_the_alert_for_organizations_names_those_that_failed(tmp_path: Path) -> None:
    """It prints the code of each, and nothing for a run that did not fail."""
    services = [Service(organization_id=f"{n:08x}-0000-4000-8000-000000000000") for n in range(3)]
    services[1].add_faults(["status:code=403@*"])
    items = [{"organization_id": each.organization_id} for each in services]
    with serve(SeveralServices(services)) as server:
        settings = {
            "base_url": server.base_url,
            "access_token": services[0].access_token,
            "organizations": items,
        }
        failed = run(settings)
        sound = run(settings | {"organizations": items[:1]})
    assert alert("organizations", failed.log, tmp_path) == (
        f"AE-403: {services[1].organization_id}\n"
    )
    assert alert("organizations", sound.log, tmp_path) == ""


@pytest.mark.parametrize(
    ("runs", "rings"),
    [
        ([(5, 10.0), (5, 20.5), (5, 30.0), (5, 901.0)], True),
        ([(5, 1000.0), (5, 1100.0), (5, 1200.0)], False),
        ([(5, 10.0), (5, 20.5), (5, 30.0), (5, 899.0)], False),
        ([(5, 2000.0), (5, 901.0), (5, 1000.0)], False),
        ([(0, 910.0), (0, 920.0), (0, 930.0)], False),
        ([(5, 1000.0), (5, 901.0), (5, 930.0), (5, 1000.0)], False),
        ([(5, 50.0), (5, 9.0), (5, 30.0), (5, 100.0), (5, 1000.0)], True),
    ],
)
def test_the_alert_for_a_lag_that_grows(
    runs: list[tuple[int, float]], rings: bool, tmp_path: Path
) -> None:
    """It rings if the lag of the last run is above 900 s after three rises in a row.

    The first run in a log is not a rise, and runs without events do not set it off.
    """
    assert bool(alert("behind", a_log(*runs), tmp_path)) == rings


def test_the_alerts_read_a_structured_log(
    service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    """The commands are the same, with the logging configuration that the page shows."""
    service.add(TEN_EVENTS)
    (tmp_path / "config.json").write_text(json.dumps(settings))
    (tmp_path / "logging.yaml").write_text(block("script", "logging.yaml"))
    done = subprocess.run(
        [sys.executable, "-m", "tap_audit_events", "--config", "config.json"],
        env=os.environ | {"SINGER_SDK_LOG_CONFIG": "logging.yaml"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {"record_count", "lag_seconds"} <= {
        line["metric_info"]["metric"] for line in lines if "metric_info" in line
    }
    assert alert("silent", done.stderr, tmp_path).startswith("nothing new for ")
