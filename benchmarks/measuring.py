"""Runs one process and says what it took."""

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

from benchmarks.candidates import PROJECT, Candidate, Job
from benchmarks.counting import Counted

# Linux counts the largest resident set in KiB, macOS in bytes.
_PEAKS_IN_A_MIB: Final = 1024 * 1024 if sys.platform == "darwin" else 1024


class FailedError(Exception):
    """A candidate did not do what it was asked; its log is the message."""


@dataclass(frozen=True)
class Taken:
    """What a process took: see `results.Sample`."""

    seconds: float
    cpu_seconds: float
    peak_mib: float


@contextmanager
def job(settings: dict[str, str], kept: Path | None = None) -> Iterator[Job]:
    """A job in a folder of its own, which goes away with the block."""
    with tempfile.TemporaryDirectory() as folder:
        yield Job(settings, Path(folder), kept)


def timed(candidate: Candidate, asked: Job) -> Taken:
    """Run a candidate once, its output thrown away by the system.

    The peak is never less than the caller's own at its start, which is why this process imports
    little and holds nothing.

    Raises:
        FailedError: it ended with an exit code other than 0.
    """
    command = candidate.command(asked)
    with _log(candidate, asked) as log:
        started = time.perf_counter()
        process = _start(command, asked, stdout=subprocess.DEVNULL, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        _check(process)
    peak_mib = usage.ru_maxrss / _PEAKS_IN_A_MIB
    return Taken(seconds, usage.ru_utime + usage.ru_stime, peak_mib)


def counted(candidate: Candidate, asked: Job) -> Counted:
    """Run a candidate once, untimed, and count in a process beside it what it writes.

    Raises:
        FailedError: it ended with an exit code other than 0.
    """
    command = candidate.command(asked)
    with _log(candidate, asked) as log:
        process = _start(command, asked, stdout=subprocess.PIPE, stderr=log)
        if candidate.output == "dlt":  # It writes files, and they are whole only at its end.
            process.communicate()
        found = _count(candidate, asked, process.stdout)
        process.wait()
        _check(process)
    return msgspec.json.decode(found, type=Counted)


def _start(command: Sequence[str], asked: Job, **streams: Any) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "HOME": str(asked.folder)}
    return subprocess.Popen(
        command, cwd=asked.folder, env=environment, stdin=subprocess.DEVNULL, **streams
    )


def _count(candidate: Candidate, asked: Job, written: IO[bytes] | None) -> bytes:
    command = [sys.executable, "-m", "benchmarks.counting", str(candidate.output)]
    if candidate.output == "dlt":
        command, written = [*command, f"--folder={asked.folder / 'dlt'}"], None
    done = subprocess.run(command, cwd=PROJECT, stdin=written, stdout=subprocess.PIPE, check=True)
    return done.stdout


def _check(process: subprocess.Popen[bytes]) -> None:
    if process.returncode:
        raise FailedError(f"exit code {process.returncode}")


@contextmanager
def _log(candidate: Candidate, asked: Job) -> Iterator[IO[bytes]]:
    """A file for what a candidate says; its last lines become part of the error."""
    path = asked.folder / "log"
    try:
        with path.open("wb") as log:
            yield log
    except FailedError as error:
        said = path.read_text(errors="replace")[-4000:]
        raise FailedError(f"{candidate.label}: {error}\n{said}") from None
