"""An export into a table of a PostgreSQL database, together with its state.

The events and the state are committed together, in parts. So there is no state file, and a run that
is killed at any moment continues where its last part ended.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.errors.exceptions import (
    OutputError,
    SettingsError,
    missing_extra,
    sanitize,
)
from tap_audit_events.outputs.durable import unusable
from tap_audit_events.outputs.form import AS_SENT, Form
from tap_audit_events.outputs.output import Output

try:
    import psycopg
    import pyarrow as pa
    from psycopg import errors, sql
    from pyarrow import csv

    from tap_audit_events.api.record_batches import RecordBatches
    from tap_audit_events.outputs.postgres_connection import connect, failure, parameters_of
    from tap_audit_events.outputs.postgres_schema import (
        JSON_COLUMNS,
        KEY,
        REFUSED,
        STATE_TABLE,
        Tables,
        columns_of,
        identifiers,
        open_tables,
        parts_of,
    )
except ImportError as error:
    raise missing_extra(error.name or "psycopg", "postgres") from None

COPY_ROWS: Final = 10_000
COPY_BYTES: Final = 16_000_000
"""What one COPY sends; it is kept in memory until the server has stored it."""

_LOCK_SECONDS: Final = 3
"""So long, the server may still be busy with the last statement of a run that was killed."""

_BEGIN: Final = f"""
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL statement_timeout = 0;
SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'
"""
"""Statements, as a connection pooler may drop or refuse the options of a connection. The service
may make a run wait longer than the server lets a transaction be idle, or a COPY last."""

_REFUSALS: Final = (
    errors.DataError,
    errors.ProgramLimitExceeded,
    errors.StatementTooComplex,
)
"""What the server raises for a value that it cannot store."""

_CSV: Final = csv.WriteOptions(include_header=False, quoting_style="needed")

_logger: Final = logging.getLogger("tap_audit_events")


class PostgresTable(Output):
    """A table, and next to it the table `audit_events_state` with a row for each organization.

    Args:
        url: the URL of the database, as libpq reads it.
        table: the name of the table, which may begin with a schema.
        form: the form of the events.

    Raises:
        SettingsError: libpq does not accept the URL, or the name cannot be used.
    """

    def __init__(self, url: str, table: str, form: Form = AS_SENT) -> None:
        self._form = form
        self._columns = columns_of(form.schema)
        self._name = sanitize(table)
        self._parts = parts_of(table)
        try:
            self._parameters = parameters_of(url)
        except ValueError as error:
            raise unusable(f"--to cannot be used: {error}") from None
        self._connection: psycopg.Connection[Any] | None = None
        self._tables = Tables("", "", is_new=False)
        self._states: dict[str, dict[str, Any]] = {}
        self._batches = RecordBatches(form.schema)
        self._copy: psycopg.Copy | None = None
        self._copy_end = ExitStack()
        self._is_in_part = False
        self._may_meet_rows = False
        self._part_events = 0

    @property
    def is_part_complete(self) -> bool:
        return self._part_events >= self.PART_EVENTS

    def begin(self) -> Mapping[str, Any]:
        with self._errors():
            self._connection = connect(self._parameters)
            self._tables = open_tables(self._connection, self._parts, self._columns)
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
            if len(page):
                self._send(self._form.rows(page))
            self._part_events += len(page)
            if self._batches.rows >= COPY_ROWS or self._batches.bytes >= COPY_BYTES:
                self._end_copy()

    def commit(self, state: Mapping[str, Any] | None) -> None:
        with self._errors():
            self._end_copy()
            self._store(state or {})
            self._open.commit()
            self._is_in_part = False
            self._part_events = 0

    def discard(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()  # the server rolls back what is not committed
            with suppress(Exception):
                self._copy_end.close()

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

    def _send(self, rows: pa.RecordBatch) -> None:
        """Send rows in an open COPY: the server stores them while the next page is read."""
        self._batches.add(rows)
        if self._copy is None:
            self._copy = self._copy_end.enter_context(self._copying())
        self._copy.write(_as_csv(pa.Table.from_batches([rows])))

    def _end_copy(self) -> None:
        """End the open COPY. If the server refuses it, copy the rows again in other ways."""
        rows, self._copy = self._batches.take(), None
        try:
            self._copy_end.close()
        except (errors.UniqueViolation, *_REFUSALS) as error:
            self._copy_otherwise(rows, error)

    def _copy_otherwise(self, rows: pa.Table, error: psycopg.Error) -> None:
        """Copy rows that were refused; those with JSON that the server refuses are halved."""
        if isinstance(error, errors.UniqueViolation):
            if self._may_meet_rows:  # another unique index
                raise error
            self._may_meet_rows = True  # something else has loaded some of the events
            self._copy_again(rows)
        elif rows.num_rows > 1:
            half = rows.num_rows // 2
            self._copy_again(rows.slice(0, half))
            self._copy_again(rows.slice(half))
        elif REFUSED not in rows.column_names:
            self._copy_again(_with_refused(rows, self._columns))
        else:
            raise error

    def _copy_again(self, rows: pa.Table) -> None:
        try:
            with self._copying() as copy:
                copy.write(_as_csv(rows))
        except (errors.UniqueViolation, *_REFUSALS) as error:
            self._copy_otherwise(rows, error)

    @contextmanager
    def _copying(self) -> Iterator[psycopg.Copy]:
        """A COPY; after the block, all of its rows are in the table, or none after an error.

        If the table may have some of the rows, they go through a temporary table.
        """
        with self._open.transaction(), self._open.cursor() as cursor:
            table = "{events}"
            if self._may_meet_rows:
                table = "pg_temp.new_events"
                self._execute(
                    "CREATE TEMPORARY TABLE new_events ON COMMIT DROP AS"
                    " SELECT {columns} FROM {events} WITH NO DATA"
                )
            with cursor.copy(
                self._sql(f"COPY {table} ({{columns}}) FROM STDIN (FORMAT csv)")
            ) as copy:
                yield copy
            if self._may_meet_rows:
                self._execute(
                    "INSERT INTO {events} ({columns}) SELECT {columns} FROM pg_temp.new_events"
                    " ON CONFLICT ({key}) DO NOTHING"
                )
                self._execute("DROP TABLE pg_temp.new_events")

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
            columns=identifiers(self._columns.names),
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


def _as_csv(rows: pa.Table) -> memoryview:
    if REFUSED not in rows.column_names:
        rows = rows.append_column(REFUSED, pa.nulls(rows.num_rows, pa.string()))
    text = pa.BufferOutputStream()
    csv.write_csv(rows, text, _CSV)
    return memoryview(text.getvalue())


def _with_refused(row: pa.Table, columns: pa.Schema) -> pa.Table:
    """A row whose JSON is in the column `REFUSED`."""
    values = row.to_pylist()[0]
    parts = [f'"{name}":{values[name]}' for name in JSON_COLUMNS if values.get(name)]
    values |= dict.fromkeys(JSON_COLUMNS) | {REFUSED: f"{{{','.join(parts)}}}"}
    return pa.Table.from_pylist([values], columns)
