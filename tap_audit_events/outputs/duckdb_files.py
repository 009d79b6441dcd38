"""DuckDB files that an export reads and writes: the existing one, and hidden new ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import IO, Final

from tap_audit_events.errors.exceptions import OutputError, missing_extra, sanitize
from tap_audit_events.outputs.durable import create_like, exists

try:
    import duckdb
except ImportError:
    raise missing_extra("duckdb", "duckdb") from None

MEMORY_LIMIT: Final = "64MB"

STORAGE_VERSION: Final = "v1.1.0"
"""Of new files: the oldest DuckDB that the package accepts reads them. The default of DuckDB 2 is
refused by every 1.x. A file that exists keeps its version."""

THREADS: Final = 1
"""More threads do not help: one inserts the events."""

_COPY_BYTES: Final = 1_000_000


class OldFile:
    """The existing file. While it is open, other processes can read it, but not change it.

    A log that a killed process left next to it is merged into it, as every program does that opens
    it for writing.

    Raises:
        OutputError: another process is writing the file, or it is not a DuckDB file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] = path.open("rb")
        try:
            has_log = exists(log_of(path))
            self.connection = connect(path, read_only=not has_log)
            if has_log:
                self.connection.execute("CHECKPOINT")
            elif exists(log_of(path)):
                raise _in_use(path)
        except BaseException:
            self._file.close()
            raise

    def copy_to(self, path: Path) -> None:
        """Copy the file, with all tables."""
        with create_like(self._path, path) as copy:
            shutil.copyfileobj(self._file, copy, _COPY_BYTES)

    def close(self) -> None:
        self.connection.close()
        self._file.close()  # last: earlier, the system would release this process's lock


def connect(path: Path, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
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
        return duckdb.connect(str(path), read_only=read_only, config=config)
    except duckdb.IOException as error:
        if "Conflicting lock" in str(error):  # else the mount has no locks
            raise _in_use(path) from error
        raise OutputError(f"{sanitize(path)}: {sanitize(error)}", "AE-EXPORT") from error


def log_of(path: Path) -> Path:
    """DuckDB's write-ahead log of a file."""
    return path.with_name(f"{path.name}.wal")


def remove(path: Path) -> None:
    """Remove a file that is not complete, and what DuckDB has put next to it."""
    for each in (path, log_of(path)):
        each.unlink(missing_ok=True)
    shutil.rmtree(path.with_name(f"{path.name}.tmp"), ignore_errors=True)


def _in_use(path: Path) -> OutputError:
    reason = "another process has it open: close it there"
    return OutputError(f"{sanitize(path)}: {reason}", "AE-EXPORT")
