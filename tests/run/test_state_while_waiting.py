"""What was read is written and covered by a STATE while the run waits for one organization."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging import getLogger
from pathlib import Path
from typing import Any, TextIO

import pytest

from tap_audit_events.airbyte.messages import AirbyteWriter
from tap_audit_events.airbyte.sync import Sync
from tap_audit_events.config.settings import read_settings
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.sandbox import Fault
from tap_audit_events.singer.messages import MessageWriter
from tap_audit_events.singer.tap import TapAuditEvents
from tests.shared_server import SharedServer, a_service

OTHERS = 40
"""Enough organizations for a STATE that is too large to be written after each page."""

EVENTS = 3


def fast_clock() -> float:
    """Seconds of this clock pass twenty times as fast, so that a STATE is soon due."""
    return 20 * time.monotonic()


def read_by_tap(settings: dict[str, Any], stdout: TextIO, folder: Path) -> None:
    writer = MessageWriter(fast_clock, lambda: stdout)
    TapAuditEvents(config=settings, message_writer=writer).sync_all()


def read_into_batches(settings: dict[str, Any], stdout: TextIO, folder: Path) -> None:
    storage = {"root": folder.as_uri(), "prefix": ""}
    encoding = {"format": "jsonl", "compression": "none"}
    read_by_tap(
        settings | {"batch_config": {"encoding": encoding, "storage": storage}}, stdout, folder
    )


def read_by_airbyte(settings: dict[str, Any], stdout: TextIO, folder: Path) -> None:
    writer = AirbyteWriter(stdout, fast_clock)
    Sync(read_settings(settings), writer, runtime=Runtime(), logger=getLogger()).run({})


class Seen:
    """What has arrived on stdout; `covers_others` is set by a STATE that covers all others."""

    def __init__(self) -> None:
        self.covers_others = threading.Event()
        self._records = 0

    def line(self, line: str) -> None:
        message = json.loads(line)
        if message["type"] == "RECORD":
            self._records += 1
        elif message["type"] == "BATCH":
            for url in message["manifest"]:
                self._records += len(Path(url.removeprefix("file://")).read_text().splitlines())
        elif message["type"] == "STATE":
            covered = line.count("2024-05-06T08:00:02") >= OTHERS  # the time of the newest event
            if covered and self._records == OTHERS * EVENTS:
                self.covers_others.set()


@contextmanager
def pipe_to(line: Callable[[str], None]) -> Iterator[TextIO]:
    """A file whose lines a thread reads as they arrive."""
    from_run, to_reader = os.pipe()

    def read() -> None:
        with os.fdopen(from_run) as lines:
            for each in lines:
                line(each)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with os.fdopen(to_reader, "w") as stdout:
            yield stdout
    finally:
        reader.join()


HOLDS: dict[str, dict[str, Any]] = {
    "hangs": {"kind": "hang", "seconds": 3600},
    "requests a wait": {"kind": "status", "code": 503, "retry_after": "1"},
}


@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("read", [read_by_tap, read_into_batches, read_by_airbyte])
def test_state_covers_the_others_while_one_organization_waits(
    read: Callable[[dict[str, Any], TextIO, Path], None],
    hold: str,
    tmp_path: Path,
) -> None:
    """The organization responds as soon as the STATE has arrived."""
    seen, services = Seen(), [a_service(number, EVENTS) for number in range(OTHERS + 1)]
    held = Fault(**HOLDS[hold], only=lambda _: not seen.covers_others.is_set())
    services[1].add_faults([held])
    with SharedServer(services).served() as shared, pipe_to(seen.line) as stdout:
        more = {"request_timeout_seconds": 3, "max_retries": 4}
        read(shared.settings | more, stdout, tmp_path)
    assert seen.covers_others.is_set()
