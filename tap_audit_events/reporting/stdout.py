"""Writes lines to stdout through a buffer of its own, and says when a STATE is due."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, BinaryIO, Final, TextIO

from tap_audit_events.config.process import abandon
from tap_audit_events.errors.exceptions import OutputError
from tap_audit_events.errors.redaction import contains_secret, redact_json
from tap_audit_events.events.exact_json import encode

_DIGESTS: Final = frozenset({"ids", "digest", "previous_digest"})
_BUFFER_BYTES: Final = 1 << 16
"""Smaller than most pages, so that these are written without a copy into the buffer."""

SMALL_STATE_BYTES: Final = 4096
STATE_INTERVAL_SECONDS: Final = 5.0
STATE_SHARE: Final = 0.1
"""A STATE is due if the last one has at most `SMALL_STATE_BYTES` or `STATE_SHARE` of the bytes
written since then, or if `STATE_INTERVAL_SECONDS` have passed."""


class LineWriter:
    """Writes lines to the stream that `stdout` returns at that time."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        stdout: Callable[[], TextIO | None] = lambda: sys.stdout,
    ) -> None:
        super().__init__()
        self._clock = clock
        self._find_stdout = stdout
        self._stdout: Any = None
        self._file: BinaryIO | None = None
        self._last_state = b""
        self._bytes_since_state = 0
        self._state_written_at = clock()

    @property
    def state_bytes(self) -> int:
        """The length of the last STATE line."""
        return len(self._last_state)

    @property
    def state_is_due(self) -> bool:
        """Whether a STATE should be written now: see `STATE_SHARE`."""
        return (
            len(self._last_state) <= max(SMALL_STATE_BYTES, STATE_SHARE * self._bytes_since_state)
            or self.state_is_old
        )

    @property
    def state_is_old(self) -> bool:
        """Whether a STATE should be written even while no page arrives."""
        return self._clock() - self._state_written_at >= STATE_INTERVAL_SECONDS

    def _note_state(self, line: bytes) -> None:
        """Note that a STATE is the last line, so that it is not due again at once."""
        self._last_state, self._bytes_since_state = line, 0
        self._state_written_at = self._clock()

    def _write(self, *pieces: bytes, flush: bool = False) -> None:
        self._bytes_since_state += sum(map(len, pieces))
        try:
            file = self._output()
            for piece in pieces:
                file.write(piece)
            if flush:
                file.flush()
        except OSError as error:
            self._abandon_output()
            if isinstance(error, BrokenPipeError):
                raise OutputError from None
            raise OutputError(error.strerror or str(error)) from None

    def _output(self) -> BinaryIO:
        """A file on the descriptor of stdout. In tests, stdout may have none, but has a buffer."""
        stdout = self._find_stdout()
        if self._file is None or self._stdout is not stdout:
            if stdout is None:
                raise OutputError("it is closed")
            self._stdout = stdout
            try:
                descriptor = stdout.fileno()
            except OSError:
                self._file = stdout.buffer
            else:
                os.set_blocking(descriptor, True)  # else a slow reader would cause an error
                self._file = open(descriptor, "wb", buffering=_BUFFER_BYTES, closefd=False)  # noqa: SIM115 - open as long as the run
        return self._file

    def _abandon_output(self) -> None:
        abandon(self._stdout.fileno())


def encoded_state(message: Any) -> bytes:
    """A message with a state as JSON, with each secret masked.

    The digests stay as they are: one may look like a secret, but must not be changed.
    """
    line = encode(message)
    return encode(_redacted(message)) if contains_secret(line.decode()) else line


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            redact_json(name): inner if name in _DIGESTS else _redacted(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_redacted(inner) for inner in value]
    return redact_json(value)
