"""The tap is killed again and again, and each event is still delivered exactly once."""

import json
import os
import random
import signal
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import ACCESS_TOKEN, Service, serve
from tests.builders import an_event
from tests.forking import PipedTap
from tests.running import settings_for

EVENTS = 50_000
LEAST_KILLS = 20
FAULTS = ["status:code=503@*/41", "reset@*/53", "cut@*/67", "empty@*/29", "short@*/31"]


def many_events(rng: random.Random) -> list[dict[str, Any]]:
    """Return events, most of which share their instant with others, some with hundreds."""
    events: list[dict[str, Any]] = []
    second = 0
    while len(events) < EVENTS:
        second += rng.choice([1, 1, 60])
        for _ in range(rng.choice([1, 2, 10, 400])):
            hour, rest = divmod(second, 3600)
            at = f"2024-05-{6 + hour // 24:02}T{hour % 24:02}:{rest // 60:02}:{rest % 60:02}Z"
            events.append(an_event(id=f"{rng.getrandbits(64):016x}", at=at, context={}))
    return events[:EVENTS]


class TargetThatCommitsAtState:
    """Commits records only with the STATE that covers them, like a database transaction."""

    def __init__(self) -> None:
        self.committed: Counter[str] = Counter()
        self.state: dict[str, Any] = {}
        self._pending: list[str] = []

    def begin(self) -> None:
        self._pending = []

    def take(self, line: bytes) -> None:
        if not line.endswith(b"\n"):
            return  # the process died while it wrote the line
        message = json.loads(line)
        if message["type"] == "RECORD":
            self._pending.append(message["record"]["id"])
        elif message["type"] == "STATE":
            self.committed.update(self._pending)
            self._pending = []
            self.state = message["value"]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_runs_that_are_killed_deliver_each_event_once_in_total(tmp_path: Path) -> None:
    """No event is lost or repeated with SIGKILL and SIGTERM at random lines, and many faults."""
    rng = random.Random(20260131)
    service = Service(faults=FAULTS, cursor_lifetime_requests=50)
    events = many_events(rng)
    service.add(events)
    target = TargetThatCommitsAtState()
    exit_codes: Counter[int] = Counter()
    with serve(service) as server:
        settings = settings_for(service, server.base_url, page_size=250, lookback_seconds=30)
        (tmp_path / "config.json").write_text(json.dumps(settings))
        while exit_codes[0] == 0 and sum(exit_codes.values()) < 10 * LEAST_KILLS:
            exit_codes[run_and_kill(tmp_path, target, rng)] += 1
    kills = exit_codes[-signal.SIGKILL] + exit_codes[128 + signal.SIGTERM]
    assert kills >= LEAST_KILLS, exit_codes
    assert sum(exit_codes.values()) == kills + 1, exit_codes
    assert target.committed == Counter(event["id"] for event in events)
    assert service.violations == []


def run_and_kill(folder: Path, target: TargetThatCommitsAtState, rng: random.Random) -> int:
    """Run the tap with the target's state into the target, and end it at a random line."""
    (folder / "state.json").write_text(json.dumps(target.state))
    target.begin()
    arguments = ["--config", "config.json", "--state", "state.json"]
    with closing(PipedTap(arguments, environment=os.environ, folder=folder)) as process:
        last_line = rng.randint(500, 3500)
        for number, line in enumerate(process.stdout):
            assert ACCESS_TOKEN.encode() not in line
            target.take(line)
            if number == last_line:
                process.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM]))
        exit_code = process.wait(timeout=60)
        assert ACCESS_TOKEN.encode() not in process.stderr.read()
    return exit_code
