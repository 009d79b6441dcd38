"""Turns log records and Python's warnings into LOG messages."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

from tap_audit_events.airbyte.messages import AirbyteWriter, log
from tap_audit_events.errors.exceptions import OutputError
from tap_audit_events.errors.redacted_output import redact_handlers

LOGGER: Final = "source-audit-events"

_LEVELS: Final = (
    (logging.CRITICAL, "FATAL"),
    (logging.ERROR, "ERROR"),
    (logging.WARNING, "WARN"),
    (logging.INFO, "INFO"),
)


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
        with suppress(OutputError):
            self._writer.write(log(_level(record.levelno), record.getMessage(), trace))


def set_up_logging(writer: AirbyteWriter) -> logging.Logger:
    """Send log records of level INFO and above to a writer; return the source's logger."""
    root = logging.getLogger()
    root.handlers[:] = [LogMessages(writer)]
    redact_handlers()
    root.setLevel(logging.INFO)
    logging.captureWarnings(capture=True)
    return logging.getLogger(LOGGER)


def _level(number: int) -> str:
    return next((name for least, name in _LEVELS if number >= least), "DEBUG")
