"""BATCH messages: records in files of JSON Lines instead of RECORD messages on stdout."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from logging import Logger
from pathlib import Path
from typing import IO, Final
from uuid import uuid4

from singer_sdk.helpers._batch import BaseBatchFileEncoding, SDKBatchMessage
from upath import UPath

from tap_audit_events.config.names import PACKAGE
from tap_audit_events.config.sdk_settings import LOCAL, BatchConfig
from tap_audit_events.errors.exceptions import OutputError, sanitize
from tap_audit_events.events.exact_json import JsonText
from tap_audit_events.singer.messages import MessageWriter

MAX_BYTES: Final = 64_000_000
"""A file is full once it has this many bytes before compression; its last page may exceed them."""

_COMPRESSION_LEVEL: Final = 1
"""The lowest: a higher one takes several times as long as everything else that a run does."""

_GZIP: Final = 16 + zlib.MAX_WBITS

_SMALLEST_PIPE: Final = 4096


class BatchFiles:
    """Writes records into files, and a BATCH message for each file that is complete.

    A file is complete when it is full, or before a STATE: so a STATE covers only records that a
    BATCH message before it names. While the run waits for the service, STATE does not wait for a
    full file.
    """

    def __init__(
        self, config: BatchConfig, writer: MessageWriter, *, logger: Logger, page_size: int
    ) -> None:
        self._config = config
        self._writer = writer
        self._logger = logger
        self._page_size = page_size
        self._name = f"{config.storage.prefix}{PACKAGE}-{uuid4()}"
        self._open: dict[str, _BatchFile] = {}
        self._started = self._written = 0
        with _storage_errors(config.storage.root):
            self._root = UPath(config.storage.root, **config.storage.params)
            if config.storage.root.startswith(LOCAL):
                folder = Path(config.storage.root.removeprefix(LOCAL))
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            else:
                self._root.mkdir(parents=True, exist_ok=True)
        _shrink_pipe()

    @property
    def has_open_file(self) -> bool:
        """Whether records were written that no BATCH message names."""
        return bool(self._open)

    @property
    def state_is_due(self) -> bool:
        """Whether an open file may lack room for the next page; without one, the writer decides."""
        if not self._open:
            return self._writer.state_is_due
        return any(file.is_almost_full(self._page_size) for file in self._open.values())

    @property
    def state_is_old(self) -> bool:
        """As `LineWriter.state_is_old`: a file need not be full if no page arrives."""
        return self._writer.state_is_old

    def write_records(self, stream: str, texts: Sequence[JsonText], extracted_at: datetime) -> None:
        """Write records into the stream's file; full files are completed.

        A BATCH message has no time, so `extracted_at` is not used.

        Raises:
            OutputError: a file or a message cannot be written.
        """
        del extracted_at
        while texts:
            file = self._open.get(stream) or self._start(stream)
            count = self._config.batch_size - file.events
            with _storage_errors(file.url):
                file.write(texts[:count])
            texts = texts[count:]
            if file.is_full:
                self._complete(stream)

    def complete(self) -> None:
        """Complete every file, so that a STATE may follow; `OutputError` if that is impossible."""
        for stream in list(self._open):
            self._complete(stream)

    def close(self) -> None:
        """Remove files that an error left incomplete; log which files were written."""
        for file in self._open.values():
            outcome = "removed" if file.remove() else "left behind: remove it"
            self._logger.warning("The incomplete batch file %s is %s", sanitize(file.url), outcome)
        self._open.clear()
        if self._written:
            names = f"{self._config.storage.root}/{self._name}-*"
            self._logger.info("%d batch files written: %s", self._written, sanitize(names, 1000))

    def _start(self, stream: str) -> _BatchFile:
        self._started += 1
        ending = "jsonl.gz" if self._config.encoding.compression == "gzip" else "jsonl"
        name = f"{self._name}-{self._started}.{ending}"
        url = f"{self._config.storage.root}/{name}"
        with _storage_errors(url):
            file = _BatchFile(self._root / name, url, self._config)
        self._open[stream] = file
        return file

    def _complete(self, stream: str) -> None:
        file = self._open[stream]
        with _storage_errors(file.url):
            file.close()
        encoding = BaseBatchFileEncoding("jsonl", self._config.encoding.compression)
        self._writer.write_message(SDKBatchMessage(stream, encoding, [file.url]))
        del self._open[stream]  # after its message: a STATE may follow only then
        self._written += 1
        self._logger.debug("Batch file %s: %d events", file.url, file.events)


class _BatchFile:
    """One file, which is not complete yet."""

    def __init__(self, path: UPath, url: str, config: BatchConfig) -> None:
        self.url = url
        self.events = self._bytes = 0
        self._path = path
        self._most_events = config.batch_size
        self._is_local = config.storage.root.startswith(LOCAL)
        self._file: IO[bytes] = path.open("wb")
        is_compressed = config.encoding.compression == "gzip"
        # Not a `GzipFile`, which writes once more when it is collected, even after an error.
        self._compressor = (
            zlib.compressobj(_COMPRESSION_LEVEL, wbits=_GZIP) if is_compressed else None
        )

    @property
    def is_full(self) -> bool:
        return self.events >= self._most_events or self._bytes >= MAX_BYTES

    def is_almost_full(self, page_size: int) -> bool:
        """Whether another page may not fit."""
        return self.events + page_size > self._most_events or 2 * self._bytes > MAX_BYTES

    def write(self, texts: Sequence[JsonText]) -> None:
        lines = b"\n".join([*texts, b""])
        self._file.write(self._compressor.compress(lines) if self._compressor else lines)
        self.events += len(texts)
        self._bytes += len(lines)

    def close(self) -> None:
        if self._compressor and not self._file.closed:
            self._file.write(self._compressor.flush())
        self._file.close()
        if self._is_local:
            self._path.stat()  # fails if the file, or its folder, has been removed

    def remove(self) -> bool:
        """Remove the file after an error; whether that was possible."""
        with suppress(Exception):  # a full disk refuses the last bytes too
            self._file.close()
        try:
            self._path.unlink(missing_ok=True)
        except Exception:  # noqa: BLE001 - each file system has its own
            return False
        return True


@contextmanager
def _storage_errors(url: str) -> Iterator[None]:
    """Turn each exception into an `OutputError`, as each file system has exceptions of its own."""
    try:
        yield
    except Exception as error:
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        raise OutputError(f"{sanitize(url)}: {sanitize(reason)}", "AE-BATCH-FILE") from error


def _shrink_pipe() -> None:
    """Make the pipe to the target small, so that few files wait for the target.

    BATCH messages are short, so a pipe of the usual size would hold many. Only Linux can change it,
    and only if stdout is a pipe.
    """
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import fcntl  # noqa: PLC0415 - not on each system

        fcntl.fcntl(sys.stdout.fileno(), fcntl.F_SETPIPE_SZ, _SMALLEST_PIPE)
