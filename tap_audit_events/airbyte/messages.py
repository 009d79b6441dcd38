"""The messages of the Airbyte protocol, the writer that puts them on stdout, and the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import RLock
from typing import Any, Final, TextIO

from tap_audit_events.errors.exceptions import OutputError
from tap_audit_events.errors.redacted_output import redact_handlers
from tap_audit_events.events.exact_json import JsonText, encode
from tap_audit_events.events.stream_names import STREAM
from tap_audit_events.reporting.stdout import LineWriter, encoded_state

STREAM_DESCRIPTOR: Final = {"name": STREAM}
LOGGER: Final = "source-audit-events"
_LEVELS: Final = {"CRITICAL": "FATAL", "ERROR": "ERROR", "WARNING": "WARN", "INFO": "INFO"}

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
    """Writes one message per line; without a `stdout`, or if it fails, raises `OutputError`.

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
        """Write a message that is neither RECORD nor STATE."""
        self._write(encode(message) + b"\n", flush=True)

    def write_records(self, texts: Sequence[JsonText], milliseconds: int) -> None:
        """Write a RECORD for each event's text, which was read at a time since 1970.

        The whole event is written, even if the catalog selects only some of its fields: Airbyte
        and its destinations remove the others themselves.
        """
        if texts:
            begin = b'{"type":"RECORD","record":{"stream":%b,"data":' % encode(STREAM)
            end = b',"emitted_at":%d}}\n' % milliseconds
            self._write(begin, (end + begin).join(texts), end)
            self.record_count += len(texts)

    def write_state(self, value: Mapping[str, Any]) -> None:
        """Write a STATE for all records written so far, unless nothing is new since the last."""
        if value == self._last_value and not self.record_count:
            return
        line = encoded_state(stream_state(value, self.record_count)) + b"\n"
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


class LogMessages(logging.Handler):
    """Writes each log record as a LOG message."""

    def __init__(self, writer: AirbyteWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record. If stdout cannot be written to, the next message says so."""
        trace = None
        if record.exc_info:
            trace = logging.Formatter().formatException(record.exc_info)
        level = _LEVELS.get(record.levelname, "DEBUG")
        with suppress(OutputError):
            self._writer.write(log(level, record.getMessage(), trace))


def set_up_logging(writer: AirbyteWriter) -> logging.Logger:
    """Send log records of level INFO and above to a writer; return the source's logger."""
    root = logging.getLogger()
    root.handlers[:] = [LogMessages(writer)]
    redact_handlers()
    root.setLevel(logging.INFO)
    logging.captureWarnings(capture=True)
    return logging.getLogger(LOGGER)
