"""RECORD, SCHEMA and STATE lines, and the writer that puts them on stdout."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from singer_sdk.singerlib import Message, StateMessage
from singer_sdk.singerlib.encoding import GenericSingerWriter

from tap_audit_events.errors import OutputError

_BUFFER_BYTES = 1 << 20


class MessageWriter(GenericSingerWriter[bytes, Message]):
    """Writes one message a line, in UTF-8, through a buffer of its own.

    Records wait in the buffer; any other message is flushed with all before it, so that a STATE
    that was written has reached the pipe, and every record before it too.

    Attributes:
        ends_with_state: whether the last line is a STATE.
    """

    def __init__(self) -> None:
        super().__init__()
        self._encode = msgspec.json.Encoder(decimal_format="number").encode
        self._stdout: Any = None
        self._file: BinaryIO | None = None
        self.ends_with_state = False

    def serialize_message(self, message: Message) -> bytes:
        """A message as one line of JSON, every digit of its numbers kept."""
        return self._encode(message.to_dict())

    def write_message(self, message: Message) -> None:
        """Write a message.

        Raises:
            OutputError: the reader has closed the pipe.
        """
        self.ends_with_state = isinstance(message, StateMessage)
        try:
            file = self._output()
            file.write(self.format_message(message) + b"\n")
            if message.type != "RECORD":
                file.flush()
        except BrokenPipeError:
            _abandon_stdout()
            raise OutputError from None

    def _output(self) -> BinaryIO:
        """A file on stdout's descriptor; its buffer where it has none, as under a test runner."""
        if self._file is None or self._stdout is not sys.stdout:
            self._stdout = sys.stdout
            try:
                descriptor = sys.stdout.fileno()
            except OSError:
                self._file = sys.stdout.buffer
            else:
                self._file = open(descriptor, "wb", buffering=_BUFFER_BYTES, closefd=False)  # noqa: SIM115 - kept open for the run
        return self._file


def _abandon_stdout() -> None:
    """Point stdout's descriptor at nothing, so that closing it at exit cannot fail once more."""
    with Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())
