"""Runs the tap as a user does: its own process, its real command line."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tap_audit_events.sandbox import Service

STREAM = "audit_events"
CODED = re.compile(r"AE-[0-9A-Z]+(-[A-Z]+)*: \S")
"""How a line that ends a run begins: `docs/errors.md`."""


@dataclass(frozen=True)
class Run:
    """What a run left behind."""

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
        """The text of each ERROR line, and every line that is no log line, each with its code."""
        lines = [line.split(" | ", 3) for line in self.log.splitlines()]
        found = [parts[-1] for parts in lines if len(parts) < 4 or parts[1].strip() == "ERROR"]
        assert all(map(CODED.match, found)), self.log
        return found

    @property
    def warnings(self) -> list[str]:
        lines = [line.split(" | ", 3) for line in self.log.splitlines()]
        return [parts[3] for parts in lines if len(parts) == 4 and parts[1].strip() == "WARNING"]

    def raise_for_exit_code(self) -> "Run":
        assert self.exit_code == 0, self.log
        return self


def settings_for(service: Service, base_url: str, **settings: Any) -> dict[str, Any]:
    """The settings that reach a sandbox, and those that a test is about."""
    return {
        "base_url": base_url,
        "organization_id": service.organization_id,
        "access_token": service.access_token,
    } | settings


def run(
    settings: Mapping[str, Any] | None,
    *arguments: str,
    state: object = None,
    catalog: object = None,
    environment: Mapping[str, str] | None = None,
) -> Run:
    """Run the tap to its end; a document that is a text is written as it is, else as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        given = {"--config": settings, "--state": state, "--catalog": catalog}
        files = _written(Path(folder), given)
        done = subprocess.run(
            [sys.executable, "-m", "tap_audit_events", *files, *arguments],
            env={**os.environ, "HOME": folder, **(environment or {})},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
    ended = Run(done.stdout, done.stderr.decode(), done.returncode)
    assert ended.exit_code == 0 or ended.errors, ended.log
    return ended


def _written(folder: Path, given: Mapping[str, object]) -> Sequence[str]:
    """The arguments that name the files of these documents, which it writes."""
    arguments = []
    for option, document in given.items():
        if document is not None:
            path = folder / f"{option[2:]}.json"
            text = document if isinstance(document, str) else json.dumps(document)
            path.write_text(text, encoding="utf-8")
            arguments += [option, str(path)]
    return arguments
