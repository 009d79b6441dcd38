"""Runs one process, and measures its time and memory."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.candidates import Candidate, Job
from benchmarks.counting import Counted, count
from benchmarks.memory import PeakMemory
from benchmarks.results import Run

# Linux counts the largest resident set in KiB, macOS in bytes.
_PEAKS_IN_A_MIB: Final = 1024 * 1024 if sys.platform == "darwin" else 1024


class FailedError(Exception):
    """A candidate failed; the message names it and shows the end of its log."""


@contextmanager
def new_job(settings: dict[str, Any]) -> Iterator[Job]:
    """Create a job with a folder of its own, which is deleted after the block."""
    with tempfile.TemporaryDirectory() as folder:
        yield Job(settings, Path(folder))


def timed(candidate: Candidate, job: Job) -> Run:
    """Run a candidate with its output to the null device, from before its start to after its end.

    Without ``/proc``, the peak is never less than the memory of this process at the start.

    Raises:
        FailedError: it ended with an exit code other than 0.
    """
    command = candidate.command(job)
    with (job.folder / "log").open("wb") as log:
        started = time.perf_counter()
        process = _start(command, job, stdout=subprocess.DEVNULL, stderr=log)
        with PeakMemory(process.pid) as memory:
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
    _check(candidate, job, process.returncode)
    return Run(seconds, memory.mib or usage.ru_maxrss / _PEAKS_IN_A_MIB)


def counted(candidate: Candidate, job: Job) -> Counted:
    """Run a candidate and count the events that it delivers.

    Raises:
        FailedError: it ended with an exit code other than 0.
    """
    with (job.folder / "log").open("wb") as log:
        command = candidate.command(job)
        with _start(command, job, stdout=subprocess.PIPE, stderr=log) as process:
            if candidate.output not in {"singer", "airbyte"}:
                process.wait()  # its files are complete only at its end
            found = count(candidate.output, process.stdout or (), job)
    _check(candidate, job, process.returncode)
    return found


def _start(command: Sequence[str], job: Job, **streams: Any) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "HOME": str(job.folder)}
    return subprocess.Popen(
        command, cwd=job.folder, env=environment, stdin=subprocess.DEVNULL, **streams
    )


def _check(candidate: Candidate, job: Job, exit_code: int) -> None:
    if exit_code:
        log = (job.folder / "log").read_text(errors="replace")[-4000:]
        raise FailedError(f"{candidate.label}: exit code {exit_code}\n{log}")
