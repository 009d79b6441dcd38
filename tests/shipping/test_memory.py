"""The memory of `audit-events ship --follow` stays the same, however long it runs."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.tailing import now
from tests.forking import PROJECT
from tests.shipping.bulk import Bulk
from tests.shipping.receiver import Receiver
from tests.shipping.ship import arguments

MORE_MEBIBYTES = 10
EVENTS_A_ROUND = 10
WARM, ROUNDS, CHECKS = 300, 1000, 3
LOOKBACK = {"TAP_AUDIT_EVENTS_LOOKBACK_SECONDS": "5"}
"""The ids of the events in the lookback are remembered: their number must not grow any more."""


def mebibytes(process_id: int) -> float:
    """The resident set of a process."""
    (line,) = (
        line
        for line in Path(f"/proc/{process_id}/status").read_text().splitlines()
        if line.startswith("VmRSS:")
    )
    return int(line.split()[1]) / 1024


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system has no /proc")
def test_it_needs_no_more_memory_after_thousands_of_checks(
    service: Service, command: Command
) -> None:
    """New events appear every few checks."""
    index = Bulk()
    with Receiver(index) as receiver:
        to = f"opensearch:{receiver.root}/audit-events"
        module = [sys.executable, "-m", "tests.shipping.hurried"]
        with subprocess.Popen(
            [*module, *arguments(to, "--follow", "--interval", "0.5", "--quiet")],
            cwd=command.folder,
            env={**command.variables(**LOOKBACK), "PYTHONPATH": str(PROJECT)},
        ) as run:
            try:
                before = 0.0
                for number in range(ROUNDS):
                    names = [f"{number}-{event}" for event in range(EVENTS_A_ROUND)]
                    service.add([now(0, name) for name in names])
                    until = len(service.requests) + CHECKS
                    while len(service.requests) < until:
                        assert run.poll() is None
                        time.sleep(0.001)
                    if number == WARM:
                        before = mebibytes(run.pid)
                index.wait_for(ROUNDS * EVENTS_A_ROUND)
                after = mebibytes(run.pid)
            finally:
                run.terminate()
            assert run.wait(60) == 143

    assert len(index.ids) == len(set(index.ids)) == ROUNDS * EVENTS_A_ROUND
    assert after - before < MORE_MEBIBYTES, (before, after)
