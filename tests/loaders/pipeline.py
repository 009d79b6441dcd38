"""Runs the tap and a loader as a user does: as processes that are connected by pipes."""

import array
import fcntl
import json
import os
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PROJECT: Final = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS: Final = 240

Command = Sequence[str | Path]


@dataclass(frozen=True)
class Loaded:
    """How a load ended.

    Attributes:
        exit_codes: those of the tap, of the mapper if there is one, and of the loader.
        state: the last state that the loader printed; None if it printed none.
        log: what all of them wrote to stderr.
    """

    exit_codes: tuple[int, ...]
    state: Any
    log: str

    @property
    def tap_exit_code(self) -> int:
        return self.exit_codes[0]

    @property
    def loader_exit_code(self) -> int:
        return self.exit_codes[-1]

    def check(self) -> "Loaded":
        """Check that each process ended with 0."""
        assert set(self.exit_codes) == {0}, (self.exit_codes, self.log[-3000:])
        return self


def tap_command(folder: Path, settings: Mapping[str, Any], state: Any = None) -> Command:
    """The command that runs the tap; its files are written to a folder."""
    arguments = ["--config", written(folder / "tap.json", settings)]
    if state is not None:
        arguments += ["--state", written(folder / "state.json", state)]
    return [sys.executable, "-m", "tap_audit_events", *arguments]


def written(path: Path, document: Any) -> str:
    """Write a JSON document, and return its path."""
    path.write_text(json.dumps(document))
    return str(path)


def load(
    commands: Sequence[Command],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    stdin: Path = Path(os.devnull),
) -> Loaded:
    """Run commands that are connected by pipes, and wait for all of them.

    Args:
        commands: the first one reads `stdin`, the last one prints states.
        folder: where they run.
        environment: further variables.
        stdin: a file.
    """
    variables = {**_inherited(), **(environment or {})}
    log, states = folder / "log.txt", folder / "states.txt"
    with ExitStack() as stack:
        stderr = stack.enter_context(log.open("wb"))
        before: Any = stack.enter_context(stdin.open("rb"))
        processes = []
        for number, command in enumerate(commands, start=1):
            is_last = number == len(commands)
            stdout: Any = stack.enter_context(states.open("wb")) if is_last else subprocess.PIPE
            process = subprocess.Popen(
                command, cwd=folder, env=variables, stdin=before, stdout=stdout, stderr=stderr
            )
            stack.callback(process.kill)
            # Only the next process may hold the pipe: otherwise, its end would not be noticed.
            before.close()
            before = process.stdout
            processes.append(process)
        codes = tuple(process.wait(TIMEOUT_SECONDS) for process in processes)
    lines = states.read_bytes().splitlines()
    return Loaded(codes, json.loads(lines[-1]) if lines else None, log.read_text(errors="replace"))


def load_and_kill(
    command: Command, folder: Path, environment: Mapping[str, str], messages: bytes
) -> Any:
    """Kill a loader once it has read the messages, and return the last state that it printed."""
    states = folder / "states-of-the-killed.txt"
    with states.open("wb") as stdout, (folder / "log-of-the-killed.txt").open("wb") as stderr:
        variables = {**_inherited(), **environment}
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
        )
        with process:
            assert process.stdin is not None
            process.stdin.write(messages)
            process.stdin.flush()
            _wait_until_read(process)
            process.kill()
    lines = states.read_bytes().splitlines()
    return json.loads(lines[-1]) if lines else None


def _wait_until_read(process: "subprocess.Popen[bytes]") -> None:
    """Wait until the pipe to a process is empty."""
    assert process.stdin is not None
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while process.poll() is None:
        unread = array.array("i", [0])
        fcntl.ioctl(process.stdin, termios.FIONREAD, unread)
        if not unread[0]:
            return
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _inherited() -> dict[str, str]:
    """The environment without settings of taps and loaders, with the tap of this repository."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TAP_", "TARGET_", "PG", "MELTANO_"))
    }
    return kept | {"PYTHONPATH": str(PROJECT)}
