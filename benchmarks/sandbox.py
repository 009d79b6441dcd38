"""A sandbox in a separate process, which reports its traffic on request."""

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from benchmarks.candidates import PROJECT
from benchmarks.results import Content
from benchmarks.shapes import DAYS, OFFICE_HOURS, SEED, TEMPLATES, events


@dataclass(frozen=True)
class Traffic:
    """The requests to a sandbox since its start, and the processor time of its process."""

    requests: int
    violations: int
    cpu_seconds: float


class Sandbox:
    """Controls a process of `start_sandbox` from the measuring process.

    Attributes:
        settings: The settings with which a client reaches it.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Wait until the sandbox serves."""
        if process.stdin is None or process.stdout is None:
            raise ValueError("the process has no pipes")
        self._stdin, self._stdout = process.stdin, process.stdout
        self.settings: dict[str, Any] = self._read()

    def traffic(self) -> Traffic:
        self._stdin.write("\n")
        self._stdin.flush()
        return Traffic(**self._read())

    def _read(self) -> Any:
        return json.loads(self._stdout.readline())


@contextmanager
def start_sandbox(
    content: Content, until: datetime, faults: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    """Start the process of a sandbox, which first generates its events; it ends with the block."""
    command = [sys.executable, "-m", "benchmarks.sandbox", f"--until={until.isoformat()}"]
    command += [f"--content={msgspec.json.encode(content).decode()}"]
    command += [f"--fault={fault}" for fault in faults]
    with subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _serve(content: Content, until: datetime, faults: Sequence[str]) -> None:
    """Print the settings of a client, then the traffic so far for each line of stdin."""
    # The measuring process imports this module too and must stay small: see `measuring.timed`.
    from tap_audit_events.sandbox import Service, generate, serve  # noqa: PLC0415
    from tap_audit_events.sandbox.several import SeveralServices  # noqa: PLC0415

    service = Service(
        page_latency_seconds=content.latency_seconds, gzip=content.gzip, faults=faults
    )
    until = content.until(until)
    if content.shape == OFFICE_HOURS:
        service.add_generated(content.events, DAYS, SEED, until)
    else:
        templates = generate(TEMPLATES, DAYS, SEED, until)
        service.add(events(content.shape, content.events, until, templates))
    quiet = [
        Service(organization_id=str(UUID(int=n)), page_latency_seconds=content.latency_seconds)
        for n in range(1, content.organizations)
    ]
    served = SeveralServices([service, *quiet]) if content.organizations else service
    gc.collect()
    gc.freeze()  # A collection would walk a million events in the middle of a measurement.
    organizations = [{"organization_id": each.organization_id} for each in (service, *quiet)]
    which: dict[str, Any] = {"organization_id": service.organization_id}
    with serve(served) as server:
        _print(
            base_url=server.base_url,
            access_token=service.access_token,
            **({"organizations": organizations} if content.organizations else which),
        )
        for _ in sys.stdin:
            _print(
                requests=len(served.requests),
                violations=len(served.violations),
                cpu_seconds=time.process_time(),
            )


def _print(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--content", required=True, help="`Content` as JSON")
    parser.add_argument("--until", type=datetime.fromisoformat, required=True)
    parser.add_argument("--fault", dest="faults", action="append", default=[])
    given = parser.parse_args()
    _serve(msgspec.json.decode(given.content, type=Content), given.until, given.faults)


if __name__ == "__main__":
    main()
