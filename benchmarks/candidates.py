"""What is measured, and the command line of each.

Each candidate is a process of its own, started as by a user: with settings in a file.
"""

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

PROJECT: Final = Path(__file__).resolve().parent.parent
HERE: Final = PROJECT / "benchmarks"
OWN: Final = Path(sys.executable).parent
DLT: Final = PROJECT / ".tools" / "bench-dlt" / "bin"
AIRBYTE: Final = PROJECT / ".tools" / "bench-airbyte" / "bin"


@dataclass(frozen=True)
class Job:
    """One run of a candidate.

    Attributes:
        settings: the settings that reach the sandbox, and ``start_date`` and ``end_date`` of its
            events, for candidates that must be told.
        folder: a folder for the files of the candidate; it keeps them from run to run.
        state: the state of an earlier run; None for a first run.
        database: the URL of an empty database, for candidates that load into PostgreSQL.
    """

    settings: Mapping[str, Any]
    folder: Path
    state: Any = None
    database: str = ""

    def file(self, name: str, content: object) -> str:
        """Write JSON into the folder, and return its path."""
        path = self.folder / name
        path.write_text(json.dumps(content))
        return str(path)

    def config(self, **more: object) -> list[str]:
        names = ("base_url", "organization_id", "access_token")
        settings = {name: self.settings[name] for name in names}
        return ["--config", self.file("config.json", settings | more)]

    def resume(self) -> list[str]:
        return [] if self.state is None else ["--state", self.file("state.json", self.state)]


Command: TypeAlias = Callable[[Job], list[str]]


@dataclass(frozen=True)
class Candidate:
    """Something that is measured.

    Attributes:
        label: its name in tables and in the chart.
        command: returns its command line, and may write files into the job's folder.
        output: where its events are found: see `counting`.
        is_own: whether it belongs to this package.
    """

    label: str
    command: Command
    output: str
    is_own: bool = False


# With -P, a script's own folder is not on the path: it must not import the files next to it.


def words(*values: str | Path) -> list[str]:
    return list(map(str, values))


def _tap(concurrency: int) -> Command:
    return lambda job: words(
        OWN / "tap-audit-events", *job.config(concurrency=concurrency), *job.resume()
    )


def _usual(*options: str) -> Command:
    script = words(OWN / "python", "-P", HERE / "usual_tap.py", *options)
    return lambda job: [*script, *job.config(), *job.resume()]


def dlt(*options: str) -> Command:
    def command(job: Job) -> list[str]:
        files = ["--config", job.file("config.json", dict(job.settings))]
        for loaded_later in job.folder.glob(
            "dlt/*/normalize/extracted"
        ):  # the events of the last run
            shutil.rmtree(loaded_later)
        folder = words("--folder", job.folder / "dlt")  # it also holds the state of dlt
        return words(DLT / "python", "-P", HERE / "dlt_source.py", *files, *folder, *options)

    return command


def _airbyte(job: Job) -> list[str]:
    files = ["--config", job.file("config.json", dict(job.settings)), *_airbyte_catalog(job)]
    manifest = words("--manifest-path", HERE / "airbyte_manifest.yaml")
    source = AIRBYTE / "source-declarative-manifest"
    return words(source, "read", *files, *manifest, *job.resume())


def _own_airbyte(job: Job) -> list[str]:
    files = [*job.config(), *_airbyte_catalog(job), *job.resume()]
    return words(OWN / "source-audit-events", "read", *files)


def _airbyte_catalog(job: Job) -> list[str]:
    stream = {
        "name": "audit_events",
        "json_schema": {"type": "object", "properties": {}},
        "supported_sync_modes": ["full_refresh", "incremental"],
    }
    read = {"stream": stream, "sync_mode": "incremental", "destination_sync_mode": "append"}
    return ["--catalog", job.file("catalog.json", {"streams": [read]})]


TOOLS: Final = {
    "tap-4": Candidate("this tap", _tap(4), "singer", is_own=True),
    "tap-8": Candidate("this tap, `concurrency: 8`", _tap(8), "singer", is_own=True),
    "own-airbyte": Candidate("this package's Airbyte source", _own_airbyte, "airbyte", is_own=True),
    "usual": Candidate("usual SDK tap", _usual(), "singer"),
    "usual-msgspec": Candidate("usual SDK tap, msgspec writer", _usual("--msgspec"), "singer"),
    "dlt": Candidate("dlt, extract step", dlt(), "dlt"),
    "dlt-days": Candidate("dlt, extract step, 8 days in parallel", dlt("--slices"), "dlt"),
    "airbyte": Candidate("Airbyte declarative source, 8 workers", _airbyte, "airbyte"),
}
"""The candidates that are compared with each other, in the order of the table and the chart."""
