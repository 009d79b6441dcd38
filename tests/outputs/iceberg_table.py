"""A table of Iceberg into which a test exports."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from tap_audit_events.api.arrow import SCHEMA
from tests.cli.command import Command
from tests.cli.exported import Event, of_table
from tests.outputs.kind import Kind


class IcebergTable(Kind):
    """The table `audit.events` of a catalog in SQLite.

    Its files are in a folder, or in a bucket if there are such properties.
    """

    to = "iceberg:Lake/audit.events"
    is_locked = False

    def __init__(self, command: Command, **properties: str) -> None:
        self.properties = {
            "uri": f"sqlite:///{command.folder}/catalog.db",
            "warehouse": f"file://{command.folder}/warehouse",
        } | properties
        environment = {
            f"PYICEBERG_CATALOG__LAKE__{name.upper().replace('.', '__').replace('-', '_')}": value
            for name, value in self.properties.items()
        }
        super().__init__(replace(command, environment=environment))

    @property
    def catalog(self) -> Catalog:
        return SqlCatalog("Lake", **self.properties)

    @property
    def table(self) -> Table:
        return self.catalog.load_table("audit.events")

    def events(self) -> list[Event]:
        """The events in the files of the table, each of which has those of one day."""
        if not self.catalog.table_exists("audit.events"):
            return []
        table = self.table
        paths = [task.file.file_path for task in table.scan().plan_files()]
        files = [pq.read_table(table.io.new_input(path).open()) for path in paths]
        assert all(len({f"{each:%F}" for each in file["occurred_at"].to_pylist()}) == 1
                   for file in files)  # fmt: skip
        tables = [file.select(SCHEMA.names).cast(SCHEMA) for file in files]
        rows = pa.concat_tables([SCHEMA.empty_table(), *tables])
        events = of_table(rows, self.command.folder / "table")
        return sorted(events, key=lambda each: (each["occurredAt"].rstrip("Z"), each["id"]))

    def ocsf(self) -> list[str]:
        texts: list[str] = self.table.scan().to_arrow()["ocsf"].to_pylist()
        return texts
