"""An export into a table of a DuckDB file, together with its state.

DuckDB changes a file in place when it merges its write-ahead log. A process that is killed at that
moment, or a full disk, can leave a file that cannot be opened. So the export writes the events into
a hidden file. At the end, it adds them to a copy of the existing file, which replaces that file.
Meanwhile other processes can open the existing file, and change it until the copy begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.errors.exceptions import OutputError, missing_extra, sanitize
from tap_audit_events.outputs.duckdb_files import OldFile, connect, log_of, remove
from tap_audit_events.outputs.durable import (
    check_is_utf8,
    exists,
    output_errors,
    put_in_place,
    temporary,
)
from tap_audit_events.outputs.form import AS_SENT, Form
from tap_audit_events.outputs.output import Output
from tap_audit_events.outputs.state_checks import (
    meanwhile,
    other_columns,
    warn_if_moved,
    without_state,
)
from tap_audit_events.outputs.state_file import StateFile

try:
    import duckdb
    import pyarrow as pa

    from tap_audit_events.api.record_batches import RecordBatches
except ImportError:
    raise missing_extra("duckdb", "duckdb") from None

TABLE: Final = "audit_events"
STATE_TABLE: Final = "audit_events_state"

MAX_ROWS: Final = 10_000
MAX_BYTES: Final = 8_000_000
"""The Arrow data that one statement inserts; it is kept in memory until then."""

LARGE_EVENT_BYTES: Final = 8_000
HIGH_MEMORY_LIMIT: Final = "4GB"
"""DuckDB needs 2,048 rows and each index of the table in memory at once. The higher limit is set
only if events are large, or if the table has an index."""


class DuckDBTable(Output):
    """The table `audit_events` of a DuckDB file; other tables stay as they are.

    The state is also in the file, in a table of one row. If the state file differs, that row is
    right, because it is written together with the events.

    Args:
        path: the file.
        state_file: a copy of the state; without it, each export replaces the table.
        form: the form of the events.
    """

    def __init__(self, path: Path, state_file: StateFile | None, form: Form = AS_SENT) -> None:
        self._form = form
        self._columns = _columns_of(form.schema)
        self._path = path
        self._state_file = state_file
        self._existed = False
        self._stored: dict[str, Any] | None = None
        self._new_path = temporary(path)
        self._events_path = path.with_name(f".{path.name}.events")
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._batches = RecordBatches(form.schema)
        self._has_large_events = False

    def begin(self) -> Mapping[str, Any]:
        check_is_utf8(str(self._path), "DuckDB")
        with output_errors(self._path):
            if self._state_file is not None:
                self._state_file.read(undoes=True)  # something else may have changed the old file
            self._remove_new()
            self._existed = exists(self._path)
            if self._existed:
                with closing(connect(self._path, read_only=True)) as connection:
                    self._stored = self._stored_in(connection)
            if self._state_file is None:  # the whole table is replaced
                return {}
            if not self._existed:
                warn_if_moved(self._state_file, self._path)
            elif self._stored is None:
                warn_if_moved(self._state_file, self._path, table=TABLE)
            elif self._stored != self._state_file.state:  # killed, or the file was restored
                self._state_file.settle(self._stored)
            return self._state_file.state

    def write(self, page: EventPage) -> None:
        with output_errors(self._path):
            self._batches.add(self._form.rows(page))
            if self._batches.rows >= MAX_ROWS or self._batches.bytes >= MAX_BYTES:
                self._insert()

    def commit(self, state: Mapping[str, Any] | None) -> None:
        with output_errors(self._path):
            if self._state_file is None:
                with self._finished(None) as new_path:
                    put_in_place(new_path, self._path)
            elif state is not None:
                with self._finished(state) as new_path:
                    self._state_file.commit(state, [(new_path, self._path)])

    def discard(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()  # rolls back what is not committed
        is_announced = self._state_file is not None and self._state_file.is_announced
        if not is_announced:
            with suppress(OSError):
                self._remove_new()

    @contextmanager
    def _finished(self, state: Mapping[str, Any] | None) -> Iterator[Path]:
        """The complete new file on the disk. Within the block, nobody changes the old one."""
        self._insert()
        if not exists(self._path):
            if self._existed:
                raise meanwhile("moved it", self._path)
            self._complete(self._connected(), state)
            log_of(self._path).unlink(missing_ok=True)  # the log of a file that is gone
            yield self._events_path
            return
        if not self._existed:
            reason = f"{sanitize(self._path)}: another process has created it in the meantime"
            raise OutputError(reason, "AE-EXPORT")
        has_events = self._connection is not None
        if self._connection is not None:
            self._complete(self._connection, None)
        with closing(OldFile(self._path)) as old:
            if self._stored_in(old.connection) != self._stored:
                raise meanwhile("changed its events", self._path)
            old.copy_to(self._new_path)
            self._connection = connect(self._new_path).begin()
            if self._state_file is None:
                self._connection.execute(f"DROP TABLE IF EXISTS {STATE_TABLE}")
                self._connection.execute(f"CREATE OR REPLACE TABLE {TABLE} ({self._columns})")
            if has_events:
                self._add_events(self._connection)
            self._complete(self._connection, state)
            remove(self._events_path)
            yield self._new_path

    def _add_events(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Add the events of the hidden file to a file."""
        connection.execute(f"CREATE TABLE IF NOT EXISTS {TABLE} ({self._columns})")
        if self._has_large_events or _has_index(connection):
            connection.execute(f"SET memory_limit = '{HIGH_MEMORY_LIMIT}'")
        path = str(self._events_path).replace("'", "''")
        connection.execute(f"ATTACH '{path}' AS new_events (READ_ONLY)")
        connection.execute(f"INSERT INTO {TABLE} FROM new_events.{TABLE}")

    def _complete(
        self, connection: duckdb.DuckDBPyConnection, state: Mapping[str, Any] | None
    ) -> None:
        """Write everything to the disk, with the state if there is one, and close the file."""
        if state is not None:
            connection.execute(f"CREATE OR REPLACE TABLE {STATE_TABLE} (state VARCHAR)")
            connection.execute(
                f"INSERT INTO {STATE_TABLE} VALUES (?)",  # noqa: S608 - a constant
                [json.dumps(state)],
            )
        connection.commit()
        connection.execute("CHECKPOINT")  # `close` would do it too, but hide its errors
        connection.close()
        self._connection = None

    def _connected(self) -> duckdb.DuckDBPyConnection:
        """The hidden file of the new events, in a transaction."""
        if self._connection is None:
            self._connection = connect(self._events_path).begin()
            self._connection.execute(f"CREATE TABLE {TABLE} ({self._columns})")
        return self._connection

    def _stored_in(self, connection: duckdb.DuckDBPyConnection) -> dict[str, Any] | None:
        """The state in the table of the state; None without a table of events or a state file."""
        tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
        if self._state_file is None or TABLE not in tables:
            return None
        row = None
        if STATE_TABLE in tables:
            row = connection.execute(f"SELECT state FROM {STATE_TABLE}").fetchone()  # noqa: S608 - a constant
        if not row:
            raise without_state(self._state_file, self._path)
        if not _has_columns(connection.table(TABLE), self._form.schema):
            raise other_columns(self._path)
        state: dict[str, Any] = json.loads(row[0])
        return state

    def _insert(self) -> None:
        if not self._batches.rows:
            return
        connection = self._connected()
        if self._batches.bytes > LARGE_EVENT_BYTES * self._batches.rows:
            self._has_large_events = True
            connection.execute(f"SET memory_limit = '{HIGH_MEMORY_LIMIT}'")
        # Not `register`: what is registered stays in memory until the transaction ends.
        connection.from_arrow(self._batches.take()).insert_into(TABLE)

    def _remove_new(self) -> None:
        """Remove the files that a failed or killed run left."""
        for path in (self._new_path, self._events_path):
            remove(path)


def _columns_of(schema: pa.Schema) -> str:
    return ", ".join(
        f"{field.name} {'TIMESTAMPTZ' if pa.types.is_timestamp(field.type) else 'VARCHAR'}"
        f"{'' if field.nullable else ' NOT NULL'}"
        for field in schema
    )


def _has_columns(table: duckdb.DuckDBPyRelation, schema: pa.Schema) -> bool:
    """Whether a table has the columns of the events, and `occurred_at` a time zone.

    Without one, DuckDB would insert the times in the time zone of the machine.
    """
    kind = dict(zip(table.columns, map(str, table.types), strict=True)).get("occurred_at")
    return table.columns == schema.names and kind == "TIMESTAMP WITH TIME ZONE"


def _has_index(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the table of the events has an index, or a key, which is an index too."""
    sql = "SELECT max(index_count) FROM duckdb_tables() WHERE table_name = ?"
    return bool(connection.execute(sql, [TABLE]).fetchall()[0][0])
