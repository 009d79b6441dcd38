"""The stdout of `audit-events tail` may be closed, a socket, or a pipe that does not block."""

import json
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tap_audit_events.cli.terminal.process import write_stdout
from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.cli.exported import history
from tests.cli.tailing import FAST, now, read
from tests.forking import COMMAND, ForkedTap


@pytest.mark.parametrize(
    "arguments", [["tail"], ["count", "--by", "day"], ["verify", "--against", "a.jsonl"]]
)
def test_a_closed_stdout_is_reported_in_one_line(
    arguments: list[str], service: Service, command: Command
) -> None:
    """The shell closes stdout before the start, by `>&-`."""
    service.add(history(3))
    (command.folder / "a.jsonl").write_bytes(b"")
    done = command.under(["sh", "-c", 'exec "$@" >&-', "sh"], *arguments)
    assert done.exit_code == 1
    assert done.error.startswith("AE-EXPORT: The output cannot be written: stdout: Bad file")


@pytest.mark.parametrize("arguments", [["-n", "100000"], ["--follow", *FAST]])
def test_a_reader_that_closes_the_pipe_ends_tail_without_an_error(
    arguments: list[str], service: Service, command: Command
) -> None:
    service.add([*history(3000), now(50, "a")])
    with command.started("tail", *arguments) as run:
        run.stdout.readline()
        run.stdout.close()
        for n in range(100):
            service.add([now(20, f"{n}")])
        assert run.wait(60) == 0
        assert run.stderr.read() == b""
        run.stdout = open_nothing()


@pytest.mark.parametrize("fault", [[], ["status:code=500@3-"]])
def test_follow_ends_when_nobody_reads_although_nothing_is_new(
    fault: list[str], service: Service, command: Command
) -> None:
    """Otherwise, it would send requests forever, also while the service fails."""
    service.add([now(50, "a")])
    service.add_faults(map(Fault.parse, fault))
    with command.started("tail", "--follow", *FAST, TAP_AUDIT_EVENTS_MAX_RETRIES="0") as run:
        assert read(run, 1) == ["a"]
        run.stdout.close()
        assert run.wait(60) == 0
        run.stdout = open_nothing()


def test_follow_ends_when_nobody_reads_its_socket(service: Service, command: Command) -> None:
    """Some programs, such as Node.js, start processes with a socket as stdout."""
    service.add([now(50, "a")])
    ours, its_stdout = socket.socketpair()
    with (command.folder / "log").open("wb") as log, its_stdout:
        tap = ForkedTap(
            ("tail", "--follow", *FAST),
            environment=command.variables(),
            folder=command.folder,
            streams=(its_stdout.fileno(), log.fileno()),
            module=COMMAND,
        )
    try:
        ours.recv(1 << 16)
        ours.close()
        assert tap.wait(60) == 0
    finally:
        tap.kill()


def test_a_terminal_does_not_obey_characters_of_an_event(
    service: Service, command: Command
) -> None:
    """A name can hold commands for the terminal, or reverse the text that follows it.

    On a terminal they are escaped, which is the same JSON; a pipe gets the event's own bytes.
    """
    name = "Zo\u00eb \x7f\x85\x9b2J\u200f\u202etxt\u2066"
    event = now(50, "a") | {"actor": {"type": "user", "id": "user-1", "name": name}}
    service.add([event])
    screen, terminal = os.openpty()
    with (command.folder / "log").open("wb") as log:
        tap = ForkedTap(
            ("tail",),
            environment=command.variables(),
            folder=command.folder,
            streams=(terminal, log.fileno()),
            module=COMMAND,
        )
    assert tap.wait(60) == 0
    shown = os.read(screen, 1 << 16).decode()
    os.close(terminal)
    os.close(screen)
    assert r" \u007f\u0085\u009b2J\u200f\u202etxt\u2066" in shown
    assert json.loads(shown) == event
    assert name in command("tail").stdout.decode()


def test_a_non_blocking_pipe_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """An asynchronous program may use such a pipe, which holds less than this output."""
    data = bytes(5_000_000)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with open(reading, "rb") as reader, ThreadPoolExecutor() as thread:  # noqa: PTH123 - a pipe
        read = thread.submit(reader.read)
        with open(writing, "wb") as stdout:  # noqa: PTH123 - a pipe
            monkeypatch.setattr(sys, "stdout", stdout)
            write_stdout(data)
        assert read.result() == data


def open_nothing() -> Any:
    return open("/dev/null", "rb")  # noqa: PTH123 - closed with the run
