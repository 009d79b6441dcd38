"""Helpers for the tests of `audit-events tail`."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.cli.command import Command, Done
from tests.forking import PipedTap
from tests.shared_server import SHARED, SharedServer, an_id

FAST = ("--interval", "0.1")


def ids(lines: list[str]) -> list[str]:
    return [json.loads(line)["id"] for line in lines]


def now(seconds_ago: float, name: str) -> dict[str, Any]:
    moment = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    return an_event(id=name, at=f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z")


def read(run: PipedTap, count: int) -> list[str]:
    """Wait for the next lines, and return their ids."""
    return ids([run.stdout.readline().decode() for _ in range(count)])


def ended(run: PipedTap, number: signal.Signals = signal.SIGINT) -> str:
    """End the run by a signal, check that it prints no more, and return the rest of its log."""
    run.send_signal(number)
    assert run.wait(60) == 128 + number
    assert run.stdout.read() == b""
    return run.stderr.read().decode()


def wait_for_a_poll(service: Service, run: PipedTap) -> None:
    """Wait until the run has read the existing events and meets an error as it looks for more."""
    service.add_faults([Fault.parse("status:code=503@3")])
    assert b"Retry 1 of 8" in run.stderr.readline()


@contextmanager
def following(services: list[Service], tmp_path: Path, *arguments: str) -> Iterator[PipedTap]:
    """Follow the events of several organizations, without retries."""
    with SharedServer(services).served() as served:
        command = of_several(len(services), tmp_path, served)
        with command.started("tail", "--follow", *FAST, *arguments) as run:
            yield run


def tail(services: list[Service], tmp_path: Path, *arguments: str) -> Done:
    """Print the newest events of several organizations, without retries."""
    with SharedServer(services).served() as served:
        return of_several(len(services), tmp_path, served)("tail", *arguments)


def of_several(count: int, tmp_path: Path, shared: SharedServer) -> Command:
    """The command with this number of organizations and without retries."""
    items = [{"organization_id": an_id(number)} for number in range(count)]
    settings = {"base_url": shared.base_url, "access_token": SHARED, "max_retries": 0}
    return Command(tmp_path, settings | {"organizations": json.dumps(items)})
