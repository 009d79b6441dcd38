"""The tap and a loader into PostgreSQL: RECORD messages against batch files."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from benchmarks.candidates import OWN
from benchmarks.measuring import FailedError
from benchmarks.results import Content, Load
from benchmarks.sandbox import Sandbox, start_sandbox
from tests.loaders.loader import environment_of, version_of
from tests.loaders.postgres_server import USER, PostgresServer, postgres_server

LOADER: Final = "meltanolabs-target-postgres"
EVENTS: Final = 100_000

PIPELINE: Final = "tap-audit-events --config tap.json | target-postgres --config loader.json"

RECORDS: Final = "RECORD messages"
BATCHES: Final = "batch files"
MESSAGES: Final = (RECORDS, BATCHES)


def loader_version() -> str:
    return version_of(LOADER)


def run_loads(repetitions: int, events: int, until: datetime) -> list[Load]:
    """Load the same events into an empty database by each kind of message in turn."""
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_server(Path(folder)) as server,
        start_sandbox(Content(events), until) as sandbox,
    ):
        settings = Sandbox(sandbox).settings
        return [
            load
            for repetition in range(1, repetitions + 1)
            for load in _repetition(repetition, events, settings, server)
        ]


def _repetition(
    repetition: int, events: int, settings: dict[str, Any], server: PostgresServer
) -> Iterator[Load]:
    for messages in MESSAGES:
        database = f"load_{uuid4().hex}"
        server.create_database(database)
        with tempfile.TemporaryDirectory() as folder:
            tap = _settings(settings, messages, folder)
            seconds = _seconds(Path(folder), tap, server, database)
        (rows,) = server.query(database, "SELECT count(DISTINCT id) FROM melty.audit_events")
        if int(rows) != events:
            raise FailedError(f"{rows} of {events} events arrived by {messages}")
        yield Load(messages, repetition, events, seconds)


def _settings(settings: dict[str, Any], messages: str, folder: str) -> dict[str, Any]:
    """Those of the tap; without a start and an end, as usual."""
    wanted = {key: settings[key] for key in ("base_url", "organization_id", "access_token")}
    if messages == BATCHES:
        encoding = {"format": "jsonl", "compression": "gzip"}
        storage = {"root": f"file://{folder}/batches"}
        wanted["batch_config"] = {"encoding": encoding, "storage": storage}
    return wanted


def _seconds(
    folder: Path, settings: dict[str, Any], server: PostgresServer, database: str
) -> float:
    """The time from the start of both to the end of both."""
    address = {
        "host": "127.0.0.1",
        "port": server.port,
        "user": USER,
        "password": server.password,
    }
    (folder / "tap.json").write_text(json.dumps(settings))
    loader = address | {"database": database, "use_copy": True}
    (folder / "loader.json").write_text(json.dumps(loader))
    programs = f"{OWN}:{environment_of(LOADER)}:{os.environ['PATH']}"
    started = time.perf_counter()
    done = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", PIPELINE],
        env={**os.environ, "PATH": programs, "HOME": str(folder)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        raise FailedError(f"{LOADER}: {done.stderr.decode(errors='replace')[-4000:]}")
    return seconds
