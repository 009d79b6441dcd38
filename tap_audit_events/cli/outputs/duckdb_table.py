"""An export into a table of a DuckDB file, together with its state.

DuckDB changes a file in place when it merges its write-ahead log. A process that is killed at that
moment, or a full disk, can leave a file that cannot be opened. So the export changes a copy, which
replaces the file when it is complete. Only a log that another process left is merged into the file
itself, as every program does that opens the file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from logging import Logger
from pathlib import Path
from typing import IO, Any, Final

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.outputs.durable import (
    check_is_utf8,
    create_like,
    exists,
    is_at,
    output_errors,
    put_in_place,
    rename_all,
    temporary,
)
from tap_audit_events.cli.outputs.state_file import StateFile
from tap_audit_events.cli.outputs.usable import (
    moved_meanwhile,
    other_columns,
    warn_if_moved,
    without_state,
)
from tap_audit_events.errors.exceptions import OutputError, missing_extra, sanitize

try:
    import duckdb
    import pyarrow as pa

    from tap_audit_events.api.arrow import SCHEMA
except ImportError:
    raise missing_extra("duckdb", "duckdb") from None

TABLE: Final = "audit_events"
STATE_TABLE: Final = "audit_events_state"

MAX_ROWS: Final = 10_000
MAX_BYTES: Final = 8_000_000
"""The Arrow data that one statement inserts; it is kept in memory until then."""

MEMORY_LIMIT: Final = "64MB"
LARGE_EVENT_BYTES: Final = 8_000
HIGH_MEMORY_LIMIT: Final = "4GB"
"""DuckDB needs 2,048 rows and each index of the table in memory at once. The higher limit is set
only if events are large, or if the table has an index."""

_COPY_BYTES: Final = 1_000_000

STORAGE_VERSION: Final = "v1.1.0"
"""Of new files: the oldest DuckDB that the package accepts reads them. The default of DuckDB 2 is
refused by every 1.x. A file that exists keeps its version."""

THREADS: Final = 1
"""More threads do not help: one inserts the events."""

_COLUMNS: Final = ", ".join(
    f"{field.name} {'TIMESTAMPTZ' if pa.types.is_timestamp(field.type) else 'VARCHAR'}"
    f"{'' if field.nullable else ' NOT NULL'}"
    for field in SCHEMA
)

_TIME: Final = SCHEMA.get_field_index("occurred_at")


class DuckDBTable:
    """The table `audit_events` of a DuckDB file; other tables stay as they are.

    The state is also in the file, in a table of one row. If the state file differs, that row is
    right, because it is written together with the events.

    Args:
        path: the file.
        state_file: a copy of the state; without it, each export replaces the table.
        logger: logs a warning if the table is gone.
    """

    def __init__(self, path: Path, *, state_file: StateFile | None, logger: Logger) -> None:
        self._path = path
        self._state_file = state_file
        self._logger = logger
        self._old: _OldFile | None = None
        self._new_path = temporary(path)
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def begin(self) -> Mapping[str, Any]:
        check_is_utf8(str(self._path), "DuckDB")
        with output_errors(self._path):
            if self._state_file is not None:
                self._state_file.read(undoes=True)  # something else may have changed the old file
            self._remove_new()
            if exists(self._path):
                self._old = _OldFile(self._path)
            if self._state_file is None:  # the whole table is replaced
                return {}
            if self._old is not None:
                return self._stored(self._old.connection, self._state_file)
            warn_if_moved(self._state_file, self._path, self._logger)
            return self._state_file.state

    def write(self, page: EventPage) -> None:
        with output_errors(self._path):
            batch = page.arrow()
            self._batches.append(batch)
            self._rows += batch.num_rows
            self._bytes += batch.nbytes
            if self._rows >= MAX_ROWS or self._bytes >= MAX_BYTES:
                self._insert()

    def commit(self, state: Mapping[str, Any] | None) -> None:
        renames = [(self._new_path, self._path)]
        with output_errors(self._path):
            if self._state_file is None:
                self._finish(None)
                put_in_place(self._new_path, self._path)
            elif state is not None:
                self._finish(state)
                self._state_file.announce(state, None, renames)
                rename_all(renames)
                self._state_file.settle(state)
            self._close()

    def discard(self) -> None:
        with suppress(Exception):
            self._close()
        is_announced = self._state_file is not None and self._state_file.is_announced
        if not is_announced:
            with suppress(OSError):
                self._remove_new()

    def _finish(self, state: Mapping[str, Any] | None) -> None:
        """Write everything to the new file on the disk, with the state if there is one."""
        self._insert()
        connection = self._connected()
        if state is not None:
            connection.execute(f"CREATE OR REPLACE TABLE {STATE_TABLE} (state VARCHAR)")
            connection.execute(
                f"INSERT INTO {STATE_TABLE} VALUES (?)",  # noqa: S608 - a constant
                [json.dumps(state)],
            )
        connection.commit()
        connection.execute("CHECKPOINT")  # `close` would do it too, but hide its errors
        connection.close()
        self._check_still_in_place()

    def _connected(self) -> duckdb.DuckDBPyConnection:
        """The new file, in a transaction."""
        if self._connection is None:
            if self._old is not None:
                self._old.copy_to(self._new_path)
            self._connection = _connect(self._new_path).begin()
            if self._state_file is None:
                self._connection.execute(f"DROP TABLE IF EXISTS {STATE_TABLE}")
                self._connection.execute(f"CREATE OR REPLACE TABLE {TABLE} ({_COLUMNS})")
        return self._connection

    def _stored(
        self, connection: duckdb.DuckDBPyConnection, state_file: StateFile
    ) -> Mapping[str, Any]:
        """The state in the table of the state; the state file is updated to it."""
        tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
        if TABLE in tables:
            row = None
            if STATE_TABLE in tables:
                row = connection.execute(f"SELECT state FROM {STATE_TABLE}").fetchone()  # noqa: S608 - a constant
            if not row:
                raise without_state(state_file, self._path)
            if not _has_columns(connection.table(TABLE)):
                raise other_columns(self._path)
            state: dict[str, Any] = json.loads(row[0])
            if state != state_file.state:  # a run was killed, or the file was restored
                state_file.settle(state)
            return state
        if state_file.state:
            self._logger.warning(
                "The table %s in %s has been removed since the last export: a new one starts with"
                " the events after that export. To export everything again, remove %s too",
                TABLE, sanitize(self._path), sanitize(state_file.path),
            )  # fmt: skip
        return state_file.state

    def _insert(self) -> None:
        if not self._batches:
            return
        connection = self._connected()
        connection.execute(f"CREATE TABLE IF NOT EXISTS {TABLE} ({_COLUMNS})")
        if self._bytes > LARGE_EVENT_BYTES * self._rows or _has_index(connection):
            connection.execute(f"SET memory_limit = '{HIGH_MEMORY_LIMIT}'")
        # Not `register`: what is registered stays in memory until the transaction ends.
        connection.from_arrow(pa.Table.from_batches(self._batches, SCHEMA)).insert_into(TABLE)
        self._batches.clear()
        self._rows = self._bytes = 0

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()  # rolls back what is not committed
            self._connection = None
        if self._old is not None:
            self._old.close()
            self._old = None

    def _check_still_in_place(self) -> None:
        """Check that nothing else has moved, replaced or created the file in the meantime."""
        if self._old is not None:
            self._old.check_still_in_place()
            return
        if exists(self._path):
            reason = f"{sanitize(self._path)}: another process has created it in the meantime"
            raise OutputError(reason, "AE-EXPORT")
        _log_of(self._path).unlink(missing_ok=True)  # the log of a file that is gone

    def _remove_new(self) -> None:
        """Remove the files that a failed or killed run left."""
        for path in (self._new_path, _log_of(self._new_path)):
            path.unlink(missing_ok=True)
        shutil.rmtree(self._new_path.with_name(f"{self._new_path.name}.tmp"), ignore_errors=True)


class _OldFile:
    """The existing file. While it is open, no other process can open it for writing.

    Raises:
        OutputError: another process uses the file, or it is not a DuckDB file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] = path.open("rb")
        try:
            self.connection = _connect(path)
            if exists(_log_of(path)):
                self.connection.execute("CHECKPOINT")
        except BaseException:
            self._file.close()
            raise

    def copy_to(self, path: Path) -> None:
        """Copy the file, with all tables."""
        with create_like(self._path, path) as copy:
            shutil.copyfileobj(self._file, copy, _COPY_BYTES)

    def check_still_in_place(self) -> None:
        """Raise `SettingsError` if the file was moved: its events would be in the new one too."""
        if not is_at(self._path, self._file.fileno()):
            raise moved_meanwhile(self._path)

    def close(self) -> None:
        self.connection.close()
        self._file.close()  # last: earlier, the system would release this process's lock


