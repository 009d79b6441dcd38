"""Reads a Delta table as the protocol says, without the library that writes it."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cli.exported import Event, of_table, without_nulls


def commits(folder: Path) -> list[list[dict[str, Any]]]:
    """The actions of each commit, in their order."""
    log = folder / "_delta_log"
    versions = sorted(log.glob("*.json"))
    assert [path.name for path in versions] == [f"{n:020}.json" for n in range(len(versions))]
    return [[json.loads(line) for line in path.read_text().splitlines()] for path in versions]


def in_delta(folder: Path) -> list[Event]:
    """The events of a table, in the order of their times; none if there is no table."""
    events = [event for path in files(folder) for event in of_table(_rows(path), path.parent)]
    return [without_nulls(each) for each in sorted(events, key=_time_of)]


def files(folder: Path) -> list[Path]:
    """The files of the newest version of a table."""
    paths: dict[str, None] = {}
    for actions in commits(folder):
        for action in actions:
            if "remove" in action:
                del paths[action["remove"]["path"]]
            if "add" in action:
                _check_day(folder, action["add"])
                paths[action["add"]["path"]] = None
    return [folder / unquote(path) for path in paths]


def _check_day(folder: Path, add: dict[str, Any]) -> None:
    """The partition of a file is the day of its events."""
    if (path := folder / unquote(add["path"])).exists():
        days = {f"{time:%Y-%m-%d}" for time in _rows(path)["occurred_at"].to_pylist()}
        assert days == {add["partitionValues"]["day"]}


def _rows(path: Path) -> pa.Table:
    """The rows of one file, not of its folder, whose name would become a column."""
    return pq.ParquetFile(path).read()


def _time_of(event: Event) -> tuple[str, str]:
    return event["occurredAt"].rstrip("Z"), event["id"]
