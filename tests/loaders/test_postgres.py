"""`audit-events verify` is a considerate reader of a PostgreSQL database."""

import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.cli.command import Command, Done
from tests.integrations.pipeline import PROJECT
from tests.loaders.postgres_server import PostgresServer
from tests.outputs.postgres_table import PostgresTable

pytestmark = pytest.mark.loaders

EVENTS = [an_event(id=f"{n}", at=f"2026-01-01T23:{n}:00.5Z") for n in range(10, 60)]
VALUES = ", ".join(f"('{each['id']}', '{each['occurredAt']}')" for each in EVENTS)


@dataclass(frozen=True)
class Warehouse:
    """A new database with the table ``audit_events``, which has the events of the service."""

    output: PostgresTable

    def query(self, sql: str) -> list[str]:
        return self.output.query(sql)

    def create(self, kind: str = "timestamptz") -> None:
        """Create the table, with a type for the times."""
        self.query(
            f"CREATE TABLE audit_events (id text, occurred_at {kind});"  # noqa: S608 - our own
            f" SET timezone = 'UTC'; INSERT INTO audit_events VALUES {VALUES}"
        )

    def arguments(self, *more: str, port: int | None = None) -> list[str]:
        url = self.output.url(port=port)
        return ["verify", "--against", f"{url}?sslmode=disable&gssencmode=disable", *more]

    def verify(self, *more: str, port: int | None = None) -> Done:
        return self.output.command(*self.arguments(*more, port=port))


@pytest.fixture
def warehouse(postgres: PostgresServer, service: Service, command: Command) -> Warehouse:
    service.add(EVENTS)
    return Warehouse(PostgresTable(command, postgres))


def test_a_loader_does_not_wait_for_the_service(warehouse: Warehouse, service: Service) -> None:
    """While the command waits for the service, its connection is closed and holds no lock."""
    warehouse.create()
    service.add_faults([Fault.parse("status:code=429,retry-after=60@1")])

    with warehouse.output.command.started(*warehouse.arguments()) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        warehouse.query("SET lock_timeout = '1ms'; ALTER TABLE audit_events ADD COLUMN new text")
        run.send_signal(signal.SIGTERM)
        run.wait(60)


@pytest.mark.parametrize("kind", ["timestamptz", "timestamptz(3)", "timestamp", "text"])
def test_a_domain_is_compared_like_its_type(kind: str, warehouse: Warehouse) -> None:
    """A domain may be based on another domain."""
    warehouse.query(f"CREATE DOMAIN base AS {kind}; CREATE DOMAIN moment AS base NOT NULL")
    warehouse.create("moment")

    warehouse.verify().raise_for_exit_code()


def test_nothing_can_be_written(warehouse: Warehouse) -> None:
    """A view may call a function that writes."""
    warehouse.create()
    warehouse.query(
        "CREATE TABLE readers (n int);"
        " CREATE FUNCTION noted() RETURNS text LANGUAGE sql VOLATILE AS"
        " 'INSERT INTO readers VALUES (1) RETURNING NULL::text';"
        " CREATE VIEW watched AS SELECT coalesce(noted(), id) AS id, occurred_at FROM audit_events"
    )

    done = warehouse.verify("--table", "watched")

    assert done.error.startswith("AE-LOADED: ")
    assert "read-only transaction" in done.error
    assert warehouse.query("SELECT count(*) FROM readers") == ["0"]


def test_a_pooler_may_refuse_options_of_the_connection(warehouse: Warehouse) -> None:
    """PgBouncer does. The database has another time zone, and another form of times."""
    warehouse.create("text")
    warehouse.query(
        "CREATE VIEW zoned AS SELECT id, CAST(occurred_at AS timestamptz) AS occurred_at"
        " FROM audit_events"
    )
    for setting in ("timezone = 'Asia/Tokyo'", "datestyle = 'SQL, DMY'"):
        warehouse.query(f'ALTER DATABASE "{warehouse.output.database}" SET {setting}')

    with pooler(warehouse.output.server.port) as port:
        done = warehouse.verify("--table", "zoned", port=port)

    done.raise_for_exit_code()


def test_rows_that_were_loaded_before_can_be_masked(warehouse: Warehouse) -> None:
    """The statement is that of `docs/privacy.md`; it is run on the columns of target-postgres."""
    (sql,) = re.findall(
        r"```sql\n(.*?)```", (PROJECT / "docs" / "privacy.md").read_text(), re.DOTALL
    )
    warehouse.create()
    for name in ("actor", "entity", "context"):
        warehouse.query(
            f"ALTER TABLE audit_events ADD COLUMN {name} jsonb"
            f""" DEFAULT '{{"id": "i", "name": "Zoë", "email": "zoe@example.com"}}'"""
        )

    warehouse.query(sql)

    rows = warehouse.query("SELECT DISTINCT actor, entity, context FROM audit_events")
    assert rows == ['{"id": "i"}\t{"id": "i"}\t']
    warehouse.verify().raise_for_exit_code()


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "text"])
def test_a_report_adds_the_records_up_in_the_database(kind: str, warehouse: Warehouse) -> None:
    """Without a table of records, gaps are not known."""
    warehouse.create()
    output = warehouse.output
    given = ("report", "--from", output.url(), "--year", "2026", "--to", "2026.html")
    report = partial(output.command, *given)
    unknown = report().raise_for_exit_code()
    page = (output.command.folder / "2026.html").read_text()
    warehouse.query(
        "CREATE TABLE audit_events_coverage (organization_id uuid, action_types text[],"
        f" covered_from {kind}, covered_until {kind}); SET timezone = 'UTC'"
    )
    warehouse.query(
        "SET timezone = 'UTC'; INSERT INTO audit_events_coverage VALUES"
        " (gen_random_uuid(), ARRAY['x'], '2025-12-31 00:00:00', '2026-01-01 00:00:00')"
    )
    known = report().raise_for_exit_code()

    assert (
        "50 events in 2026; there are no coverage records, so missing time is not known"
        in unknown.log
    )
    assert "Not known: there are no coverage records" in page
    assert ">not covered<" not in page
    assert "50 events in 2026, 1 gap" in known.log


@contextmanager
def pooler(server_port: int) -> Iterator[int]:
    """A port that passes connections on, and closes those that begin with options."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_pass_connections_on, args=(listener, server_port)).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def _pass_connections_on(listener: socket.socket, server_port: int) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        first = client.recv(4096)  # the startup message: names and values
        if b"\0options\0" in first:
            client.close()
            continue
        server = socket.create_connection(("127.0.0.1", server_port))
        server.sendall(first)
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=_copy, args=(source, sink)).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with source, sink:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)
        except OSError:  # the other direction has ended
            pass
