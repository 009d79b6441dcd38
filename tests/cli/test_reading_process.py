"""An export reads in a fork of its process: what becomes of one if the other ends."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.cli.export import run_export
from tap_audit_events.cli.options import Common
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.cli.exported import FORMATS, expected, exported, history
from tests.forking import PipedTap

EVENTS = history(100)
SMALL_PAGES = {"TAP_AUDIT_EVENTS_PAGE_SIZE": "10", "TAP_AUDIT_EVENTS_CONCURRENCY": "1"}
WAITS = "status:code=429,retry-after=60@5"


def fork_of(run: PipedTap) -> int:
    """The process id of the fork, once the run waits for the service."""
    assert b"Retry 1 of 8" in run.stderr.readline()
    (fork,) = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    return int(fork)


def wait_for_end(process_id: int) -> None:
    deadline = time.monotonic() + 20
    while Path(f"/proc/{process_id}").exists():
        assert time.monotonic() < deadline, "it does not end"
        time.sleep(0.01)


@pytest.mark.parametrize("state", [[], ["--state", "s.json"]])
@pytest.mark.parametrize("to", FORMATS)
def test_an_export_whose_reading_is_killed_changes_nothing(
    to: str, state: list[str], service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAITS)])

    with command.started("export", "--to", to, *state, **SMALL_PAGES) as run:
        os.kill(fork_of(run), signal.SIGKILL)
        assert run.wait(60) == 1
        log = run.stderr.read().decode()

    assert "the process that reads ended with exit code -9" in log.splitlines()[-1]
    assert log.splitlines()[-1].startswith("AE-DEFECT: ")
    assert exported(command.folder / to) == []
    assert command.left_over == []
    command("export", "--to", to, *state).raise_for_exit_code()
    assert exported(command.folder / to) == expected(EVENTS)


def test_the_reading_of_an_export_that_is_killed_ends_at_once(
    service: Service, command: Command
) -> None:
    """Also while it waits for the service."""
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAITS)])

    with command.started("export", "--to", "a.jsonl", **SMALL_PAGES) as run:
        fork = fork_of(run)
        run.kill()

    wait_for_end(fork)
    command("export", "--to", "a.jsonl").raise_for_exit_code()


def test_a_second_signal_ends_both_at_once(service: Service, command: Command) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse("hang:seconds=30@5")])

    with command.started("export", "--to", "a.jsonl", **SMALL_PAGES) as run:
        while len(service.requests) < 5:
            time.sleep(0.01)
        (fork,) = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        os.kill(int(fork), signal.SIGSTOP)
        run.send_signal(signal.SIGTERM)
        run.send_signal(signal.SIGINT)
        assert run.wait(60) in {128 + signal.SIGTERM, 128 + signal.SIGINT}
        os.kill(int(fork), signal.SIGCONT)

    wait_for_end(int(fork))


def test_a_signal_of_the_terminal_reaches_both_and_counts_once(
    service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAITS)])

    with command.started("export", "--to", "a.jsonl", "--state", "s.json", **SMALL_PAGES) as run:
        os.kill(fork_of(run), signal.SIGINT)
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 128 + signal.SIGINT
        assert b"Stopped by a signal, SIGINT" in run.stderr.read()

    assert exported(command.folder / "a.jsonl") == expected(EVENTS[:40])


def test_on_macos_the_export_reads_in_its_own_process(
    service: Service, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.add(EVENTS)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("multiprocessing.get_context", None)
    for name, value in settings.items():
        monkeypatch.setenv(f"TAP_AUDIT_EVENTS_{name.upper()}", str(value))
    path = tmp_path / "a.parquet"

    run_export(str(path), None, Common((), None, None, quiet=True, stop=Stop()))

    assert exported(path) == expected(EVENTS)
