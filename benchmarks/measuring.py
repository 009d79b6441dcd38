"""Runs one process and measures its time, processor time and memory."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from benchmarks.candidates import FILES, PROJECT, Candidate, Job
from benchmarks.counting import Counted
from benchmarks.memory import PeakMemory

# Linux counts the largest resident set in KiB, macOS in bytes.
_PEAKS_IN_A_MIB: Final = 1024 * 1024 if sys.platform == "darwin" else 1024


class FailedError(Exception):
    """A candidate failed; the message is the end of its log."""


@dataclass(frozen=True)
class Usage:
    """The time and memory that a process used: see `results.Sample`."""

    seconds: float
    cpu_seconds: float
    peak_mib: float


@contextmanager
def new_job(settings: dict[str, Any], state: Path | None = None) -> Iterator[Job]:
    """Create a job with its own folder, which is deleted after the block."""
    with tempfile.TemporaryDirectory() as folder:
        yield Job(settings, Path(folder), state)


def timed(candidate: Candidate, job: Job) -> Usage:
    """Run a candidate once, with its output to the null device.

    The peak is never less than the memory of this process at the start. Therefore this process
    imports little and holds little.

    Raises:
        FailedError: it ended with an exit code other than 0.
    """
    command = candidate.command(job)
    with _log(candidate, job) as log:
        started = time.perf_counter()
        process = _start(command, job, stdout=subprocess.DEVNULL, stderr=log)
        with PeakMemory(process.pid) as memory:
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        _check(process.returncode)
    peak_mib = max(memory.mib, usage.ru_maxrss / _PEAKS_IN_A_MIB)
    return Usage(seconds, usage.ru_utime + usage.ru_stime, peak_mib)


def counted(candidate: Candidate, job: Job) -> Counted:
    """Run a candidate once without measuring time, and count the events that it delivers.

    Raises:
        FailedError: it ended with an exit code other than 0.
    """
    with _log(candidate, job) as log:
        found, exit_code = attempted(candidate, job, log)
        _check(exit_code)
    return found


def attempted(candidate: Candidate, job: Job, log: IO[bytes]) -> tuple[Counted, int]:
    """Run a candidate that may fail; return the counts of its events, and its exit code."""
    command = candidate.command(job)
    with _start(command, job, stdout=subprocess.PIPE, stderr=log) as process:
        if candidate.output == "dlt" or candidate.output in FILES:  # complete only at its end
            process.communicate()
        found = _count(candidate, job, process.stdout)
    return msgspec.json.decode(found, type=Counted), process.returncode


def _start(command: Sequence[str], job: Job, **streams: Any) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "HOME": str(job.folder)}
    return subprocess.Popen(
        command, cwd=job.folder, env=environment, stdin=subprocess.DEVNULL, **streams
    )


def _count(candidate: Candidate, job: Job, output: IO[bytes] | None) -> bytes:
    command = [sys.executable, "-m", "benchmarks.counting", str(candidate.output)]
    if candidate.output == "dlt":
        command, output = [*command, f"--folder={job.folder / 'dlt'}"], None
    elif candidate.output in FILES:
        command, output = [*command, f"--file={job.folder / FILES[candidate.output]}"], None
    done = subprocess.run(command, cwd=PROJECT, stdin=output, stdout=subprocess.PIPE, check=True)
    return done.stdout


def _check(exit_code: int) -> None:
    if exit_code:
        raise FailedError(f"exit code {exit_code}")


@contextmanager
def _log(candidate: Candidate, job: Job) -> Iterator[IO[bytes]]:
    """Open a file for the log of a candidate; its last lines become part of the error."""
    path = job.folder / "log"
    try:
        with path.open("wb") as log:
            yield log
    except FailedError as error:
        lines = path.read_text(errors="replace")[-4000:]
        raise FailedError(f"{candidate.label}: {error}\n{lines}") from None
