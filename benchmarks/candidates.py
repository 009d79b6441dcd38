"""The candidates that are compared, and the command line of each.

Each is a separate process, started like by a user: with settings in a file and output to stdout.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

PROJECT: Final = Path(__file__).resolve().parent.parent
HERE: Final = PROJECT / "benchmarks"
OWN: Final = Path(sys.executable).parent
FILES: Final = {
    "parquet": "events.parquet",
    "duckdb": "events.duckdb",
    "dlt-duckdb": "dlt.duckdb",
}
"""The file that a candidate writes in the job's folder, by the format of its output."""

DLT: Final = PROJECT / ".tools" / "bench-dlt" / "bin"
AIRBYTE: Final = PROJECT / ".tools" / "bench-airbyte" / "bin"

SDK_IMPORT: Final = "import singer_sdk, singer_sdk.typing"
DESELECTED: Final = ["properties", "context", "properties", "requestIp"]
"""A field; if it is deselected, this tap uses the SDK's record path."""


@dataclass(frozen=True)
class Job:
    """One run of one candidate.

    Attributes:
        settings: The URL of the sandbox and its token, the range of its events, whether
            this tap has to be told where the range ends, and the page size.
        folder: An empty folder, for this run only.
        state: The state of an earlier run, from which to resume; None for a first run.
    """

    settings: dict[str, Any]
    folder: Path
    state: Path | None = None

    def config(self) -> str:
        """The path of a file with the settings."""
        return self.file("config.json", self.settings)

    def file(self, name: str, content: object) -> str:
        path = self.folder / name
        path.write_text(json.dumps(content))
        return str(path)


Command: TypeAlias = Callable[[Job], list[str]]


@dataclass(frozen=True)
class Candidate:
    """Something that is measured.

    Attributes:
        label: Its name in tables and charts.
        command: Returns its command line for a job; this may write files to the job's folder.
        output: The name of the format of its output in `counting`; None if it reads no events.
        own: Whether it belongs to this package.
    """

    label: str
    command: Command
    output: str | None = None
    own: bool = False


# With -P, a script's own folder is not on the path: it must not import the files next to it.


def _words(*words: str | Path) -> list[str]:
    return [str(word) for word in words]


def _tap(concurrency: int, **more: object) -> Command:
    def command(job: Job) -> list[str]:
        page_size = job.settings["page_size"]
        past = {"end_date": job.settings["end_date"]} if job.settings.get("is_past") else {}
        settings = _config(job, concurrency=concurrency, page_size=page_size, **past, **more)
        return _words(OWN / "tap-audit-events", *settings, *_state(job))

    return command


def _sdk_lane(job: Job) -> list[str]:
    catalog = job.file("catalog.json", _catalog())
    return _words(OWN / "tap-audit-events", *_config(job), "--catalog", catalog)


@cache
def _catalog() -> Any:
    """Return the catalog that `--discover` prints, with the field deselected."""
    command = _words(OWN / "tap-audit-events", "--discover")
    catalog = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    for entry in catalog["streams"][0]["metadata"]:
        if entry["breadcrumb"] == DESELECTED:
            entry["metadata"]["selected"] = False
    return catalog


def _config(job: Job, **more: object) -> list[str]:
    """Write the required settings of a tap, and `more`; only dlt and Airbyte need the range."""
    wanted = ("base_url", "organization_id", "organizations", "access_token")
    settings = {key: job.settings[key] for key in wanted if key in job.settings}
    return ["--config", job.file("config.json", settings | more)]


def _state(job: Job) -> list[str]:
    return ["--state", str(job.state)] if job.state else []


def _usual(*options: str) -> Command:
    script = _words(OWN / "python", "-P", HERE / "usual_tap.py", *options)
    return lambda job: [*script, *_config(job), *_state(job)]


def _bare(job: Job) -> list[str]:
    return _words(OWN / "python", "-P", HERE / "bare_loop.py", *_config(job))