def _has_columns(table: duckdb.DuckDBPyRelation) -> bool:
    """Whether a table has the columns of the events, and `occurred_at` a time zone.

    Without one, DuckDB would insert the times in the time zone of the machine.
    """
    names = list(table.columns)
    return names == SCHEMA.names and str(table.types[_TIME]) == "TIMESTAMP WITH TIME ZONE"


def _has_index(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the table of the events has an index, or a key, which is an index too."""
    sql = "SELECT max(index_count) FROM duckdb_tables() WHERE table_name = ?"
    return bool(connection.execute(sql, [TABLE]).fetchall()[0][0])


def _log_of(path: Path) -> Path:
    """DuckDB's write-ahead log of a file."""
    return path.with_name(f"{path.name}.wal")


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection to a DuckDB file.

    Raises:
        OutputError: another process uses the file, or it is not a DuckDB file.
    """
    config = {
        "memory_limit": MEMORY_LIMIT,
        "storage_compatibility_version": STORAGE_VERSION,
        "threads": THREADS,
        "autoinstall_known_extensions": "false",  # else DuckDB downloads one for a SQLite file
    }
    try:
        return duckdb.connect(str(path), config=config)
    except duckdb.IOException as error:
        reason = (
            "another process has it open: close it there"
            if "Could not set lock" in str(error)
            else sanitize(error)
        )
        raise OutputError(f"{sanitize(path)}: {reason}", "AE-EXPORT") from error
