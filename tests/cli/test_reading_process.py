"""An export reads in a fork of its process: if one of the two ends, so does the other."""

import errno
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.api.audit_events import AuditEvents
from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.export import run_export
from tap_audit_events.cli.options import Common
from tap_audit_events.cli.reading_process import ReadingProcess
from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors.exceptions import AuditEventsError, StoppedError
from tap_audit_events.events.instants import EARLIEST
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.cli.exported import FORMATS, expected, exported, history
from tests.forking import PipedTap, signal_until_gone

EVENTS = history(100)
SMALL_PAGES = {"TAP_AUDIT_EVENTS_PAGE_SIZE": "10", "TAP_AUDIT_EVENTS_CONCURRENCY": "1"}
WAITS = "status:code=429,retry-after=60@5"
PLAIN = RecordShape()
QUICK = "events.duckdb"
"""The format of quick runs; the others are tested in long ones."""

# The command forks before it has threads, but the process of the tests has some.
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


def fork_of(run: PipedTap) -> int:
    """The process id of the fork, once the run waits for the service."""
    assert b"Retry 1 of 8" in run.stderr.readline()
    (fork,) = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    return int(fork)


def export_to(path: Path) -> None:
    """Export in this process, with the settings of its environment."""
    try:
        run_export(str(path), None, Common((), None, None, quiet=True, stop=Stop()))
    finally:
        gc.unfreeze()
        gc.set_threshold(700, 10, 10)


def wait_until_pending(process_id: int, number: signal.Signals) -> None:
    wait_until(lambda: _pending(process_id) & 1 << number - 1, "it is not passed on")


def wait_until_stopped(process_id: int) -> None:
    """Wait until a process is stopped; before that, signals of a lower number may arrive first."""
    wait_until(lambda: _status(process_id, "State") == "T", "it is not stopped")


def wait_for_end(process_id: int) -> None:
    wait_until(lambda: not Path(f"/proc/{process_id}").exists(), "it does not end")


