"""A file of lines, such as JSON Lines or CSV; compressed or not."""

from __future__ import annotations

import gzip
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.outputs.durable import sync
from tap_audit_events.outputs.form import Form
from tap_audit_events.outputs.state_checks import other_columns

_COMPRESSION_LEVEL: Final = 1
"""The lowest: a higher one takes several times as long as everything else."""

_GZIP: Final = 16 + zlib.MAX_WBITS

_COPIED_BYTES: Final = 1 << 20


def json_lines(page: EventPage, form: Form) -> bytes:
    """The JSON of each event on one line."""
    return b"\n".join([*form.texts(page), b""])


class LinesWriter:
    """Writes a new file.

    Args:
        path: the new file.
        lines: the lines of a page's events, with their ends.
        header: the first line, with its end; empty if there is none.
        compressed: whether to compress with gzip; lines behind those of an old file are a separate
            member.
    """

    def __init__(
        self,
        path: Path,
        lines: Callable[[EventPage], bytes],
        *,
        header: bytes = b"",
        compressed: bool,
    ) -> None:
        self._file: IO[bytes] = path.open("wb")
        self._lines = lines
        self._header = self._unwritten = header
        # Not a `GzipFile`, which writes once more when it is collected, even after an error.
        self._compressor = zlib.compressobj(_COMPRESSION_LEVEL, wbits=_GZIP) if compressed else None

    def copy(self, old: Path) -> None:
        """Begin with the lines of an old file, which are compressed in the same way.

        Raises:
            SettingsError: it has another header.
        """
        with gzip.open(old) if self._compressor else old.open("rb") as lines:
            if lines.read(len(self._header)) != self._header:
                raise other_columns(old)
        with old.open("rb") as source:
            shutil.copyfileobj(source, self._file, _COPIED_BYTES)
        self._unwritten = b""

    def write(self, page: EventPage) -> None:
        self._write(self._lines(page))

    def finish(self) -> None:
        """Write everything to the disk."""
        self._write(b"")
        if self._compressor:
            self._file.write(self._compressor.flush())
        sync(self._file)
        self._file.close()

    def close(self) -> None:
        """End early; the file is not complete."""
        self._file.close()

    def _write(self, lines: bytes) -> None:
        data, self._unwritten = self._unwritten + lines, b""
        self._file.write(self._compressor.compress(data) if self._compressor else data)
