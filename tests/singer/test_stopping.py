"""A run that is stopped ends after a whole line, with STATE and the exit code of the signal."""

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
from tests.builders import an_event
from tests.forking import PipedTap, signal_until_gone
from tests.running import Run

EVENTS = [
    an_event(id=f"{n:05}", at=f"2024-05-06T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z")
    for n in range(3000)
]
UNBUFFERED = {"PYTHONUNBUFFERED": "1"}

Process = PipedTap | subprocess.Popen[bytes]
Start = Callable[..., Process]


@pytest.fixture
def start(settings: dict[str, Any], tmp_path: Path) -> Iterator[Start]:
    """Starts the tap without waiting for it; processes that still run after a test are killed.

    With an `environment` or without `forks`, the tap runs in an interpreter of its own.
    """
    with ExitStack() as started:

        def begin(
            environment: dict[str, str] | None = None, *, forks: bool = True, **more: Any
        ) -> Process:
            config = tmp_path / "config.json"
            config.write_text(json.dumps(settings | more))
            arguments = ["--config", str(config)]
            variables = {**os.environ, **(environment or {})}
            if forks and not environment:
                tap = PipedTap(arguments, environment=variables, folder=tmp_path)
                return started.enter_context(closing(tap))
            process = subprocess.Popen(
                [sys.executable, "-m", "tap_audit_events", *arguments],
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            started.enter_context(process)
            started.callback(process.kill)
            return process

        yield begin


@pytest.mark.usefixtures("not_ignoring_ctrl_c")
def test_ctrl_c_before_the_run_begins_is_an_error_of_one_line(tmp_path: Path) -> None:
    """The tap waits for its settings; the exit code is that of any Ctrl-C."""
    fifo = tmp_path / "config.json"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "tap_audit_events", "--config", str(fifo)]
    tap = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with tap, fifo.open("w"):  # this returns when the tap has opened it too
        tap.send_signal(signal.SIGINT)
        stdout, stderr = tap.communicate(timeout=60)
    assert tap.returncode == 128 + signal.SIGINT
    assert stdout == b""
    assert b"AE-STOPPED: " in stderr
    assert b"Traceback" not in stderr
    assert b"Aborted" not in stderr


def read_lines(process: Process, count: int) -> bytes:
    assert process.stdout is not None
    return b"".join(process.stdout.readline() for _ in range(count))


def wait_for_log(process: Process, text: str) -> str:
    """Read the log up to a line with that text."""
    assert process.stderr is not None
    seen = ""
    while text not in seen:
        line = process.stderr.readline().decode()
        assert line, seen
        seen += line
    return seen


def finished(process: Process, before: bytes = b"", log: str = "") -> Run:
    """Read the rest of the output; the run has ended when this returns."""
    assert process.stdout is not None
    assert process.stderr is not None
    stdout, stderr = process.stdout.read(), process.stderr.read()
    done = Run(before + stdout, log + stderr.decode(), process.wait(timeout=60))
    done.check_discreet([ACCESS_TOKEN])
    return done


def judge(done: Run, signal_number: int) -> None:
    """Check that lines are whole, that STATE is last and exact, and that the log has the error."""
    assert done.exit_code == 128 + signal_number, done.log
    assert done.stdout.endswith(b"\n")
    assert done.messages[-1]["type"] == "STATE"
    if done.ids:
        assert done.bookmark == done.records[-1]["occurredAt"]
        assert done.ids == [event["id"] for event in EVENTS[: len(done.ids)]]
    (line,) = done.errors
    assert line.startswith(
        f"AE-STOPPED: Stopped by a signal, {signal.Signals(signal_number).name}."
    )


