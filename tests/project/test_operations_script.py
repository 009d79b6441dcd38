"""The script of docs/operations.md, and the alert for a run that it started and that hangs."""

import fcntl
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.project.test_operations import alert_of, block
from tests.reporting.test_log_lines import TEN_EVENTS
from tests.singer.test_incremental import events

A_TARGET = """\
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "RECORD":
        open("rows.txt", "a").write(message["record"]["id"] + "\\n")
    if message["type"] == "STATE":
        print(json.dumps(message["value"]), flush=True)
"""


def script(folder: Path, settings: dict[str, Any], target: str) -> Callable[[], int]:
    """Write the script and a target into a folder; return a function that runs the script."""
    (folder / "run.sh").write_text(block("script", "run.sh"))
    (folder / "config.json").write_text(json.dumps(settings | {"page_size": 5, "concurrency": 1}))
    (folder / "target.py").write_text(target)
    command = shlex.join([sys.executable, str(folder / "target.py")])
    program = folder / "target-jsonl"
    program.write_text(f"#!/bin/sh\nexec {command}\n")
    program.chmod(0o755)
    path = f"{Path(sys.executable).parent}:{folder}:{os.environ['PATH']}"

    def run_script() -> int:
        return subprocess.run(
            ["bash", "run.sh"], cwd=folder, env=os.environ | {"PATH": path}, check=False
        ).returncode

    return run_script


@pytest.mark.long
def test_the_script_keeps_the_state_and_the_exit_code(
    service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    """Each event is written once, also after a run that failed halfway. The log is rotated."""
    run_script = script(tmp_path, settings, A_TARGET)
    service.add(TEN_EVENTS)
    service.add_faults([Fault(kind="status", code=403, when="2")])
    codes = [run_script()]
    codes.append(run_script())
    service.add(events("08:00:10"))
    codes.append(run_script())
    codes.append(run_script())
    assert codes == [1, 0, 0, 0]
    rows = (tmp_path / "rows.txt").read_text().split()
    assert rows == [event["id"] for event in (*TEN_EVENTS, an_event(id="08:00:10"))]
    log = (tmp_path / "tap.log").read_text()
    assert "AE-403: " in log
    assert "AE-403: " not in (tmp_path / "last-run.log").read_text()
    (tmp_path / "tap.log").write_text(log + "x" * 10_000_000)
    assert run_script() == 0
    assert (tmp_path / "tap.log.1").stat().st_size > 10_000_000
    assert (tmp_path / "tap.log").read_text() == (tmp_path / "last-run.log").read_text()


def test_the_script_keeps_no_state_that_is_cut(
    service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    """A target may be killed, or its disk may be full, while it prints a state."""
    service.add(TEN_EVENTS)
    whole = 'print(json.dumps(message["value"]), flush=True)'
    cut = """\
whole = json.dumps(message["value"])
        print(whole, whole[:-5], sep="\\n", end="", flush=True)
        sys.exit(9)"""
    run_script = script(tmp_path, settings, A_TARGET.replace(whole, cut))
    assert run_script() != 0
    assert "bookmarks" in json.loads((tmp_path / "state.json").read_text())


def test_the_alert_for_a_run_that_hangs(
    service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    """While a run hangs, the log and the exit code of the next run look as usual."""
    service.add(TEN_EVENTS)
    run_script = script(tmp_path, settings, A_TARGET)
    assert run_script() == 0
    assert alert_of("hangs", tmp_path) == ""
    two_hours_ago = time.time() - 7200
    os.utime(tmp_path / "tap.log", (two_hours_ago, two_hours_ago))
    with (tmp_path / "run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a run that hangs does
        assert run_script() == 0
        assert alert_of("hangs", tmp_path) == "no run has ended for two hours\n"
    assert run_script() == 0
    assert alert_of("hangs", tmp_path) == ""
