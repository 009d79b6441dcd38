"""Running a command as if it had been called itself: its streams, its signals, its exit code."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

NOT_EXECUTABLE = 126
NOT_FOUND = 127
"""The exit codes of a shell that cannot run a command."""


def run_command(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a command with more environment variables; SIGINT and SIGTERM are passed on to it.

    Returns its exit code, or 128 + n where signal n ended it.

    Raises OSError where it cannot be started.
    """
    process = subprocess.Popen(command, env={**os.environ, **variables})  # noqa: S603

    def pass_on(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT or not _shares_terminal():
            process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code


def exit_code_of(error: OSError) -> int:
    """The exit code for a command that could not be started."""
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def _shares_terminal() -> bool:
    """Whether the terminal's Ctrl-C goes to the command by itself; twice may mean more to it."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):  # Standard input is no terminal, or closed.
        return False
