"""Counts the events that a candidate delivered, in a run that is not timed."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Counted(NamedTuple):
    """How many events were delivered, how many different ones, and the last state."""

    events: int
    distinct: int
    state: Any = None


def count(output: str, stdout: Iterable[bytes], folder: Path) -> Counted:
    """Count the events in stdout, or in the files that the candidate wrote into a folder.

    Args:
        output: ``singer`` or ``airbyte`` for messages in stdout, ``dlt`` for the files of its
            extract step, or the name of a Parquet or DuckDB file.
        stdout: the lines of stdout.
        folder: the folder of the job.
    """
    if output.startswith("events."):
        return _count_table(folder / output)
    if output == "dlt":
        stdout = _dlt_lines(folder)
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


def _count_table(path: Path) -> Counted:
    import duckdb  # noqa: PLC0415 - few candidates need it

    with duckdb.connect() as connection:
        relation = f"'{path}'"
        if path.suffix == ".duckdb":
            connection.execute(f"ATTACH '{path}' AS file (READ_ONLY)")
            relation = "file.audit_events"
        query = f"SELECT count(*), count(DISTINCT id) FROM {relation}"  # noqa: S608 - own names
        return Counted(*connection.execute(query).fetchall()[0])
