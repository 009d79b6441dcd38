"""Runs the tap as a user does: in its own process, through its command line."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from tap_audit_events.errors.redaction import MIN_SECRET_LENGTH
from tap_audit_events.sandbox import Service
from tests.forking import ForkedTap

STREAM = "audit_events"
TIMEOUT_SECONDS = 120
CODED = re.compile(r"AE-[0-9A-Z]+(-[A-Z]+)*: \S")
"""The beginning of a line that ends a run: `docs/errors.md`."""


_AT_START = re.compile("PYTHON|LC_|LANG|SINGER_SDK_LOG_CONFIG$")
"""Variables that matter when an interpreter starts, or that set up the log from a file."""

RECORD_LINE = '{"type":"RECORD",'


def forms_of(token: str) -> set[str]:
    """Return the forms in which other programs write a token, in lower case."""
    in_json = json.dumps(token)[1:-1]
    forms = {token, in_json, repr(token)[1:-1], quote(token), quote(token, safe="")}
    return {form.lower() for form in forms}


@dataclass(frozen=True)
class Run:
    """The output, log and exit code of a run."""

    stdout: bytes
    log: str
    exit_code: int

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stdout.split(b"\n")[:-1]]

    @property
    def records(self) -> list[dict[str, Any]]:
        return [message["record"] for message in self.messages if message["type"] == "RECORD"]

    @property
    def ids(self) -> list[str]:
        return [record["id"] for record in self.records]

    @property
    def states(self) -> list[dict[str, Any]]:
        return [message["value"] for message in self.messages if message["type"] == "STATE"]

    @property
    def state(self) -> dict[str, Any]:
        return self.states[-1]

    @property
    def bookmark(self) -> str:
        value: str = self.state["bookmarks"][STREAM]["replication_key_value"]
        return value

    @property
    def errors(self) -> list[str]:
        """The text of each ERROR line, and each line that is not a log line. All have a code."""
        lines = [line.split(" | ", 3) for line in self.log.splitlines()]
        found = [parts[-1] for parts in lines if len(parts) < 4 or parts[1].strip() == "ERROR"]
        assert all(map(CODED.match, found)), self.log
        return found

    @property
    def warnings(self) -> list[str]:
        lines = [line.split(" | ", 3) for line in self.log.splitlines()]
        return [parts[3] for parts in lines if len(parts) == 4 and parts[1].strip() == "WARNING"]

    def check_discreet(self, tokens: Iterable[str]) -> None:
        """Check that no token has left the process in any form, except in a RECORD."""
        forms = {form for token in tokens for form in forms_of(token)}
        lines = self.stdout.decode("utf-8", "replace").split("\n") if forms else []
        for line in [*lines, *self.log.split("\n")]:
            if any(form in line.lower() for form in forms):
                assert line.startswith(RECORD_LINE), f"shows the token: {line[:1000]}"

    def raise_for_exit_code(self) -> Self:
        assert self.exit_code == 0, self.log
        return self


def settings_for(service: Service, base_url: str, **settings: Any) -> dict[str, Any]:
    """Return the settings that reach a sandbox, and further settings."""
    return {
        "base_url": base_url,
        "organization_id": service.organization_id,
        "access_token": service.access_token,
    } | settings


def run(
    settings: Mapping[str, Any] | str | None,
    *arguments: str,
    state: object = None,
    catalog: object = None,
    environment: Mapping[str, str] | None = None,
    most_kilobytes: int | None = None,
    under: Sequence[str] = (),
) -> Run:
    """Run the tap to its end. A string is written to its file as it is, other values as JSON.

    `most_kilobytes` limits the address space of the process. `under` is a command that runs the
    command that follows it. A run with either of them, without settings, or with a variable of
    `_AT_START` starts an interpreter; other runs are forks.
    """
    environment = environment or {}
    before = list(under)
    if most_kilobytes:
        before = ["sh", "-c", f'ulimit -v {most_kilobytes} && exec "$@"', "sh"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = {"--config": settings, "--state": state, "--catalog": catalog}
        command = [*_written(folder, given), *arguments]
        variables = {**os.environ, "HOME": name, **environment}
        if settings is None or before or any(map(_AT_START.match, environment)):
            ended = _started(command, variables, folder, before)
        else:
            ended = _forked(command, variables, folder)
        tokens = _tokens(settings or {}, environment)
    ended.check_discreet(tokens)
    assert ended.exit_code == 0 or ended.errors, ended.log
    return ended


def _started(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    before: Sequence[str],
) -> Run:
    """Run the tap in a new interpreter, with a command before it."""
    done = subprocess.run(
        [*before, sys.executable, "-m", "tap_audit_events", *arguments],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return Run(done.stdout, done.stderr.decode(), done.returncode)


def _forked(arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> Run:
    """Run the tap in a fork of a process that has imported it."""
    out, log = folder / "stdout", folder / "stderr"
    with out.open("wb") as stdout, log.open("wb") as stderr:
        streams = stdout.fileno(), stderr.fileno()
        tap = ForkedTap(arguments, environment=environment, folder=folder, streams=streams)
    try:
        exit_code = tap.wait(TIMEOUT_SECONDS)
    finally:
        tap.kill()
    return Run(out.read_bytes(), log.read_text("utf-8"), exit_code)


def _tokens(settings: Mapping[str, Any] | str, environment: Mapping[str, str]) -> list[str]:
    """Return the tokens that the tap was given, including invalid ones."""
    given = {} if isinstance(settings, str) else dict(settings)
    token = given.get("access_token"), environment.get("TAP_AUDIT_EVENTS_ACCESS_TOKEN")
    found = [str(each).strip() for each in token if each is not None]
    file = Path(str(given.get("access_token_file", "")))
    found += [file.read_text(errors="replace").strip()] if file.is_file() else []
    return [each for each in found if len(each) >= MIN_SECRET_LENGTH]


def _written(folder: Path, given: Mapping[str, object]) -> Sequence[str]:
    """Write the documents to files, and return the arguments that name these files."""
    arguments = []
    for option, document in given.items():
        if document is not None:
            path = folder / f"{option[2:]}.json"
            text = document if isinstance(document, str) else json.dumps(document)
            path.write_text(text, encoding="utf-8")
            arguments += [option, str(path)]
    return arguments