def wait_until(condition: Callable[[], object], problem: str) -> None:
    """Poll until a condition holds; the system does not report what happens to a process."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, problem
        time.sleep(0.01)


def _pending(process_id: int) -> int:
    """The pending signals of a process, as bits."""
    return int(_status(process_id, "ShdPnd"), 16)


def _status(process_id: int, name: str) -> str:
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return next(line for line in lines if line.startswith(f"{name}:")).split()[1]


@pytest.mark.parametrize("state", [[], ["--state", "s.json"]])
@pytest.mark.parametrize(
    "to", [pytest.param(to, marks=() if to == QUICK else pytest.mark.long) for to in FORMATS]
)
def test_an_export_whose_reading_process_is_killed_changes_nothing(
    to: str, state: list[str], service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAITS)])

    with command.started("export", "--to", to, *state, **SMALL_PAGES) as run:
        os.kill(fork_of(run), signal.SIGKILL)
        assert run.wait(60) == 1
        log = run.stderr.read().decode()

    (line,) = log.splitlines()
    assert line.startswith("AE-EXPORT: ")
    assert "the process that reads ended with exit code -9; this is often what the system" in line
    assert exported(command.folder / to) == []
    assert command.left_over == []
    command("export", "--to", to, *state).raise_for_exit_code()
    assert exported(command.folder / to) == expected(EVENTS)


def test_the_reading_process_of_a_killed_export_ends_at_once(
    service: Service, command: Command
) -> None:
    """It ends although it waits for the service."""
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAITS)])

    with command.started("export", "--to", "a.jsonl", **SMALL_PAGES) as run:
        fork = fork_of(run)
        run.kill()

    wait_for_end(fork)
    command("export", "--to", "a.jsonl").raise_for_exit_code()


def test_the_fork_of_a_killed_export_holds_no_lock(service: Service, command: Command) -> None:
    """The next export need not wait until the fork has ended."""
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAITS)])
    arguments = ("export", "--to", "a.jsonl", "--state", "s.json")

    with command.started(*arguments, **SMALL_PAGES) as run:
        fork = fork_of(run)
        os.kill(fork, signal.SIGSTOP)
        run.kill()
    try:
        command(*arguments).raise_for_exit_code()
    finally:
        os.kill(fork, signal.SIGCONT)

    wait_for_end(fork)
    assert exported(command.folder / "a.jsonl") == expected(EVENTS)


def test_a_second_signal_ends_both_processes_at_once(service: Service, command: Command) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse("hang:seconds=30@5")])

    with command.started("export", "--to", "a.jsonl", **SMALL_PAGES) as run:
        while len(service.requests) < 5:
            time.sleep(0.01)
        (fork,) = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        os.kill(int(fork), signal.SIGSTOP)
        assert signal_until_gone(run, signal.SIGTERM) == 128 + signal.SIGTERM
        os.kill(int(fork), signal.SIGCONT)

    wait_for_end(int(fork))


def test_a_signal_that_reaches_both_processes_counts_once(
    service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAITS)])

    with command.started("export", "--to", "a.jsonl", "--state", "s.json", **SMALL_PAGES) as run:
        fork = fork_of(run)
        os.kill(fork, signal.SIGSTOP)  # so that both signals wait for it at the same time
        wait_until_stopped(fork)
        os.kill(fork, signal.SIGINT)
        run.send_signal(signal.SIGTERM)
        wait_until_pending(fork, signal.SIGTERM)
        os.kill(fork, signal.SIGCONT)
        assert run.wait(60) in {128 + signal.SIGINT, 128 + signal.SIGTERM}
        assert b"Stopped by a signal" in run.stderr.read()

    assert exported(command.folder / "a.jsonl") == expected(EVENTS[:40])


def test_a_signal_before_the_reading_begins_is_passed_on(
    settings: dict[str, Any], service: Service
) -> None:
    """The signal may arrive while the output is opened, for example."""
    service.add(EVENTS)
    stop = Stop()
    events = AuditEvents.of_settings(read_settings(settings), lambda: Runtime(stop=stop))

    with ReadingProcess(lambda state: events.pages(state=state), PLAIN, stop) as read:
        stop.request(signal.SIGTERM)
        with pytest.raises(StoppedError):
            next(read({}))

    assert service.requests == []


def test_a_defect_of_the_reading_process_is_shown_with_its_traceback(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def read(state: Mapping[str, Any]) -> Generator[EventPage, None, None]:
        yield EventPage(
            [b"{}"], [EARLIEST], organization_id="org", shape=PLAIN, state=lambda: {"n": 1}
        )
        raise BrokenPipeError("of another pipe")

    pages: list[EventPage] = []
    with ReadingProcess(read, PLAIN, Stop()) as reading, pytest.raises(AuditEventsError) as raised:
        pages.extend(reading({}))

    assert str(raised.value).startswith("AE-DEFECT: ")
    assert "BrokenPipeError: 'of another pipe'" in str(raised.value)
    assert "Traceback" in capfd.readouterr().err


def test_log_lines_of_the_reading_process_are_logged_by_the_export(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The lines do not run into the progress bar, and those of several threads stay whole."""

    def read(state: Mapping[str, Any]) -> Generator[EventPage, None, None]:
        threads = [threading.Thread(target=log, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for n in range(50):
            texts = [b"%d" % n] * 1000
            yield EventPage(
                texts, [EARLIEST] * 1000, organization_id="org", shape=PLAIN, state=dict
            )
        for thread in threads:
            thread.join()

    def log(thread: int) -> None:
        for n in range(100):
            logging.getLogger("tap_audit_events.test").warning("%d %d", thread, n)

    with ReadingProcess(read, PLAIN, Stop()) as reading:
        pages = [page.raw[-1] for page in reading({})]

    assert pages == [b"%d" % n for n in range(50)]
    assert sorted(caplog.messages) == sorted(f"{each} {n}" for each in range(4) for n in range(100))


def test_if_the_system_refuses_another_process_the_export_reads_in_its_own(
    service: Service, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    service.add(EVENTS)
    monkeypatch.setattr(os, "fork", refuse)
    for name, value in settings.items():
        monkeypatch.setenv(f"TAP_AUDIT_EVENTS_{name.upper()}", str(value))
    path = tmp_path / "a.parquet"

    export_to(path)

    assert exported(path) == expected(EVENTS)


def test_on_macos_the_export_reads_in_its_own_process(
    service: Service, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.add(EVENTS)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("multiprocessing.get_context", None)
    for name, value in settings.items():
        monkeypatch.setenv(f"TAP_AUDIT_EVENTS_{name.upper()}", str(value))
    path = tmp_path / "a.parquet"

    export_to(path)

    assert exported(path) == expected(EVENTS)
