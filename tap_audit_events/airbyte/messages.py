"""The messages of the Airbyte protocol, and the writer that puts them on stdout."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import Any, Final, TextIO

from tap_audit_events.errors.exceptions import OutputError
from tap_audit_events.events.exact_json import JsonText, encode
from tap_audit_events.events.stream_names import STREAM
from tap_audit_events.reporting.stdout import LineWriter

STREAM_DESCRIPTOR: Final = {"name": STREAM}

Message = dict[str, Any]


def log(level: str, text: str, stack_trace: str | None = None) -> Message:
    """A LOG message."""
    trace = {} if stack_trace is None else {"stack_trace": stack_trace}
    return {"type": "LOG", "log": {"level": level, "message": text} | trace}


def stream_status(status: str, milliseconds: int) -> Message:
    """A TRACE message with the status of the stream: STARTED, RUNNING, COMPLETE or INCOMPLETE."""
    found = {"stream_descriptor": STREAM_DESCRIPTOR, "status": status}
    return _trace("STREAM_STATUS", "stream_status", found, milliseconds)


def error_trace(
    text: str, failure_type: str, milliseconds: int, *, stack_trace: str | None = None
) -> Message:
    """A TRACE message for the error that ended the run."""
    error = {"message": text, "failure_type": failure_type, "stream_descriptor": STREAM_DESCRIPTOR}
    trace = {} if stack_trace is None else {"stack_trace": stack_trace}
    return _trace("ERROR", "error", error | trace, milliseconds)


def stream_state(value: Mapping[str, Any], record_count: int) -> Message:
    """A STATE message, with the number of records since the last one."""
    stream = {"stream_descriptor": STREAM_DESCRIPTOR, "stream_state": value}
    stats = {"recordCount": record_count}
    return {"type": "STATE", "state": {"type": "STREAM", "stream": stream, "sourceStats": stats}}


def _trace(kind: str, name: str, content: Mapping[str, Any], milliseconds: int) -> Message:
    return {"type": "TRACE", "trace": {"type": kind, "emitted_at": milliseconds, name: content}}


class AirbyteWriter(LineWriter):
    """Writes one message per line.

    Pass None as `stdout` if stdout is closed: writing a message then raises `OutputError`.

    Records are buffered. Every other message flushes the buffer: once a STATE is written, the STATE
    and every record before it are in the pipe. Worker threads write LOG messages, so each call
    holds a lock.

    Attributes:
        record_count: records since the last STATE.
    """

    def __init__(self, stdout: TextIO | None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock, lambda: stdout)
        self._lock = RLock()
        self._failed: OutputError | None = None
        self.record_count = 0
        self._last_value: Mapping[str, Any] | None = None

    def write(self, message: Message) -> None:
        """Write a message that is neither RECORD nor STATE.

        Raises:
            OutputError: it cannot be written, for example because the reader closed the pipe.
        """
        self._write(encode(message) + b"\n", flush=True)

    def write_records(self, texts: Sequence[JsonText], milliseconds: int) -> None:
        """Write a RECORD for each event's text.

        The whole event is written, even if the catalog selects only some of its fields: Airbyte
        and its destinations remove the others themselves.

        Args:
            texts: JSON objects, each on one line.
            milliseconds: the time when they were read, in milliseconds since 1970.

        Raises:
            OutputError: as `write`.
        """
        if texts:
            begin = b'{"type":"RECORD","record":{"stream":%b,"data":' % encode(STREAM)
            end = b',"emitted_at":%d}}\n' % milliseconds
            self._write(begin, (end + begin).join(texts), end)
            self.record_count += len(texts)

    def write_state(self, value: Mapping[str, Any]) -> None:
        """Write a STATE for all records written so far, unless nothing is new since the last.

        Raises:
            OutputError: as `write`.
        """
        if value == self._last_value and not self.record_count:
            return
        line = encode(stream_state(value, self.record_count)) + b"\n"
        with self._lock:
            self._write(line, flush=True)
            self._note_state(line)
        self._last_value, self.record_count = value, 0

    def _write(self, *pieces: bytes, flush: bool = False) -> None:
        """Write to stdout. Once a call has failed, every further call fails.

        Otherwise a run could continue although another thread could not write its LOG message.
        """
        with self._lock:
            if self._failed is not None:
                raise self._failed
            try:
                super()._write(*pieces, flush=flush)
            except OutputError as error:
                self._failed = error
                raise
