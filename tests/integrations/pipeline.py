"""A separate Meltano project for each test, with the plugins that are already installed."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tap_audit_events.sandbox import Service, serve

PROJECT = Path(__file__).resolve().parents[2]
INSTALLED = PROJECT / ".meltano"
NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
Event = dict[str, Any]


@dataclass(frozen=True)
class Pipeline:
    """A Meltano project of one test, with this project's meltano.yml and plugins."""

    service: Service
    project: Path
    environment: dict[str, str]

    def meltano(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return self.execute(["meltano", *arguments], **environment)

    def execute(
        self, command: Sequence[str], **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in the project to its end, and check that it does not print the token."""
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert self.service.access_token not in done.stdout + done.stderr
        return done

    def run(self, loader: str, *options: str, **environment: str) -> str:
        """Run the tap into a loader, and return the log."""
        finished = self.meltano("run", *options, "tap-audit-events", loader, **environment)
        assert finished.returncode == 0, finished.stderr + finished.stdout
        return finished.stderr

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows in DuckDB, oldest first."""
        with duckdb.connect(
            str(self.project / "output" / "warehouse.duckdb"), read_only=True
        ) as connection:
            rows = connection.execute("FROM audit_events ORDER BY occurredat, id")
            names = [column[0] for column in rows.description or ()]
            return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]

    def lines(self) -> list[Event]:
        """Return the records in the file of target-jsonl, which only appends."""
        text = (self.project / "output" / "audit_events.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]


@contextmanager
def a_pipeline(project: Path) -> Iterator[Pipeline]:
    """Start a service for a project; a request outside of the interface fails the test."""
    service = Service()
    with serve(service) as server:
        settings = {
            "TAP_AUDIT_EVENTS_BASE_URL": server.base_url,
            "TAP_AUDIT_EVENTS_ORGANIZATION_ID": service.organization_id,
            "TAP_AUDIT_EVENTS_ACCESS_TOKEN": service.access_token,
        }
        yield Pipeline(service, project, inherited() | settings)
    assert service.violations == []


def inherited() -> dict[str, str]:
    """Return the environment of the tests without settings of plugins and of Meltano."""
    ours = ("TAP_AUDIT_EVENTS_", "TARGET_", "MELTANO_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def check_installed() -> None:
    """Fail the test if Meltano or its plugins are not installed."""
    if shutil.which("meltano") is None or not INSTALLED.exists():
        pytest.fail("Meltano is not set up: use `make test`, or leave out with -m 'not meltano'")


def borrow_plugins(project: Path) -> None:
    """Make the folder a project like this one, with links to the plugins installed here."""
    check_installed()
    shutil.copy(PROJECT / "meltano.yml", project)
    shutil.copytree(PROJECT / "plugins", project / "plugins")
    for folder in ("output", ".meltano"):
        (project / folder).mkdir()
    for plugins in ("extractors", "loaders"):
        (project / ".meltano" / plugins).symlink_to(INSTALLED / plugins)
