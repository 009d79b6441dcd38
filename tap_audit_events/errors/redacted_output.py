"""Masks secrets in log records and on stderr, and shortens long log records.

Events are data: what they contain is written to stdout unchanged.
"""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable
from typing import Final, TextIO

from tap_audit_events.errors.redaction import redact

MAX_RECORD_LENGTH: Final = 20_000
"""Maximum length of a log record, enough for a traceback. Libraries log headers of any size."""


def redact_logs() -> None:
    """Mask the secrets in each log record, and shorten the record, before a handler gets it.

    Also keep urllib3 from logging a traceback for each response with a malformed header line.
    """
    logging.getLogger("urllib3.connection").setLevel(logging.ERROR)
    logging.Handler.handle = _handle_redacted  # type: ignore[method-assign]


def redact_stderr() -> None:
    """Mask the secrets in everything else on stderr: tracebacks, usage errors, prints."""
    if sys.stderr is not None and not isinstance(sys.stderr, _RedactedStream):
        sys.stderr = _RedactedStream(sys.stderr)


_handle: Callable[[logging.Handler, logging.LogRecord], bool] = logging.Handler.handle


def _handle_redacted(self: logging.Handler, record: logging.LogRecord) -> bool:
    try:
        _redact_record(record)
    except Exception:  # noqa: BLE001 - the handler reports a record that cannot be formatted
        record.exc_info = None
    return _handle(self, record)


def _redact_record(record: logging.LogRecord) -> None:
    """Mask the secrets in a record's message, traceback and other attributes; shorten the text."""
    text = record.getMessage()
    if record.exc_info:
        _drop_hidden_contexts(record.exc_info[1])
        text += "\n" + logging.Formatter().formatException(record.exc_info)
    redacted = redact(text)
    if len(redacted) > MAX_RECORD_LENGTH:
        redacted = f"{redacted[:MAX_RECORD_LENGTH]}…"
    if redacted != text:
        record.msg, record.args, record.exc_info, record.exc_text = redacted, None, None, None
    for name, value in list(vars(record).items()):
        if name not in {"msg", "args", "exc_info"}:
            text = str(value)
            redacted = redact(text)
            if redacted != text:
                setattr(record, name, redacted)


def _drop_hidden_contexts(error: BaseException | None) -> None:
    """Drop what ``from None`` hides: a traceback omits it, but the SDK's JSON log shows it."""
    if error is not None:
        if error.__suppress_context__:
            error.__context__ = None
        _drop_hidden_contexts(error.__cause__ or error.__context__)


class _RedactedStream(io.TextIOBase):
    """A text stream that masks the secrets in each text written to it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(redact(text))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base has a plain attribute
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._stream.errors
