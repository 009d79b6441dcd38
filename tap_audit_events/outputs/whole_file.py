"""A file that becomes visible only when it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from tap_audit_events.outputs.durable import (
    check_is_file,
    create_like,
    output_errors,
    put_in_place,
    resolved,
    sync,
    temporary,
)
from tap_audit_events.outputs.lock import locked


class WholeFile:
    """A file that gets its name when it is complete. Until `close`, no other run may write it.

    Raises:
        SettingsError: the path is something else than a file, such as a device or a pipe; its
            folder does not exist; or another run is writing the file.
        OutputError: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = resolved(path)
        check_is_file(self._path)
        self._new_path = temporary(self._path)
        with ExitStack() as entered:
            entered.enter_context(locked(self._path))
            with output_errors(self._path):
                self._file: IO[bytes] = create_like(self._path, self._new_path)
            self._lock = entered.pop_all()

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines, each without its end."""
        self.write_bytes(b"".join(line + b"\n" for line in lines))

    def write_bytes(self, data: bytes) -> None:
        with output_errors(self._path):
            self._file.write(data)

    def commit(self) -> None:
        """Give the file its final name."""
        with output_errors(self._path):
            sync(self._file)
            self._file.close()
            put_in_place(self._new_path, self._path)

    def close(self) -> None:
        """Remove the file if it was not committed, and release the lock."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._new_path.unlink(missing_ok=True)
        self._lock.close()
