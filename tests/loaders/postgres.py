"""The two loaders for PostgreSQL."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final
from uuid import uuid4

from tests.loaders.comparison import exact
from tests.loaders.loader import Event, Loader, without_own_columns
from tests.loaders.postgres_server import USER, PostgresServer

ADDRESS: Final = {"host": "127.0.0.1", "port": 5432, "user": "loader", "password": "..."}


class PostgresLoader(Loader):
    """Writes into a table by key; each loader has a database of its own.

    Attributes:
        server: set by a fixture.
    """

    server: ClassVar[PostgresServer]

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        super().__init__(folder, settings)
        self.database = f"audit_{uuid4().hex}"
        self.server.create_database(self.database)

    def rows(self) -> list[dict[str, Any]]:
        if not self.columns():
            return []
        lines = self.query("SELECT to_jsonb(stored) FROM audit_events AS stored")
        return [without_own_columns(exact(line)) for line in lines]

    def columns(self) -> dict[str, str]:
        lines = self.query(
            "SELECT column_name, data_type FROM information_schema.columns"
            " WHERE table_name = 'audit_events' ORDER BY ordinal_position"
        )
        return without_own_columns(dict(line.split("\t") for line in lines))

    def query(self, sql: str) -> list[str]:
        """The rows of a query as text, with tabs between the columns."""
        return self.server.query(self.database, sql)

    def _address(self) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.server.port,
            "user": USER,
            "password": self.server.password,
        }


class MeltanolabsPostgres(PostgresLoader):
    """meltanolabs-target-postgres."""

    package = "meltanolabs-target-postgres"
    executable = "target-postgres"
    documented_place: ClassVar[Mapping[str, Any]] = {**ADDRESS, "database": "warehouse"}

    def place(self) -> Mapping[str, Any]:
        return self._address() | {"database": self.database}

    def event(self, row: dict[str, Any]) -> Event:
        """Times have no zone, and are in UTC."""
        return row | {"occurredAt": f"{row['occurredAt']}Z"}


class PipelinewisePostgres(PostgresLoader):
    """pipelinewise-target-postgres."""

    package = "pipelinewise-target-postgres"
    executable = "target-postgres"
    documented_place: ClassVar[Mapping[str, Any]] = {**ADDRESS, "dbname": "warehouse"}

    def place(self) -> Mapping[str, Any]:
        return self._address() | {"dbname": self.database}

    def event(self, row: dict[str, Any]) -> Event:
        """Column names are in lower case; times have no zone, and are in UTC."""
        event = dict(row)
        return event | {"occurredAt": f"{event.pop('occurredat')}Z"}
