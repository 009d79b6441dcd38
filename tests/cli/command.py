"""Runs the command `audit-events` as a user does: in a process of its own, against a service."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tap_audit_events.config.names import ENVIRONMENT_PREFIX
from tests.forking import COMMAND, PROJECT, ForkedTap, PipedTap
from tests.running import CODED, TIMEOUT_SECONDS, forms_of


@dataclass(frozen=True)
class Done:
    """The output and the exit code of a run."""

    stdout: bytes
    log: str
    exit_code: int

    @property
    def lines(self) -> list[str]:
        return self.stdout.decode().splitlines()

    @property
    def error(self) -> str:
        """The only line that is an error."""
        (line,) = [line for line in self.log.splitlines() if CODED.match(line)]
        assert "Traceback" not in self.log
        return line

    @property
    def warnings(self) -> list[str]:
        return [line for line in self.log.splitlines() if line.startswith("Warning: ")]

    def raise_for_exit_code(self) -> "Done":
        assert self.exit_code == 0, self.log
        return self


@dataclass(frozen=True)
class Command:
    """The command, in a folder, with settings in the environment.

    Attributes:
        environment: further variables.
        python: the interpreter, which has the libraries that the command needs.
        secrets: what a run must not show, besides the token.
    """

    folder: Path
    settings: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)
    python: str = sys.executable
    secrets: tuple[str, ...] = ()

    def __call__(self, *arguments: str, module: str = COMMAND, **environment: str) -> Done:
        """Run the command to its end."""
        out, log = self.folder / ".stdout", self.folder / ".stderr"
        with out.open("wb") as stdout, log.open("wb") as stderr:
            tap = ForkedTap(
                arguments,
                environment=self.variables(**environment),
                folder=self.folder,
                streams=(stdout.fileno(), stderr.fileno()),
                module=module,
                python=self.python,
            )
        try:
            exit_code = tap.wait(TIMEOUT_SECONDS)
        finally:
            tap.kill()
        done = Done(out.read_bytes(), log.read_text("utf-8"), exit_code)
        out.unlink()
        log.unlink()
        self.check_discreet(done.log)
        return done

    @contextmanager
    def started(
        self, *arguments: str, module: str = COMMAND, **environment: str
    ) -> Iterator[PipedTap]:
        """Start the command; at the end of the block, kill it if it still runs."""
        tap = PipedTap(
            arguments,
            environment=self.variables(**environment),
            folder=self.folder,
            module=module,
            python=self.python,
        )
        try:
            yield tap
        finally:
            tap.close()

    def under(self, before: Sequence[str], *arguments: str) -> Done:
        """Run the command in an interpreter of its own, started by another command."""
        done = subprocess.run(
            [*before, self.python, "-m", COMMAND, *arguments],
            env={**self.variables(), "PYTHONPATH": str(PROJECT)},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        self.check_discreet(done.stderr.decode())
        return Done(done.stdout, done.stderr.decode(), done.returncode)

    def variables(self, **more: str) -> dict[str, str]:
        given = {
            f"{ENVIRONMENT_PREFIX}{name.upper()}": str(value)
            for name, value in self.settings.items()
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return {**kept, "HOME": str(self.folder), **given, **self.environment, **more}

    def check_discreet(self, log: str) -> None:
        """The log does not contain the token, or another secret, in any form."""
        for secret in filter(None, [self.settings.get("access_token"), *self.secrets]):
            assert not [form for form in forms_of(secret) if form in log.lower()]

    @property
    def left_over(self) -> list[str]:
        """The hidden files in the folder; a run must not leave any when it ends."""
        return sorted(
            str(path.relative_to(self.folder))
            for path in self.folder.rglob("*")
            if path.name.startswith(".")
        )
