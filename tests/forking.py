"""Runs the tap, or the command, in forks of a process that has imported it, which saves time.

A fork is a process like any other: it has its own arguments, environment, folder, streams, signals
and exit code, and it runs the same command. Only its start and its end differ. The interpreter,
which reads variables such as ``PYTHONUNBUFFERED``, has already started and has imported the tap.
At the end, it does not free every object, which would take as long as a short run. A test of the
start or the end starts an interpreter instead.
"""

import atexit
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

PROJECT = Path(__file__).resolve().parent.parent
TAP = "tap_audit_events"
COMMAND = f"{TAP}.cli"
_OUTPUTS = (
    "csv_file",
    "day_folder",
    "delta_table",
    "duckdb_table",
    "iceberg_table",
    "lines_file",
    "parquet_file",
    "postgres_table",
    "single_file",
)
_OF_COMMAND = (
    *(f"{COMMAND}.{name}" for name in ("command", "export", "count", "tail", "verify")),
    *(f"{TAP}.outputs.{name}" for name in _OUTPUTS),
    *("pyiceberg.catalog.sql", "pyiceberg.io.pyarrow"),
)
IMPORTED = {
    TAP: tuple(
        f"{TAP}.{name}" for name in ("singer.tap", "singer.stream", "reporting.connection_test")
    ),
    COMMAND: _OF_COMMAND,
    f"{TAP}.airbyte": tuple(
        f"{TAP}.{name}" for name in ("airbyte.command_line", "reporting.connection_test")
    ),
    "tests.cli.dying": _OF_COMMAND,
    "tests.cli.refusing": _OF_COMMAND,
    "tests.outputs.small_parts": _OF_COMMAND,
    "tests.shipping.impatient": _OF_COMMAND,
}
"""The modules that can be run, and the modules that each has imported when it begins, except those
whose libraries are missing."""
NUMBER_BYTES = 8
MAX_SILENT_SECONDS = 60


class ForkedTap:
    """A run of the tap, with the methods of a `subprocess.Popen` that tests use."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        streams: tuple[int, int],
        module: str = TAP,
        python: str = sys.executable,
    ) -> None:
        """Start the run of a module, which writes to the two streams, stdout and stderr."""
        self._idle = _idle.setdefault((python, module), [])
        self._helper = self._idle.pop() if self._idle else Helper(python, module)
        request = {"arguments": arguments, "environment": {**environment}, "folder": str(folder)}
        self.pid = self._helper.fork(request, streams)
        self.exit_code: int | None = None

    def wait(self, timeout: float) -> int:
        """Wait for the end of the run, and return its exit code, which is negative for a signal.

        Raises:
            subprocess.TimeoutExpired: the run has not ended after so many seconds.
        """
        if self.exit_code is None:
            if not self._helper.has_sent(timeout):
                raise subprocess.TimeoutExpired("tap-audit-events", timeout)
            self.exit_code = self._helper.receive()
            self._idle.append(self._helper)
        return self.exit_code

    def send_signal(self, number: int) -> None:
        if self.exit_code is None:
            with suppress(ProcessLookupError):  # It has ended; its code is not here yet.
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End the run if it has not ended."""
        self.send_signal(signal.SIGKILL)
        self.wait(timeout=60)


class PipedTap(ForkedTap):
    """A run of the tap whose output is read while it runs."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        module: str = TAP,
        python: str = sys.executable,
    ) -> None:
        (stdout, to_stdout), (stderr, to_stderr) = os.pipe(), os.pipe()
        self.stdout: IO[bytes] = io.BufferedReader(_Pipe(stdout))
        self.stderr: IO[bytes] = io.BufferedReader(_Pipe(stderr))
        streams = to_stdout, to_stderr
        super().__init__(
            arguments,
            environment=environment,
            folder=folder,
            streams=streams,
            module=module,
            python=python,
        )
        for stream in streams:
            os.close(stream)

    def close(self) -> None:
        """End the run if it has not ended, and close the pipes."""
        self.kill()
        self.stdout.close()
        self.stderr.close()


def signal_until_gone(process: "ForkedTap | subprocess.Popen[bytes]", number: int) -> int:
    """Send a signal again and again until the process has ended, and return its exit code."""
    for _ in range(100):
        process.send_signal(number)
        try:
            return process.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("it does not end")


class _Pipe(io.FileIO):
    """A pipe that does not wait long for the next bytes, so that a test ends without them."""

    def readinto(self, buffer: Any) -> int | None:
        if not select.select([self], [], [], MAX_SILENT_SECONDS)[0]:
            raise TimeoutError(f"nothing was written for {MAX_SILENT_SECONDS} s")
        return super().readinto(buffer)


class Helper:
    """A process that forks runs of a module, one at a time."""

    def __init__(self, python: str, module: str) -> None:
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [python, "-m", "tests.forking", str(theirs.fileno()), module],
                cwd=PROJECT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def fork(self, request: dict[str, Any], streams: Sequence[int]) -> int:
        """Start a run, and return its process id; its exit code is sent when it has ended."""
        socket.send_fds(self._connection, [b"!"], streams)
        self._connection.sendall(json.dumps(request).encode() + b"\n")
        return self.receive()

    def has_sent(self, timeout_seconds: float) -> bool:
        """Wait for a number so long, and return whether it can be received."""
        return bool(select.select([self._connection], [], [], timeout_seconds)[0])

    def receive(self) -> int:
        """Wait for a number, and return it."""
        number = self._connection.recv(NUMBER_BYTES, socket.MSG_WAITALL)
        assert len(number) == NUMBER_BYTES, "the helper has ended"
        return int.from_bytes(number, sys.byteorder, signed=True)


_idle: dict[tuple[str, str], list[Helper]] = {}


# The helper


def _fork_for_each_request(tests: socket.socket) -> None:
    """Return in each fork, ready to run the tap; exit when the tests close the connection."""
    lines = tests.makefile()
    while True:
        byte, streams, *_ = socket.recv_fds(tests, 1, 2)
        if not byte:
            sys.exit()
        request = json.loads(lines.readline())
        pid = os.fork()
        if pid == 0:
            lines.close()
            tests.close()
            _become(request, streams)
            return
        for stream in streams:
            os.close(stream)
        _send(tests, pid)
        _send(tests, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _send(tests: socket.socket, number: int) -> None:
    tests.sendall(number.to_bytes(NUMBER_BYTES, sys.byteorder, signed=True))


def _become(request: dict[str, Any], streams: Sequence[int]) -> None:
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path[0] = request["folder"]
    sys.argv[1:] = request["arguments"]


def _end_at_once(exit_codes: list[Any]) -> None:
    """End the process, unless its output cannot be flushed or an error ended it."""
    if exit_codes:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(exit_codes[0] or 0)


if __name__ == "__main__":
    ended: list[Any] = []
    atexit.register(_end_at_once, ended)  # it is registered first, so it is called last
    started = sys.argv.pop(2)
    for module in IMPORTED[started]:
        with suppress(Exception):  # a run that needs the library says that it is missing
            __import__(module)
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        _fork_for_each_request(connection)
    try:
        runpy.run_module(started, run_name="__main__", alter_sys=True)
    except SystemExit as exited:
        ended.append(exited.code)
        raise
