"""The loader target-duckdb."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import duckdb

from tests.loaders.comparison import exact
from tests.loaders.loader import STREAM, Event, Loader, without_own_columns


class TargetDuckdb(Loader):
    """Writes into a DuckDB file, by key."""

    package = "target-duckdb"
    executable = "target-duckdb"
    documented_place: ClassVar[Mapping[str, Any]] = {"filepath": "warehouse.duckdb"}

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        super().__init__(folder, settings)
        self.file = folder / "warehouse.duckdb"

    def place(self) -> Mapping[str, Any]:
        return {"filepath": str(self.file)}

    def rows(self) -> list[dict[str, Any]]:
        if not self.file.exists():
            return []
        names = self.columns()
        texts = ", ".join(f"CAST({name} AS VARCHAR)" for name in names)
        rows = self.query(f"SELECT {texts} FROM {STREAM}")  # noqa: S608 - our own names
        return [dict(zip(names, row, strict=True)) for row in rows]

    def columns(self) -> dict[str, str]:
        types = {name: kind for name, kind, *_ in self.query(f"DESCRIBE {STREAM}")}
        return without_own_columns(types)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with duckdb.connect(str(self.file), read_only=True) as connection:
            return connection.execute(sql).fetchall()

    def event(self, row: dict[str, Any]) -> Event:
        """Times have no zone, and are in UTC."""
        types = self.columns()
        event = {
            name: exact(value) if types[name] == "JSON" and value is not None else value
            for name, value in row.items()
        }
        event["occurredAt"] = event.pop("occurredat").replace(" ", "T") + "Z"
        return event
