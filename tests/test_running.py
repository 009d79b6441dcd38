"""The tests run the tap in forks, which behave like interpreters."""

import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.conftest import Sync
from tests.singer.test_stopping import Start, start, wait_for_log  # noqa: F401 - a fixture

INTERPRETER = {"PYTHONHASHSEED": "random"}
"""A run with this variable starts an interpreter."""


def without_numbers(text: str) -> str:
    return re.sub(r"\d[\d.e:-]*", "#", text)


@pytest.mark.parametrize(("code", "level"), [(None, "DEBUG"), (403, "ERROR")])
def test_a_fork_does_what_an_interpreter_does(
    code: int | None, level: str, service: Service, sync: Sync
) -> None:
    """Output, log and exit code are the same, whatever ran in other forks before."""
    service.add([an_event()])
    service.add_faults([Fault(kind="status", code=code)] if code else [])
    settings: dict[str, Any] = {"concurrency": 1, "stream_maps": {"audit_events": {"new": "id"}}}
    forked, started = (
        sync(environment={"LOGLEVEL": level} | more, **settings) for more in ({}, INTERPRETER)
    )
    assert forked.exit_code == started.exit_code == bool(code)
    assert without_numbers(forked.stdout.decode()) == without_numbers(started.stdout.decode())
    lines, expected = (sorted(without_numbers(done.log).splitlines()) for done in (forked, started))
    assert lines == expected  # the order may differ, as another thread sends the first request
    assert ("DEBUG" in forked.log) == (level == "DEBUG")


def test_a_fork_is_a_process_of_its_own(
    service: Service,
    start: Start,  # noqa: F811
    tmp_path: Path,
) -> None:
    """It has its own folder, and gets the signals that are sent to it."""
    service.add_faults([Fault(kind="hang", seconds=300)])
    process = start()
    wait_for_log(process, "Reading ")
    assert Path(f"/proc/{process.pid}/cwd").resolve() == tmp_path
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=60) == -signal.SIGKILL
    assert process.stdout is not None
    assert b"RECORD" not in process.stdout.read()
