"""Counts the events that a candidate delivered."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.candidates import Job

POSTGRES: Final = "postgres"


class Counted(NamedTuple):
    """How many events were delivered, how many different ones, and the last state."""

    events: int
    distinct: int
    state: Any = None


def count(output: str, stdout: Iterable[bytes], job: Job) -> Counted:
    """Count the events in stdout, in a database, or in files.

    Args:
        output: ``singer`` or ``airbyte`` for messages in stdout, ``dlt`` for the files of its
            extract step, ``postgres`` for the database of the job, or a pattern for files in the
            folder of the job.
        stdout: the lines of stdout.
        job: what the candidate ran.
    """
    if output == POSTGRES:
        return _count_postgres(job.database)
    if "." in output:
        return _count_files(job.folder, output)
    if output == "dlt":
        stdout = _dlt_lines(job.folder)
    ids: list[str] = []
    state = None
    for line in stdout:
        message = json.loads(line)
        if isinstance(message, list):  # dlt
            ids += [event["id"] for event in message]
        elif message["type"] == "RECORD":
            event = message["record"]
            ids.append(event["data"]["id"] if output == "airbyte" else event["id"])
        elif message["type"] == "STATE":
            state = message["value"] if output == "singer" else [message["state"]]
    return Counted(len(ids), len(set(ids)), state)


def _dlt_lines(folder: Path) -> Iterator[bytes]:
    """The lines of the files that the extract step left for the next step."""
    for path in sorted(folder.rglob("new_jobs/audit_events.*")):
        with path.open("rb") as file:
            yield from file


_COUNT: Final = "SELECT count(*), count(DISTINCT id) FROM "


def _count_postgres(url: str) -> Counted:
    import psycopg  # noqa: PLC0415 - few candidates need it

    with psycopg.connect(url) as connection:
        return Counted(*connection.execute(f"{_COUNT} audit_events").fetchall()[0])


def _count_files(folder: Path, pattern: str) -> Counted:
    import duckdb  # noqa: PLC0415 - few candidates need it

    with duckdb.connect() as connection:
        relation = f"'{folder / pattern}'"
        if pattern.endswith(".duckdb"):
            connection.execute(f"ATTACH {relation} AS file (READ_ONLY)")
            relation = "file.audit_events"
        if pattern.endswith(".jsonl"):
            relation = f"read_json({relation}, columns = {{id: 'VARCHAR'}})"
        return Counted(*connection.execute(f"{_COUNT} {relation}").fetchall()[0])
