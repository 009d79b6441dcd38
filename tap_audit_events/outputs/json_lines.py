"""A file of JSON Lines: each event's own bytes on one line; compressed or not."""

from __future__ import annotations

import shutil
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.outputs.durable import sync

_COMPRESSION_LEVEL: Final = 1
"""The lowest: a higher one takes several times as long as everything else."""

_GZIP: Final = 16 + zlib.MAX_WBITS

_COPIED_BYTES: Final = 1 << 20


class JsonLinesWriter:
    """Writes a new file with the lines of an old one, if there is one, and more lines.

    Args:
        path: the new file.
        old: the old file.
        compressed: whether the file is compressed with gzip; new lines are a separate member.
    """

    def __init__(self, path: Path, old: Path | None, *, compressed: bool) -> None:
        self._file: IO[bytes] = path.open("wb")
        if old is not None:
            self._copy(old)
        # Not a `GzipFile`, which writes once more when it is collected, even after an error.
        self._compressor = zlib.compressobj(_COMPRESSION_LEVEL, wbits=_GZIP) if compressed else None

    def write(self, page: EventPage) -> None:
        lines = b"\n".join([*page.raw, b""])
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

    def _copy(self, old: Path) -> None:
        try:
            with old.open("rb") as lines:
                shutil.copyfileobj(lines, self._file, _COPIED_BYTES)
        except BaseException:
            with suppress(Exception):  # a full disk refuses the last bytes too
                self.close()
            raise