LANES: dict[str, dict[str, Any]] = {
    "verbatim": {},
    "SDK": {"stream_maps": {"audit_events": {"added": "id"}}},
}


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(
    ("signal_number", "environment"),
    [(signal.SIGTERM, {}), (signal.SIGTERM, UNBUFFERED), (signal.SIGINT, {})],
)
def test_a_signal_ends_the_run_after_a_whole_line(
    signal_number: signal.Signals,
    environment: dict[str, str],
    lane: str,
    service: Service,
    start: Start,
) -> None:
    """This holds even if the reader is slow and the pipe is full."""
    service.add(EVENTS)
    process = start(environment, page_size=1000, **LANES[lane])
    before = read_lines(process, 2)  # more than the pipe holds waits to be written
    process.send_signal(signal_number)
    done = finished(process, before)
    judge(done, signal_number)
    assert len(done.ids) < {"verbatim": len(EVENTS), "SDK": 1000}[lane]  # a page, or within one


@pytest.mark.parametrize(
    ("fault", "sign"),
    [
        (Fault(kind="hang", seconds=300, when="3"), "Reading "),
        (Fault(kind="status", code=503, retry_after="600", when="3-"), "Retry 1 of 8 in 600"),
    ],
)
@pytest.mark.parametrize("lane", LANES)
def test_a_wait_for_the_service_ends_at_once(
    fault: Fault, sign: str, lane: str, service: Service, start: Start
) -> None:
    """Neither a missing response nor a backoff delays the end, and nothing is lost."""
    service.add(EVENTS)
    service.add_faults([fault])
    # With two in flight, the third request could be that of the second page.
    process = start(page_size=10, concurrency=1, **LANES[lane])
    log = wait_for_log(process, sign)
    before = read_lines(process, 1 + 2 * 10 + 2)  # SCHEMA, and two pages with their STATE
    process.send_signal(signal.SIGTERM)
    done = finished(process, before, log)
    judge(done, signal.SIGTERM)
    assert done.ids == [event["id"] for event in EVENTS[:20]]


def test_a_run_continues_where_it_was_stopped(
    service: Service, start: Start, sync: Callable[..., Run]
) -> None:
    """Together, the two runs deliver each event once."""
    service.add(EVENTS)
    process = start(page_size=100)
    before = read_lines(process, 500)
    process.send_signal(signal.SIGTERM)
    first = finished(process, before)
    second = sync(state=first.state).raise_for_exit_code()
    assert first.ids + second.ids == [event["id"] for event in EVENTS]


def test_two_signals_at_the_same_time_count_once(service: Service, start: Start) -> None:
    """`timeout` signals the process and then its group; a supervisor may pass on a Ctrl-C."""
    service.add(EVENTS)
    service.add_faults([Fault(kind="hang", seconds=300, when="3")])
    process = start(page_size=10, concurrency=1)
    before = read_lines(process, 1 + 2 * 10 + 2)  # SCHEMA, and two pages with their STATE
    process.send_signal(signal.SIGSTOP)  # so that both are pending when it continues
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
        process.send_signal(each)
    done = finished(process, before)
    assert done.exit_code in {128 + signal.SIGTERM, 128 + signal.SIGINT}
    assert "AE-STOPPED: " in done.log
    assert done.ids == [event["id"] for event in EVENTS[:20]]


def test_a_second_signal_ends_the_process_at_once(service: Service, start: Start) -> None:
    """This holds even if the reader never reads again."""
    service.add(EVENTS)
    process = start(page_size=1000)
    read_lines(process, 1)
    wait_for_log(process, "Reading ")
    assert signal_until_gone(process, signal.SIGTERM) == 128 + signal.SIGTERM


def test_a_reader_that_closes_the_pipe_is_an_error_of_one_line(
    service: Service, start: Start
) -> None:
    """The exit code is 1, and there is no traceback, not even while the process ends."""
    service.add(EVENTS)
    process = start(page_size=1000)
    read_lines(process, 2)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    log = process.stderr.read().decode()
    assert process.wait(timeout=60) == 1
    done = Run(b"", log, 1)
    done.check_discreet([ACCESS_TOKEN])
    (line,) = done.errors
    assert line.startswith("AE-TARGET: The target closed its input before the tap was done")
