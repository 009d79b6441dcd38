"""Who is compared, and how each is called.

Each is a process of its own, as a user would start it: settings in a file, output to stdout.
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
DLT: Final = PROJECT / ".tools" / "bench-dlt" / "bin"
AIRBYTE: Final = PROJECT / ".tools" / "bench-airbyte" / "bin"

SDK_IMPORT: Final = "import singer_sdk, singer_sdk.typing"
DESELECTED: Final = ["properties", "context", "properties", "requestIp"]
"""The leaf whose absence sends this tap through the SDK's record path."""


@dataclass(frozen=True)
class Job:
    """One run of one candidate.

    Attributes:
        settings: The address of the sandbox, and the range of its events.
        folder: An empty one, for this run alone.
        kept: What an earlier run has left, to go on from; None for a first run.
    """

    settings: dict[str, str]
    folder: Path
    kept: Path | None = None

    def config(self, **more: object) -> str:
        """A file with the settings and more of them."""
        return self.file("config.json", self.settings | more)

    def file(self, name: str, content: object) -> str:
        path = self.folder / name
        path.write_text(json.dumps(content))
        return str(path)


Command: TypeAlias = Callable[[Job], list[str]]


@dataclass(frozen=True)
class Candidate:
    """Something that is measured.

    Attributes:
        label: What tables and charts call it.
        command: Its command line for a job, whose folder it may put files in.
        output: How `counting` reads what it writes; None where it reads no events.
        own: Whether it is this tap.
    """

    label: str
    command: Command
    output: str | None = None
    own: bool = False


# A script's own folder stays off the path (-P): its neighbours are not the candidate's modules.


def _words(*words: str | Path) -> list[str]:
    return [str(word) for word in words]


def _tap(concurrency: int) -> Command:
    return lambda job: _words(
        OWN / "tap-audit-events", *_address(job, concurrency=concurrency), *_state(job)
    )


def _sdk_lane(job: Job) -> list[str]:
    catalog = job.file("catalog.json", _catalog())
    return _words(OWN / "tap-audit-events", *_address(job), "--catalog", catalog)


@cache
def _catalog() -> Any:
    """What `--discover` prints, with that one leaf deselected."""
    command = _words(OWN / "tap-audit-events", "--discover")
    catalog = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    for entry in catalog["streams"][0]["metadata"]:
        if entry["breadcrumb"] == DESELECTED:
            entry["metadata"]["selected"] = False
    return catalog


def _address(job: Job, **more: object) -> list[str]:
    """Only what a tap cannot do without, and `more`: the range is for those that need one."""
    settings = {key: job.settings[key] for key in ("base_url", "organization_id", "access_token")}
    return ["--config", job.file("config.json", settings | more)]


def _state(job: Job) -> list[str]:
    return ["--state", str(job.kept)] if job.kept else []


def _usual(job: Job) -> list[str]:
    return _words(OWN / "python", "-P", HERE / "usual_tap.py", *_address(job), *_state(job))


def _bare(*options: str) -> Command:
    return lambda job: _words(OWN / "python", "-P", HERE / "bare_loop.py", *_address(job), *options)


def _dlt(*options: str) -> Command:
    def command(job: Job) -> list[str]:
        folder = job.folder / "dlt"
        if job.kept:
            shutil.copytree(job.kept, folder)
        files = _words("--config", job.config(), "--folder", folder)
        return _words(DLT / "python", "-P", HERE / "dlt_source.py", *files, *options)

    return command


def _airbyte(job: Job) -> list[str]:
    stream = {
        "name": "audit_events",
        "json_schema": {"type": "object", "properties": {}},
        "supported_sync_modes": ["full_refresh", "incremental"],
    }
    read = {"stream": stream, "sync_mode": "incremental", "destination_sync_mode": "append"}
    catalog = job.file("catalog.json", {"streams": [read]})
    manifest = HERE / "airbyte_manifest.yaml"
    files = _words("--config", job.config(), "--catalog", catalog, "--manifest-path", manifest)
    return _words(AIRBYTE / "source-declarative-manifest", "read", *files, *_state(job))


def _own(name: str, *arguments: str) -> Command:
    return lambda _: _words(OWN / name, *arguments)


CANDIDATES: Final = {
    "bare": Candidate("bare fetch loop, read at once", _bare(), "pages"),
    "plain": Candidate("bare fetch loop, `response.content`", _bare("--plainly"), "pages"),
    "tap-1": Candidate("this tap, concurrency 1", _tap(1), "singer", own=True),
    "tap-4": Candidate("this tap, concurrency 4 (default)", _tap(4), "singer", own=True),
    "tap-8": Candidate("this tap, concurrency 8", _tap(8), "singer", own=True),
    "sdk-lane": Candidate("this tap, one field deselected", _sdk_lane, "singer", own=True),
    "dlt": Candidate("dlt, extract", _dlt(), "dlt"),
    "dlt-days": Candidate("dlt, extract, days in parallel", _dlt("--slices"), "dlt"),
    "airbyte": Candidate("Airbyte source, 8 at a time", _airbyte, "airbyte"),
    "usual": Candidate("usual SDK tap", _usual, "singer"),
    "sdk-import": Candidate("import of the SDK alone", _own("python", "-c", SDK_IMPORT)),
    "version": Candidate("this tap, `--version`", _own("tap-audit-events", "--version"), own=True),
    "about": Candidate("this tap, `--about`", _own("tap-audit-events", "--about"), own=True),
    "usual-version": Candidate(
        "usual SDK tap, `--version`", _own("python", "-P", str(HERE / "usual_tap.py"), "--version")
    ),
}
"""By name; tables and charts keep this order."""
