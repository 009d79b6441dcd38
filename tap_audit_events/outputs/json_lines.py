"""A file of JSON Lines: each event's own bytes on one line; compressed or not."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path
from typing import IO, Final

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.outputs.durable import sync
from tap_audit_events.outputs.form import AS_SENT, Form

_COMPRESSION_LEVEL: Final = 1
"""The lowest: a higher one takes several times as long as everything else."""

_GZIP: Final = 16 + zlib.MAX_WBITS

_COPIED_BYTES: Final = 1 << 20


class JsonLinesWriter:
    """Writes a new file.

    Args:
        path: the new file.
        form: the form of the events.
        compressed: whether to compress with gzip; lines behind those of an old file are a separate
            member.
    """

    def __init__(self, path: Path, form: Form = AS_SENT, *, compressed: bool) -> None:
        self._form = form
        self._file: IO[bytes] = path.open("wb")
        # Not a `GzipFile`, which writes once more when it is collected, even after an error.
        self._compressor = zlib.compressobj(_COMPRESSION_LEVEL, wbits=_GZIP) if compressed else None

    def copy(self, old: Path) -> None:
        """Begin with the lines of an old file, which are compressed in the same way."""
        with old.open("rb") as lines:
            shutil.copyfileobj(lines, self._file, _COPIED_BYTES)

    def write(self, page: EventPage) -> None:
        lines = b"\n".join([*self._form.texts(page), b""])
        self._file.write(self._compressor.compress(lines) if self._compressor else lines)

    def finish(self) -> None:
        """Write everything to the disk."""
        if self._compressor:
            self._file.write(self._compressor.flush())
        sync(self._file)
        self._file.close()

    def close(self) -> None:
        """End early; the file is not complete."""
        self._file.close()
