"""Executors and drivers as processes of their own, which are killed."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

import pytest

from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.cli.exported import history
from tests.spark.conftest import Options

APP = Path(__file__).with_name("cluster_app.py")
CLUSTER = "local-cluster[2,1,1024]"
EXECUTOR = b"CoarseGrainedExecutorBackend"


@pytest.fixture
def start(tmp_path: Path) -> Any:
    """Start the program, in a process group of its own, which the test ends."""
    (tmp_path / "log").mkdir()
    started: list[subprocess.Popen[str]] = []

    def start_app(master: str, options: dict[str, str]) -> "subprocess.Popen[str]":
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, str(APP), master, str(tmp_path), json.dumps(options)]
        with (tmp_path / "stderr").open("a") as stderr:
            process = subprocess.Popen(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )
        started.append(process)
        return process

    yield start_app
    for each in started:
        kill_group(each)


def kill_group(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def lines_until(output: IO[str], start: str) -> list[str]:
    lines = []
    for line in output:
        lines.append(line)
        if line.startswith(start):
            return lines
    raise AssertionError("".join(lines))


def executors(group: int) -> list[int]:
    """The processes of executors in a process group."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if EXECUTOR in (each / "cmdline").read_bytes() and os.getpgid(int(each.name)) == group:
                found.append(int(each.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


def wait_for_request(service: Service, number: int) -> None:
    """Wait until the service has received so many requests."""
    received = threading.Event()

    def notice(request: ReceivedRequest) -> bool:
        if request.number >= number:
            received.set()
        return False  # the fault concerns no request

    service.add_faults([Fault(kind="status", code=500, only=notice)])
    assert received.wait(timeout=120)


def stored_ids(spark: Any, folder: Path) -> list[str]:
    return sorted(row["id"] for row in spark.read.parquet(str(folder / "events")).collect())


def test_killed_executors_and_drivers_lose_and_repeat_nothing(
    spark: Any, service: Service, options: Options, start: Any, tmp_path: Path
) -> None:
    """An executor in the middle of a batch, then the driver; the token is shown nowhere."""
    service.add(history(400))
    given = options(page_size="10", partitions="4", max_events_per_trigger="80")
    app = start(CLUSTER, given)
    printed = lines_until(app.stdout, "read ")
    assert printed[-1] == "read 400 400\n"
    seen = len(service.requests)
    wait_for_request(service, seen + 15)
    os.kill(executors(app.pid)[0], signal.SIGKILL)
    wait_for_request(service, seen + 30)
    kill_group(app)

    app = start("local[2]", given)
    lines_until(app.stdout, "streamed")
    kill_group(app)

    assert stored_ids(spark, tmp_path) == [f"{n:05}" for n in range(400)]
    for each in [tmp_path / "stderr", *(tmp_path / "log").rglob("*")]:
        assert each.is_dir() or service.access_token not in each.read_text()
    assert service.access_token not in "".join(printed)
