"""An export into a table of a DuckDB file, in one transaction with its state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from logging import Logger
from pathlib import Path
from typing import Any, Final

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.outputs.durable import output_errors
from tap_audit_events.cli.outputs.state_file import StateFile
from tap_audit_events.cli.outputs.usable import warn_if_moved, without_state
from tap_audit_events.errors.exceptions import OutputError, SettingsError, sanitize

try:
    import duckdb
    import pyarrow as pa

    from tap_audit_events.api.arrow import SCHEMA
except ImportError:
    raise SettingsError(
        ["duckdb is not installed: install the package with it, tap-audit-events[duckdb]"],
        "AE-EXTRA",
    ) from None

TABLE: Final = "audit_events"
STATE_TABLE: Final = "audit_events_state"

MOST_ROWS: Final = 10_000
MOST_BYTES: Final = 8_000_000
"""Of Arrow data that one statement inserts: it is kept in memory until then."""

MEMORY_LIMIT: Final = "64MB"
LARGE_EVENT_BYTES: Final = 8_000
MEMORY_LIMIT_FOR_LARGE_EVENTS: Final = "4GB"
"""DuckDB needs 2,048 rows in memory at once. The higher limit is set only if events are large."""

THREADS: Final = 1
"""More threads do not help: the events are inserted by one, and decoded by another."""

_COLUMNS: Final = ", ".join(
    f"{field.name} {'TIMESTAMPTZ' if pa.types.is_timestamp(field.type) else 'VARCHAR'}"
    f"{'' if field.nullable else ' NOT NULL'}"
    for field in SCHEMA
)


class DuckDBTable:
    """The table `audit_events` of a DuckDB file; other tables stay as they are.

    The state is also in the file, in a table of one row. That row counts, because it is written in
    the same transaction as the events.

    Args:
        path: the file.
        state_file: a copy of the state; without it, each export replaces the table.
        logger: is warned if the table is gone.
    """

    def __init__(self, path: Path, *, state_file: StateFile | None, logger: Logger) -> None:
        self._path = path
        self._state_file = state_file
        self._logger = logger
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._is_new = False
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def begin(self) -> Mapping[str, Any]:
        self._is_new = not self._path.exists()
        with output_errors(self._path):
            if self._state_file is not None:
                self._state_file.read()
            if self._is_new:
                if self._state_file is None:
                    return {}
                warn_if_moved(self._state_file, self._path, self._logger)
                return self._state_file.state
            connection = self._connected()
            return {} if self._state_file is None else self._stored(connection, self._state_file)

    def write(self, page: EventPage) -> None:
        with output_errors(self._path):
            batch = page.arrow()
            self._batches.append(batch)
            self._rows += batch.num_rows
            self._bytes += batch.nbytes
            if self._rows >= MOST_ROWS or self._bytes >= MOST_BYTES:
                self._insert()

    def commit(self, state: Mapping[str, Any] | None) -> None:
        with output_errors(self._path):
            if self._state_file is None or state is not None:
                self._insert()
                connection = self._connected()
                if state is not None and self._state_file is not None:
                    connection.execute(f"CREATE OR REPLACE TABLE {STATE_TABLE} (state VARCHAR)")
                    connection.execute(
                        f"INSERT INTO {STATE_TABLE} VALUES (?)",  # noqa: S608 - a constant
                        [json.dumps(state)],
                    )
                connection.commit()
            self._close()
            if state is not None and self._state_file is not None:
                self._state_file.settle(state)

    def discard(self) -> None:
        was_new = self._is_new and self._connection is not None
        with suppress(Exception):
            self._close()
        if was_new:
            for path in (self._path, self._path.with_name(self._path.name + ".wal")):
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def _connected(self) -> duckdb.DuckDBPyConnection:
        """The connection, in a transaction in which the table exists and can be extended."""
        if self._connection is None:
            self._connection = _connect(self._path)
            if self._state_file is None:
                self._connection.execute(f"DROP TABLE IF EXISTS {STATE_TABLE}")
                self._connection.execute(f"CREATE OR REPLACE TABLE {TABLE} ({_COLUMNS})")
        return self._connection

    def _stored(
        self, connection: duckdb.DuckDBPyConnection, state_file: StateFile
    ) -> Mapping[str, Any]:
        """The state of the table; the state file is brought up to date with it."""
        tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
        if TABLE in tables and STATE_TABLE not in tables:
            raise without_state(state_file, self._path)
        if TABLE in tables:
            row = connection.execute(f"SELECT state FROM {STATE_TABLE}").fetchone()  # noqa: S608 - a constant
            state: dict[str, Any] = json.loads(row[0]) if row else {}
            if state != state_file.state:  # a run was killed, or the file was restored
                state_file.settle(state)
            return state
        if state_file.state:
            self._logger.warning(
                "The table %s in %s is gone since the last export: it begins anew, with the events"
                " after those. To export everything again, remove %s too",
                TABLE, sanitize(str(self._path)), sanitize(str(state_file.path)),
            )  # fmt: skip
        return state_file.state

    def _insert(self) -> None:
        if not self._batches:
            return
        connection = self._connected()
        connection.execute(f"CREATE TABLE IF NOT EXISTS {TABLE} ({_COLUMNS})")
        if self._bytes > LARGE_EVENT_BYTES * self._rows:
            connection.execute(f"SET memory_limit = '{MEMORY_LIMIT_FOR_LARGE_EVENTS}'")
        # Not `register`: what is registered stays in memory until the transaction ends.
        connection.from_arrow(pa.Table.from_batches(self._batches, SCHEMA)).insert_into(TABLE)
        self._batches.clear()
        self._rows = self._bytes = 0

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()  # rolls back what is not committed
            self._connection = None


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection in a transaction.

    Raises:
        OutputError: another process uses the file, or it is not a DuckDB file.
    """
    config = {"memory_limit": MEMORY_LIMIT, "threads": THREADS}
    try:
        connection = duckdb.connect(str(path), config=config)
    except duckdb.IOException as error:
        reason = (
            "another process has it open: close it there"
            if "lock" in str(error)
            else sanitize(str(error))
        )
        raise OutputError(f"{sanitize(str(path))}: {reason}", "AE-EXPORT") from error
    return connection.begin()
