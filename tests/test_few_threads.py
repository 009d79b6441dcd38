"""A system may allow few threads, or none: a run uses those it has, or names the limit."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.config.names import ENVIRONMENT_PREFIX
from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.running import TIMEOUT_SECONDS

LIMITED = """
import runpy, sys, threading
start, left = threading.Thread.start, [int(sys.argv[1])]
def limited(thread):
    if not left[0]:
        raise RuntimeError("can't start new thread")
    left[0] -= 1
    start(thread)
threading.Thread.start = limited
del sys.argv[1]
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
"""Runs a module as if the system allowed only some more threads, at any number of processors."""

CATALOG = {
    "streams": [
        {
            "stream": {
                "name": "audit_events",
                "json_schema": {},
                "supported_sync_modes": ["full_refresh"],
            },
            "sync_mode": "full_refresh",
            "destination_sync_mode": "append",
        }
    ]
}
COMMANDS = {
    "tap": ["tap_audit_events", "--config", "ENV"],
    "airbyte": ["tap_audit_events.airbyte", "read", "--config", "config", "--catalog", "catalog"],
    "export": ["tap_audit_events.cli", "export", "--to", "events.jsonl"],
    "tail": ["tap_audit_events.cli", "tail", "-n", "1000"],
}


def run_with_threads(
    count: int, face: str, settings: dict[str, Any], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with a limited number of threads besides the main thread."""
    (folder / "config").write_text(json.dumps(settings))
    (folder / "catalog").write_text(json.dumps(CATALOG))
    variables = {f"{ENVIRONMENT_PREFIX}{name.upper()}": str(settings[name]) for name in settings}
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(count), *COMMANDS[face]],
        env={**os.environ, "HOME": str(folder), **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


@pytest.fixture
def service() -> Service:
    """A service that is far enough away for a run to start more threads."""
    return Service(page_latency_seconds=0.02)


@pytest.fixture
def limited(service: Service, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with which a run would like to start sixteen threads."""
    service.add(
        an_event(id=f"e{n:04}", at=f"2024-05-06T{n // 60:02}:{n % 60:02}:00Z") for n in range(400)
    )
    return settings | {"page_size": 10, "concurrency": 16}


@pytest.mark.parametrize("face", COMMANDS)
def test_a_run_continues_with_the_threads_that_it_has(
    face: str, limited: dict[str, Any], tmp_path: Path
) -> None:
    done = run_with_threads(2, face, limited, tmp_path)
    assert done.returncode == 0, done.stderr
    file = tmp_path / "events.jsonl"
    output = file.read_text() if file.exists() else done.stdout
    assert [output.count(f'"id":"e{n:04}"') for n in range(400)] == [1] * 400


@pytest.mark.parametrize("face", COMMANDS)
def test_without_any_thread_the_error_names_the_limit(
    face: str, limited: dict[str, Any], tmp_path: Path, service: Service
) -> None:
    done = run_with_threads(0, face, limited, tmp_path)
    assert done.returncode == 1
    output = done.stdout + done.stderr
    assert "AE-THREADS: " in output
    assert "pids.max" in output
    assert "Traceback" not in output
    assert service.requests == []
