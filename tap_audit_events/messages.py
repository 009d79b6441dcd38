"""RECORD, SCHEMA and STATE lines, and the writer that puts them on stdout."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from singer_sdk.singerlib import Message, SingerMessageType, StateMessage
from singer_sdk.singerlib.encoding import GenericSingerWriter

from tap_audit_events.errors import OutputError

_BUFFER_BYTES: Final = 1 << 20

SMALL_STATE_BYTES: Final = 4096
STATE_INTERVAL_SECONDS: Final = 5.0
STATE_SHARE: Final = 0.1
"""A STATE may be written where it is small, rare, or at most this share of what it stands for."""


class MessageWriter(GenericSingerWriter[bytes, Message]):
    """Writes one message a line, in UTF-8, through a buffer of its own.

    Records wait in the buffer; any other message is flushed with all before it, so that a STATE
    that was written has reached the pipe, and every record before it too.

    Args:
        clock: seconds that go by.

    Attributes:
        ends_with_state: whether the last line is a STATE.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._encode = msgspec.json.Encoder(decimal_format="number").encode
        self._clock = clock
        self._stdout: Any = None
        self._file: BinaryIO | None = None
        self._state_bytes = self._bytes_since_state = 0
        self._state_written_at = clock()
        self.ends_with_state = False

    @property
    def state_is_due(self) -> bool:
        """Whether a STATE costs little now: see `STATE_SHARE`."""
        return (
            self._state_bytes <= max(SMALL_STATE_BYTES, STATE_SHARE * self._bytes_since_state)
            or self._clock() - self._state_written_at >= STATE_INTERVAL_SECONDS
        )

    def serialize_message(self, message: Message) -> bytes:
        """A message as one line of JSON, every digit of its numbers kept."""
        return self._encode(message.to_dict())

    def write_message(self, message: Message) -> None:
        """Write a message.

        Raises:
            OutputError: the reader has closed the pipe.
        """
        line = self.format_message(message) + b"\n"
        self._note(line, is_state=isinstance(message, StateMessage))
        try:
            file = self._output()
            file.write(line)
            if message.type != SingerMessageType.RECORD:
                file.flush()
        except BrokenPipeError:
            _abandon_stdout()
            raise OutputError from None

    def _note(self, line: bytes, *, is_state: bool) -> None:
        self.ends_with_state = is_state
        if is_state:
            self._state_bytes, self._bytes_since_state = len(line), 0
            self._state_written_at = self._clock()
        else:
            self._bytes_since_state += len(line)

    def _output(self) -> BinaryIO:
        """A file on stdout's descriptor; its buffer where it has none, as under a test runner."""
        if self._file is None or self._stdout is not sys.stdout:
            self._stdout = sys.stdout
            try:
                descriptor = sys.stdout.fileno()
            except OSError:
                self._file = sys.stdout.buffer
            else:
                self._file = open(descriptor, "wb", buffering=_BUFFER_BYTES, closefd=False)  # noqa: SIM115 - a descriptor, open for the run
        return self._file


def _abandon_stdout() -> None:
    """Point stdout's descriptor at nothing, so that closing it at exit cannot fail once more."""
    with Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())
