"""A run that is stopped, or whose stdout is closed, ends cleanly and does not look successful."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import ACCESS_TOKEN, Fault, Service
from tests.airbyte.conftest import Source
from tests.airbyte.source import MODULE, Output, a_catalog
from tests.builders import an_event
from tests.forking import PipedTap

EVENTS = [
    an_event(id=f"{n:05}", at=f"2024-05-06T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z")
    for n in range(3000)
]
IDS = [event["id"] for event in EVENTS]

Start = Callable[..., PipedTap]


@pytest.fixture
def start(settings: dict[str, Any], tmp_path: Path) -> Iterator[Start]:
    """Starts a command without waiting for it; what still runs after the test is killed."""
    with ExitStack() as started:

        def begin(command: str = "read", **more: Any) -> PipedTap:
            arguments = [command]
            files = {"config": settings | more}
            if command == "read":
                files["catalog"] = a_catalog()
            for name, content in files.items():
                (tmp_path / name).write_text(json.dumps(content))
                arguments += [f"--{name}", str(tmp_path / name)]
            tap = PipedTap(arguments, environment=os.environ, folder=tmp_path, module=MODULE)
            return started.enter_context(closing(tap))

        yield begin


def lines_up_to(source: PipedTap, text: bytes, count: int = 1) -> bytes:
    """The output up to the line in which a text appears for the `count`-th time."""
    seen = b""
    while seen.count(text) < count:
        line = source.stdout.readline()
        assert line, seen
        seen += line
    return seen


def finished(source: PipedTap, before: bytes) -> Output:
    done = Output(before + source.stdout.read(), source.stderr.read().decode(), source.wait(60))
    done.check_discreet([ACCESS_TOKEN])
    return done


def judge(done: Output, signal_number: int) -> None:
    """Check that lines are whole, that STATE fits the records, and that a signal ended the run."""
    assert done.exit_code == 128 + signal_number, done.stdout[-1000:]
    assert done.log == ""
    done.check_states()
    assert done.ids == IDS[: len(done.ids)]
    assert done.statuses[-1] == "INCOMPLETE"
    (failure,) = done.failures
    assert failure["message"].startswith("AE-STOPPED: Stopped by a signal")
    assert failure["failure_type"] == "transient_error"


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run_after_a_whole_line(
    signal_number: signal.Signals, service: Service, start: Start, source: Source
) -> None:
    """The pipe is full, as the reader is slow; the next run delivers the rest."""
    service.add(EVENTS)
    running = start(page_size=1000)
    before = lines_up_to(running, b'"RECORD"')  # the rest is more than the pipe holds
    running.send_signal(signal_number)
    done = finished(running, before)
    judge(done, signal_number)
    assert 0 < len(done.ids) < len(EVENTS)
    rest = source("read", state=[done.state]).raise_for_exit_code()
    assert done.ids + rest.ids == IDS


def test_a_check_that_is_stopped_has_no_result(service: Service, start: Start) -> None:
    """The status FAILED would mean that the connection does not work."""
    service.add_faults([Fault(kind="status", code=503, retry_after="600")])
    running = start("check")
    before = lines_up_to(running, b"Retry 1 of 1 in 600")
    running.send_signal(signal.SIGTERM)
    done = finished(running, before)
    assert done.exit_code == 128 + signal.SIGTERM
    assert done.of_type("CONNECTION_STATUS") == []
    (failure,) = done.failures
    assert failure["message"].startswith("AE-STOPPED: Stopped by a signal")


def test_a_reader_that_closes_the_pipe_is_reported_in_one_line(
    service: Service, start: Start
) -> None:
    """The exit code is 1, and no traceback is printed, not even while the process ends."""
    service.add(EVENTS)
    running = start(page_size=1000)
    lines_up_to(running, b'"RECORD"')
    running.stdout.close()
    log = running.stderr.read().decode()
    assert running.wait(timeout=60) == 1
    (line,) = log.splitlines()
    assert line.startswith("AE-TARGET: The target closed its input before the tap was done")


@pytest.mark.parametrize(
    ("redirection", "begins"), [(">/dev/full", "AE-OUTPUT: "), (">&-", "AE-OUTPUT: ")]
)
def test_a_stdout_that_cannot_be_written_to_is_reported_in_one_line(
    redirection: str, begins: str
) -> None:
    command = f'"$0" -m {MODULE} spec {redirection}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(begins)
