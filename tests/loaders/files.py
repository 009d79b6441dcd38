"""Loaders that write files: target-jsonl and meltanolabs-target-csv."""

import csv
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from tests.loaders.comparison import exact
from tests.loaders.loader import Event, Loader

SEPARATOR = "__"


class TargetJsonl(Loader):
    """Appends each record to a file, as a line."""

    package = "target-jsonl"
    executable = "target-jsonl"
    has_key = False
    documented_place: ClassVar[Mapping[str, Any]] = {"destination_path": "output"}

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        super().__init__(folder, settings)
        self._output = folder / "output"

    def place(self) -> Mapping[str, Any]:
        return {"destination_path": str(self._output)}

    def rows(self) -> list[dict[str, Any]]:
        files = sorted(self._output.glob("*.jsonl"))
        return [exact(line) for file in files for line in file.read_bytes().splitlines()]

    def columns(self) -> dict[str, str]:
        return {name: "JSON" for row in self.rows()[:1] for name in row}


class TargetCsv(Loader):
    """Writes a file with a column for each property of the schema."""

    package = "meltanolabs-target-csv"
    executable = "target-csv"
    has_key = False
    documented_place: ClassVar[Mapping[str, Any]] = {"output_path": "output"}

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        super().__init__(folder, settings)
        self._output = folder / "output"

    def place(self) -> Mapping[str, Any]:
        return {"output_path": str(self._output)}

    def rows(self) -> list[dict[str, Any]]:
        csv.field_size_limit(sys.maxsize)
        rows: list[dict[str, Any]] = []
        for file in sorted(self._output.glob("*.csv")):
            with file.open(encoding="utf-8", newline="") as lines:
                rows += csv.DictReader(lines)
        return rows

    def columns(self) -> dict[str, str]:
        return {name: "text" for row in self.rows()[:1] for name in row}

    def event(self, row: dict[str, Any]) -> Event:
        """An empty cell is a missing value."""
        event: Event = {}
        for name, value in row.items():
            outer, _, inner = name.partition(SEPARATOR)
            if inner and value:
                event.setdefault(outer, {})[inner] = value
            elif value:
                event[outer] = value
        return event | {"occurredAt": event["occurredAt"].replace(" ", "T")}
