"""A table of PostgreSQL into which a test exports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from tap_audit_events.api.arrow import SCHEMA
from tests.cli.command import Command, Done
from tests.cli.exported import Event, of_table, without_nulls
from tests.loaders.postgres_server import USER, PostgresServer
from tests.loaders.proof import python_of_proof
from tests.outputs.kind import Kind

_AS_TEXT = ", ".join(
    f"CAST({name} AS text) AS {name}" if name in {"action_details", "other_fields"} else name
    for name in SCHEMA.names
)


class PostgresTable(Kind):
    """The table `audit_events` of a new database; the password is in the environment."""

    name = "audit_events"

    def __init__(self, command: Command, server: PostgresServer) -> None:
        environment = {"PGPASSWORD": server.password}
        super().__init__(
            replace(
                command,
                environment=environment,
                python=str(python_of_proof()),
                secrets=(server.password,),
            )
        )
        self.server = server
        self.database = f"audit_{uuid4().hex}"
        server.create_database(self.database)
        self.to = self.url()

    @classmethod
    def from_request(cls, request: pytest.FixtureRequest, command: Command) -> PostgresTable:
        return cls(command, request.getfixturevalue("postgres"))

    def url(self, password: str = "", port: int | None = None) -> str:
        login = f"{USER}:{password}" if password else USER
        return f"postgresql://{login}@127.0.0.1:{port or self.server.port}/{self.database}"

    def query(self, sql: str) -> list[str]:
        return self.server.query(self.database, sql)

    def events(self) -> list[Event]:
        if self.query("SELECT to_regclass('audit_events')") == [""]:
            return []
        lines = self.query(
            f"SELECT to_jsonb(event) FROM (SELECT {_AS_TEXT} FROM audit_events) AS event"  # noqa: S608
            " ORDER BY rtrim(occurred_at_text, 'Z'), id"
        )
        rows = [json.loads(line) for line in lines]
        for row in rows:
            row["occurred_at"] = datetime.fromisoformat(row["occurred_at"])
        table = pa.Table.from_pylist(rows, SCHEMA)
        return list(map(without_nulls, of_table(table, Path("table"))))

    def ocsf(self) -> list[str]:
        return self.query("SELECT ocsf FROM audit_events")

    def snapshot(self) -> Any:
        """The places of the rows, and the transactions that wrote them."""
        return [
            self.query(f"SELECT ctid, xmin FROM {table} ORDER BY 1")  # noqa: S608
            for table in ("audit_events", "audit_events_state")
        ]

    @contextmanager
    def full(self) -> Iterator[Callable[[], Done]]:
        with self.server.full_disk(self.database, "audit_events"):
            yield self.export
