"""A sandbox in a process of its own, which tells on request what it was asked and what it cost."""

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

DAYS: Final = 30
SEED: Final = 1


@dataclass(frozen=True)
class Traffic:
    """What a sandbox has seen since it was started; `cpu_seconds` are its own process's."""

    requests: int
    violations: int
    cpu_seconds: float


class Sandbox:
    """The side that measures; over a process of `starting`.

    Attributes:
        address: The settings with which a client reaches it.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the process has no pipes")
        self._asking, self._answers = process.stdin, process.stdout
        self.address: dict[str, str] = self._heard()

    def traffic(self) -> Traffic:
        self._asking.write("\n")
        self._asking.flush()
        return Traffic(**self._heard())

    def _heard(self) -> Any:
        return json.loads(self._answers.readline())


@contextmanager
def starting(
    events: int, latency_seconds: float, until: datetime
) -> Iterator[subprocess.Popen[str]]:
    """The process of a sandbox that may still be generating its events; it ends with the block."""
    command = [sys.executable, "-m", "benchmarks.sandbox"]
    command += [
        f"--events={events}",
        f"--latency={latency_seconds}",
        f"--until={until.isoformat()}",
    ]
    with subprocess.Popen(
        command,
        cwd=Path(__file__).resolve().parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _serve(events: int, latency_seconds: float, until: datetime) -> None:
    """Say where it is served, then answer each line of stdin with the traffic so far."""
    # The side that measures must stay small: see `measuring.timed`.
    from tap_audit_events.sandbox import Service, serve  # noqa: PLC0415

    service = Service(page_latency_seconds=latency_seconds)
    service.add_generated(events, DAYS, SEED, until)
    gc.collect()
    gc.freeze()  # A collection would walk a million events in the middle of a measurement.
    with serve(service) as server:
        _say(
            base_url=server.base_url,
            organization_id=service.organization_id,
            access_token=service.access_token,
        )
        for _ in sys.stdin:
            _say(
                requests=len(service.requests),
                violations=len(service.violations),
                cpu_seconds=time.process_time(),
            )


def _say(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--latency", type=float, required=True)
    parser.add_argument("--until", type=datetime.fromisoformat, required=True)
    given = parser.parse_args()
    _serve(given.events, given.latency, given.until)


if __name__ == "__main__":
    main()
