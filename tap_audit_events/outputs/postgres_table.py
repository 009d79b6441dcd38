"""An export into a table of a PostgreSQL database, together with its state.

The events and the state are committed together, in parts. So there is no state file, and a run that
is killed at any moment continues where its last part ended.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.errors.exceptions import (
    OutputError,
    SettingsError,
    missing_extra,
    sanitize,
)
from tap_audit_events.outputs.durable import unusable
from tap_audit_events.outputs.output import Output

try:
    import psycopg
    import pyarrow as pa
    from psycopg import errors, sql
    from pyarrow import csv

    from tap_audit_events.api.record_batches import RecordBatches
    from tap_audit_events.outputs.postgres_connection import connect, failure, parameters_of
    from tap_audit_events.outputs.postgres_schema import (
        COLUMNS,
        JSON_COLUMNS,
        KEY,
        REFUSED,
        STATE_TABLE,
        Tables,
        identifiers,
        open_tables,
        parts_of,
    )
except ImportError as error:
    raise missing_extra(error.name or "psycopg", "postgres") from None

COPY_ROWS: Final = 10_000
COPY_BYTES: Final = 16_000_000
"""What one COPY sends; it is kept in memory until then."""

_LOCK_SECONDS: Final = 3
"""So long, the server may still be busy with the last statement of a run that was killed."""

_BEGIN: Final = f"""
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'
"""
"""Statements, as a connection pooler may drop or refuse the options of a connection. The service
may make a run wait longer than the server lets a transaction be idle."""

_REFUSALS: Final = (
    errors.DataError,
    errors.ProgramLimitExceeded,
    errors.StatementTooComplex,
)
"""What the server raises for a value that it cannot store."""

_AS_CSV: Final = csv.WriteOptions(include_header=False, quoting_style="needed")

_logger: Final = logging.getLogger("tap_audit_events")


class PostgresTable(Output):
    """A table, and next to it the table `audit_events_state` with a row for each organization.

    Args:
        url: the URL of the database, as libpq reads it.
        table: the name of the table, which may begin with a schema.

    Raises:
        SettingsError: libpq does not accept the URL, or the name cannot be used.
    """

    def __init__(self, url: str, table: str) -> None:
        self._name = sanitize(table)
        self._parts = parts_of(table)
        try:
            self._parameters = parameters_of(url)
        except ValueError as error:
            raise unusable(f"--to cannot be used: {error}") from None
        self._connection: psycopg.Connection[Any] | None = None
        self._tables = Tables("", "", is_new=False)
        self._states: dict[str, dict[str, Any]] = {}
        self._batches = RecordBatches()
        self._is_in_part = False
        self._may_meet_rows = False
        self._part_events = 0

    @property
    def is_part_complete(self) -> bool:
        return self._part_events >= self.PART_EVENTS

    def begin(self) -> Mapping[str, Any]:
        with self._errors():
            self._connection = connect(self._parameters)
            self._tables = open_tables(self._connection, self._parts)
            self._begin_part()
            self._states = self._stored_states()
            has_rows = self._execute("SELECT 1 FROM {events} LIMIT 1").fetchone() is not None
            self._may_meet_rows = has_rows and not self._states
        if self._states and self._tables.is_new:
            _logger.warning(
                "The table %s has been removed since the last export: a new one starts with the"
                " events after that export. To export everything again, delete its rows from %s",
                self._name,
                STATE_TABLE,
            )
        return {"organizations": list(self._states.values())} if self._states else {}

    def write(self, page: EventPage) -> None:
        with self._errors():
            if not self._is_in_part:
                self._begin_part()
                if self._stored_states() != self._states:
                    raise unusable(
                        f"The table {self._name}: another export has written to it in the"
                        " meantime. Run the export again"
                    )
            self._batches.add(page.arrow())
            self._part_events += len(page)
            if self._batches.rows >= COPY_ROWS or self._batches.bytes >= COPY_BYTES:
                self._copy_batches()

    def commit(self, state: Mapping[str, Any] | None) -> None:
        with self._errors():
            self._copy_batches()
            self._store(state or {})
            self._open.commit()
            self._is_in_part = False
            self._part_events = 0

    def discard(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()  # the server rolls back what is not committed

    # Parts and states

    def _begin_part(self) -> None:
        """Begin a transaction that locks out other exports into this table."""
        self._open.execute(_BEGIN)
        try:
            self._open.execute(
                "SELECT pg_advisory_xact_lock(hashtext('audit-events'), %s::regclass::oid::int)",
                [self._tables.events.as_string(self._open)],
            )
        except errors.LockNotAvailable:
            problem = f"Another run is writing to the table {self._name}"
            next_step = "wait until it has ended, or end it"
            raise SettingsError([f"{problem}: {next_step}"], "AE-BUSY") from None
        self._open.execute("SET LOCAL lock_timeout = DEFAULT")
        self._is_in_part = True

    def _stored_states(self) -> dict[str, dict[str, Any]]:
        query = "SELECT organization_id, state FROM {states} WHERE table_name = %s"
        return dict(self._execute(query, self._tables.table).fetchall())

    def _store(self, state: Mapping[str, Any]) -> None:
        """Store the states of the organizations that have changed."""
        for each in state.get("organizations", [state] if state else []):
            name, text = each["organization_id"].lower(), json.dumps(each)
            stored = json.loads(text)
            if self._states.get(name) != stored:
                self._execute(
                    "INSERT INTO {states} (table_name, organization_id, state) VALUES (%s, %s, %s)"
                    " ON CONFLICT (table_name, organization_id) DO UPDATE"
                    " SET state = excluded.state",
                    self._tables.table, name, text,
                )  # fmt: skip
                self._states[name] = stored

    # Events

    def _copy_batches(self) -> None:
        if self._batches.rows:
            rows = self._batches.take()
            self._copy(rows.append_column(REFUSED, pa.nulls(rows.num_rows, pa.string())))

    def _copy(self, rows: pa.Table) -> None:
        """Copy rows; those with JSON that the server refuses are found by halving."""
        try:
            with self._open.transaction():
                self._merge(rows) if self._may_meet_rows else self._send(rows, "{events}")
        except errors.UniqueViolation:  # something else has loaded some of the events
            if self._may_meet_rows:  # another unique index
                raise
            self._may_meet_rows = True
            self._copy(rows)
        except _REFUSALS:
            if rows.num_rows > 1:
                half = rows.num_rows // 2
                self._copy(rows.slice(0, half))
                self._copy(rows.slice(half))
            elif rows.column(REFUSED).null_count:
                self._copy(_with_refused(rows))
            else:
                raise

    def _merge(self, rows: pa.Table) -> None:
        """Add the rows that the table does not have yet."""
        self._execute(
            "CREATE TEMPORARY TABLE new_events ON COMMIT DROP AS"
            " SELECT {columns} FROM {events} WITH NO DATA"
        )
        self._send(rows, "pg_temp.new_events")
        self._execute(
            "INSERT INTO {events} ({columns}) SELECT {columns} FROM pg_temp.new_events"
            " ON CONFLICT ({key}) DO NOTHING"
        )
        self._execute("DROP TABLE pg_temp.new_events")

    def _send(self, rows: pa.Table, table: str) -> None:
        text = pa.BufferOutputStream()
        csv.write_csv(rows, text, _AS_CSV)
        statement = self._sql(f"COPY {table} ({{columns}}) FROM STDIN (FORMAT csv)")
        with self._open.cursor() as cursor, cursor.copy(statement) as copy:
            copy.write(memoryview(text.getvalue()))

    # The connection

    @property
    def _open(self) -> psycopg.Connection[Any]:
        assert self._connection is not None, "begin() was not called"  # noqa: S101
        return self._connection

    def _execute(self, query: str, *parameters: str) -> psycopg.Cursor[Any]:
        return self._open.execute(self._sql(query), parameters)

    def _sql(self, query: str) -> sql.Composed:
        return sql.SQL(query).format(
            events=self._tables.events,
            states=self._tables.states,
            columns=identifiers(COLUMNS.names),
            key=identifiers(KEY),
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            is_connected = self._connection is not None
            raise failure(error, self._name, is_connected=is_connected) from None
        except pa.ArrowException as error:
            raise OutputError(f"the table {self._name}: {sanitize(error)}", "AE-EXPORT") from error


def _with_refused(row: pa.Table) -> pa.Table:
    """A row whose JSON is in the column `REFUSED`."""
    values = row.to_pylist()[0]
    parts = [f'"{name}":{values[name]}' for name in JSON_COLUMNS if values[name] is not None]
    values |= dict.fromkeys(JSON_COLUMNS) | {REFUSED: f"{{{','.join(parts)}}}"}
    return pa.Table.from_pylist([values], row.schema)
