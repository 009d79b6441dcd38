"""Runs of `examples/dlt_pipeline.py`, and the database into which it loads."""

import gzip
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tap_audit_events.sandbox import Service
from tests.examples.environments import run_python
from tests.integrations.pipeline import PROJECT

SCRIPT = PROJECT / "examples" / "dlt_pipeline.py"
TABLE = "audit_events.audit_events"

KILLED_AT = """
import os, runpy, signal, sys
from {module} import {owner}

works = {owner}.{method}

def dies(*arguments, **options):
    if {afterwards}:
        works(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)

{owner}.{method} = dies
sys.argv[:] = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Kill:
    """When a process is killed: at the first call of a method of dlt, or after it."""

    module: str
    method: str
    owner: str = "Pipeline"
    afterwards: bool = False

    @property
    def script(self) -> str:
        return KILLED_AT.format(**vars(self))


class Database:
    """A DuckDB file, read in the environment of dlt, as another version may not read it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "events.duckdb"

    def ids(self) -> list[str]:
        return [str(each) for each in self.query(f"SELECT to_json(id) FROM {TABLE} ORDER BY id")]  # noqa: S608 - a constant

    def query(self, sql: str) -> list[Any]:
        """The first column of each row, which is JSON."""
        return [json.loads(line) for line in self.execute(sql).split("\n")[:-1]]

    def execute(self, sql: str) -> str:
        code = (
            "import duckdb, sys\n"
            "with duckdb.connect(sys.argv[1]) as connection:\n"
            "    for row in connection.execute(sys.argv[2]).fetchall():\n"
            "        print(row[0])"
        )
        done = run_python("dlt", ["-c", code, self.path, sql], folder=self._folder, environment={})
        assert done.returncode == 0, done.stderr
        return done.stdout


@dataclass
class Loads:
    """Runs of the example, one after the other, from a service into a database."""

    service: Service
    base_url: str
    database: Database
    folder: Path
    disposition: str = "append"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "TAP_AUDIT_EVENTS_BASE_URL": self.base_url,
            "TAP_AUDIT_EVENTS_ORGANIZATION_ID": self.service.organization_id,
            "TAP_AUDIT_EVENTS_ACCESS_TOKEN": self.service.access_token,
            "DESTINATION__DUCKDB__CREDENTIALS": str(self.database.path),
            "DLT_DATA_DIR": str(self.folder / "dlt"),
            "RUNTIME__DLTHUB_TELEMETRY": "false",
            "RUNTIME__LOG_LEVEL": "INFO",
        }

    def run(
        self, *options: str, kill: Kill | None = None, environment: dict[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run the example until it ends or is killed, and check that it does not show the token."""
        script = ["-c", kill.script, SCRIPT] if kill else [SCRIPT]
        choices = ["--destination", "duckdb", "--write-disposition", self.disposition]
        done = run_python(
            "dlt",
            [*script, *choices, *options],
            folder=self.folder,
            environment=self.environment if environment is None else environment,
        )
        assert self.service.access_token not in done.stdout + done.stderr
        return done

    def succeed(self, *options: str) -> int:
        """Run the example, and return the number of loaded events that it prints."""
        done = self.run(*options)
        assert done.returncode == 0, done.stderr
        found = re.fullmatch(r"(\d+) events loaded\n", done.stdout)
        assert found, done.stdout
        return int(found[1])

    def files_with(self, text: str) -> list[Path]:
        """The files below the folder that contain a text, even if they are compressed."""
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        return [path for path in paths if text.encode() in _content(path)]


def _content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
