"""The temporary database, which reads what was loaded: it writes to a folder what is too much."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import duckdb
import pyarrow as pa

from tap_audit_events.cli.loaded.batches import Query, unreadable
from tap_audit_events.errors.exceptions import OutputError, sanitize
from tap_audit_events.outputs.durable import output_errors

OWN: Final = "_audit_events_compared"
"""The catalog of its own tables; a DuckDB file becomes the catalog of the file's name."""

_MEGABYTES: Final = 32, 4096
"""The memory of the database: at first, and at most. A Parquet file may have pages of any size."""

_CONFIG: Final = {
    "threads": 1,
    "autoinstall_known_extensions": "false",  # else DuckDB downloads one for a SQLite file
}

Rows: TypeAlias = pa.Table | Query


class TemporaryDatabase:
    """A database in a folder for temporary files.

    Attributes:
        folder: the folder.
        megabytes: the memory that it may use so far.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.megabytes, self._most_megabytes = _MEGABYTES
        self._connection = duckdb.connect(config={**_CONFIG, "temp_directory": str(folder)})
        self._connection.execute(f"ATTACH ':memory:' AS {OWN}; USE {OWN}; DETACH memory")
        self._limit_memory()

    def execute(
        self, sql: str, values: Any = None, rows: Rows | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Execute a statement, with more memory if it needs that.

        Args:
            sql: the statement. ``{source}`` in it stands for `rows`, as the table ``batch``.
            values: its parameters.
            rows: what it reads.
        """
        source = rows.sql if isinstance(rows, Query) else "FROM arrow_batch"
        statement = sql.replace("{source}", f"batch AS ({source})")
        while True:
            if isinstance(rows, pa.Table):
                # As a stream: of a table, DuckDB makes a data set, whose library needs 20 MB.
                self._connection.register("arrow_batch", rows.__arrow_c_stream__())
            try:
                return self._connection.execute(statement, values)
            except duckdb.OutOfMemoryException:
                if self.megabytes >= self._most_megabytes:
                    raise
            self.megabytes *= 2
            self._limit_memory()

    @contextmanager
    def attached(self, path: Path) -> Iterator[None]:
        """Within the block, unqualified names are those of a DuckDB file, which is only read.

        Raises:
            duckdb.Error: it cannot be opened.
        """
        names = "SELECT database_name FROM duckdb_databases()"
        before = {*self._connection.execute(names).fetchall()}
        self._connection.execute("ATTACH '{}' (READ_ONLY)".format(str(path).replace("'", "''")))
        ((name,),) = {*self._connection.execute(names).fetchall()} - before
        self._connection.execute(f'USE "{name}"')
        try:
            yield
        finally:
            self._connection.execute(f'USE {OWN}; DETACH "{name}"')

    def close(self) -> None:
        """Free the memory, and remove the temporary files."""
        self._connection.close()

    def _limit_memory(self) -> None:
        self._connection.execute(f"SET memory_limit = '{self.megabytes}MB'")


@contextmanager
def temporary_database() -> Iterator[TemporaryDatabase]:
    """A database whose files are removed at the end of the block.

    Raises:
        OutputError: no folder for temporary files can be written to: the disk may be full.
    """
    try:
        system_folder = Path(tempfile.gettempdir())
    except FileNotFoundError:
        reason = "no folder for temporary files: set TMPDIR"
        raise OutputError(reason, "AE-EXPORT") from None
    with output_errors(system_folder):
        temporary = tempfile.TemporaryDirectory(prefix="audit-events-")
    with temporary as folder:
        with output_errors(Path(folder)):
            database = TemporaryDatabase(Path(folder))
        with closing(database):
            yield database


@contextmanager
def query_errors(rows: Rows | None) -> Iterator[None]:
    """Turn an error of a query into an `OutputError` that names what is read."""
    try:
        yield
    except (duckdb.Error, UnicodeError) as error:
        if isinstance(rows, Query) and not isinstance(error, duckdb.OutOfMemoryException):
            raise unreadable(rows.name, sanitize(error)) from None
        raise