def _dlt(*options: str) -> Command:
    def command(job: Job) -> list[str]:
        folder = job.folder / "dlt"
        if job.state:
            shutil.copytree(job.state, folder)
        files = _words("--config", job.config(), "--folder", folder)
        return _words(DLT / "python", "-P", HERE / "dlt_source.py", *files, *options)

    return command


def _dlt_into_duckdb(job: Job) -> list[str]:
    return _dlt("--load", str(job.folder / FILES["dlt-duckdb"]))(job)


def _export(output: str) -> Command:
    def command(job: Job) -> list[str]:
        target = _words("--to", job.folder / FILES[output])
        return _words(OWN / "audit-events", "export", "--quiet", *_config(job), *target)

    return command


def _airbyte(job: Job) -> list[str]:
    manifest = HERE / "airbyte_manifest.yaml"
    files = _words("--config", job.config(), *_airbyte_catalog(job), "--manifest-path", manifest)
    return _words(AIRBYTE / "source-declarative-manifest", "read", *files, *_state(job))


def _own_airbyte(job: Job) -> list[str]:
    files = [*_config(job), *_airbyte_catalog(job), *_state(job)]
    return _words(OWN / "source-audit-events", "read", *files)


def _airbyte_catalog(job: Job) -> list[str]:
    stream = {
        "name": "audit_events",
        "json_schema": {"type": "object", "properties": {}},
        "supported_sync_modes": ["full_refresh", "incremental"],
    }
    read = {"stream": stream, "sync_mode": "incremental", "destination_sync_mode": "append"}
    return ["--catalog", job.file("catalog.json", {"streams": [read]})]


def _command(name: str, *arguments: str) -> Command:
    """A command of this environment that reads no events."""
    return lambda _: _words(OWN / name, *arguments)


CANDIDATES: Final = {
    "bare": Candidate("bare loop, `response.content`", _bare, "pages"),
    "tap-1": Candidate("this tap, concurrency 1", _tap(1), "singer", own=True),
    "tap-4": Candidate("this tap, concurrency 4 (default)", _tap(4), "singer", own=True),
    "tap-8": Candidate("this tap, concurrency 8", _tap(8), "singer", own=True),
    "shaped": Candidate(
        "this tap, details as text and raw event",
        _tap(4, details_format="string", raw_event=True),
        "singer",
        own=True,
    ),
    "sdk-lane": Candidate("this tap, one field deselected", _sdk_lane, "singer", own=True),
    "own-airbyte": Candidate("this package's Airbyte source", _own_airbyte, "airbyte", own=True),
    "export-parquet": Candidate(
        "`audit-events export` to Parquet", _export("parquet"), "parquet", own=True
    ),
    "export-duckdb": Candidate(
        "`audit-events export` to DuckDB", _export("duckdb"), "duckdb", own=True
    ),
    "dlt": Candidate("dlt, extract", _dlt(), "dlt"),
    "dlt-duckdb": Candidate("dlt, whole pipeline into DuckDB", _dlt_into_duckdb, "dlt-duckdb"),
    "dlt-days": Candidate("dlt, extract, days in parallel", _dlt("--slices"), "dlt"),
    "airbyte": Candidate("Airbyte source, 8 in parallel", _airbyte, "airbyte"),
    "usual": Candidate("usual SDK tap", _usual(), "singer"),
    "usual-msgspec": Candidate("usual SDK tap, msgspec writer", _usual("--msgspec"), "singer"),
    "sdk-import": Candidate("import of the SDK alone", _command("python", "-c", SDK_IMPORT)),
    "version": Candidate(
        "this tap, `--version`", _command("tap-audit-events", "--version"), own=True
    ),
    "about": Candidate("this tap, `--about`", _command("tap-audit-events", "--about"), own=True),
    "usual-version": Candidate(
        "usual SDK tap, `--version`",
        _command("python", "-P", str(HERE / "usual_tap.py"), "--version"),
    ),
}
"""The candidates by name, in the order of tables and charts."""
