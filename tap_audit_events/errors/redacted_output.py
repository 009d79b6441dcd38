"""Masks secrets in log records and in the tracebacks that Python prints.

Events are data: what they contain is written to stdout unchanged.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tap_audit_events.errors.redaction import redact

if TYPE_CHECKING:
    from types import TracebackType

MAX_RECORD_LENGTH: Final = 20_000
"""Maximum length of a log record, enough for a traceback. Libraries log headers of any size."""


def redact_record(record: logging.LogRecord) -> bool:
    """A filter that masks the secrets in a log record, shortens it, and lets it pass."""
    text = shown = _text_of(record)
    if record.exc_info:
        text += "\n" + logging.Formatter().formatException(record.exc_info)
        # The SDK's JSON log also shows what `from None` hides.
        shown = "\n".join([text, *map(str, _chain(record.exc_info[1]))])
    if redact(shown) != shown or len(text) > MAX_RECORD_LENGTH:
        text = redact(text)
        short = text if len(text) <= MAX_RECORD_LENGTH else f"{text[:MAX_RECORD_LENGTH]}…"
        record.msg, record.args, record.exc_info, record.exc_text = short, None, None, None
    for name in vars(record).keys() - {"msg", "args", "exc_info"}:
        text = str(getattr(record, name))
        if redact(text) != text:
            setattr(record, name, redact(text))
    return True


def redact_handlers() -> None:
    """Mask the secrets in every log record of a command, whichever library creates it.

    Call it after the command has set up its log. Also keep urllib3 from logging a traceback for
    each response with a malformed header line.
    """
    logging.getLogger("urllib3.connection").setLevel(logging.ERROR)
    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        for handler in getattr(logger, "handlers", ()):
            handler.addFilter(redact_record)


def print_redacted(
    kind: type[BaseException], error: BaseException, frames: TracebackType | None
) -> None:
    """Print an exception to stderr with the secrets masked: the `sys.excepthook` of a command."""
    sys.stderr.write(redact("".join(traceback.format_exception(kind, error, frames))))


def _text_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - the handler would print the arguments to stderr
        record.msg, record.args = f"{record.msg} {record.args}", None
        return str(record.msg)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
