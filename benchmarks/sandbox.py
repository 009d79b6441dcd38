"""A sandbox in a process of its own, which says how many requests it has received."""

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import IO, Any, Final, cast

from benchmarks.candidates import PROJECT

DAYS: Final = 30
SEED: Final = 1


class Sandbox:
    """The process, as the measuring process sees it; `settings` are those of a `Job`."""

    def __init__(self, stdin: IO[str], stdout: IO[str], *, events: int, milliseconds: int) -> None:
        """Wait until the sandbox serves."""
        self._stdin, self._stdout = stdin, stdout
        self.events, self.milliseconds = events, milliseconds
        self.settings: dict[str, Any] = self._read()

    def requests(self) -> int:
        """The number of requests since the start."""
        self._stdin.write("\n")
        self._stdin.flush()
        return int(self._read())

    def _read(self) -> Any:
        return json.loads(self._stdout.readline())


@contextmanager
def start_sandbox(events: int, milliseconds: int) -> Iterator[Sandbox]:
    """Start a sandbox with generated events of the last month, as they lie in office hours.

    Args:
        events: how many.
        milliseconds: the time that each response takes at least.
    """
    command = [sys.executable, "-m", "benchmarks.sandbox", str(events), str(milliseconds)]
    with subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            stdin, stdout = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
            yield Sandbox(stdin, stdout, events=events, milliseconds=milliseconds)
        finally:
            process.kill()


def _serve(events: int, milliseconds: int) -> None:
    # The measuring process imports this module too, and needs none of this.
    from tap_audit_events.sandbox import Service, serve  # noqa: PLC0415

    until = datetime.now(UTC).replace(microsecond=0)
    service = Service(page_latency_seconds=milliseconds / 1000)
    service.add_generated(events, DAYS, SEED, until)
    gc.collect()
    gc.freeze()  # a collection would walk all events in the middle of a measurement
    with serve(service) as server:
        settings = {
            "base_url": server.base_url,
            "organization_id": service.organization_id,
            "access_token": service.access_token,
            # A day earlier, as dlt compares times as texts, and some have an offset.
            "start_date": f"{until - timedelta(days=DAYS + 1):%Y-%m-%dT%H:%M:%SZ}",
            "end_date": f"{until:%Y-%m-%dT%H:%M:%SZ}",
        }
        _print(settings)
        for _ in sys.stdin:
            _print(len(service.requests))


def _print(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]))
