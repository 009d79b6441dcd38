"""The log, the output, the errors and the exit codes of the command."""

from __future__ import annotations

import errno
import logging
import os
import re
import select
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import click

from tap_audit_events.config.process import LEVEL_VARIABLES, STDOUT_ERRORS, abandon
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    OutputError,
    StoppedError,
    defect,
)
from tap_audit_events.errors.redacted_output import redact_handlers
from tap_audit_events.errors.redaction import redact

LOGGER_NAME: Final = "tap_audit_events"

_NOT_SHOWN: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that a terminal obeys instead of showing them: controls, and the order of text."""


def log_to_stderr(environment: Mapping[str, str]) -> None:
    """Write the log to stderr, a line for each record; warnings are marked."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LineFormatter("%(message)s"))
    level = next((environment[name] for name in LEVEL_VARIABLES if environment.get(name)), "INFO")
    logging.getLogger().addHandler(handler)
    redact_handlers()
    logging.getLogger(LOGGER_NAME).setLevel(level.upper())
    logging.captureWarnings(capture=True)


class _LineFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return f"Warning: {text}" if record.levelno == logging.WARNING else text


class ReaderGoneError(Exception):
    """The reader of stdout has closed the pipe, as ``head`` does once it has enough."""


def write_stdout(data: bytes) -> None:
    """Write all data to stdout, even if Python does not buffer stdout or its pipe does not block.

    Raises:
        ReaderGoneError: the reader of stdout has closed the pipe.
        OSError: stdout is closed, or does not accept all data.
    """
    if not sys.stdout:  # closed before the command started
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    try:
        with open(sys.stdout.fileno(), "wb", closefd=False) as file:
            os.set_blocking(file.fileno(), True)  # else it writes only what a pipe has room for
            file.write(data)
    except BrokenPipeError:
        raise ReaderGoneError from None


def write_json_lines(texts: Sequence[bytes]) -> None:
    """Write JSON texts to stdout, one a line; raises what `write_stdout` raises.

    On a terminal, characters that it would obey are escaped, as anybody may have put them into an
    event. They occur only inside strings, so the JSON means the same.
    """
    lines = b"\n".join([*texts, b""])
    if sys.stdout and sys.stdout.isatty():
        lines = _NOT_SHOWN.sub(lambda found: f"\\u{ord(found[0]):04x}", lines.decode()).encode()
    write_stdout(lines)


def check_reader() -> None:
    """Raise `ReaderGoneError` if stdout is a pipe or a socket that its reader has closed."""
    if sys.stdout:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
            raise ReaderGoneError


def write_stderr(*lines: str) -> None:
    """Write lines to stderr, with secrets masked.

    If stderr cannot be written to, the run continues without them.
    """
    with suppress(OSError):
        for line in lines:
            click.echo(redact(line), err=True)


def exit_code_of(error: BaseException) -> int:
    """Write the line of an error to stderr, and return its exit code.

    If the reader of stdout has closed the pipe, that is not an error: no line, and code 0.
    """
    if isinstance(error, ReaderGoneError):
        return 0
    if isinstance(error, AuditEventsError):
        ended = error
    elif isinstance(error, OSError) and error.errno in STDOUT_ERRORS:
        abandon(1)  # else Python fails to flush the rest of the buffer at exit
        ended = OutputError(f"stdout: {error.strerror}", "AE-EXPORT")
    else:
        ended = defect(error)
        write_stderr("".join(traceback.format_exception(error)).rstrip("\n"))
    write_stderr(*lines_of(ended))
    return ended.exit_code


def lines_of(error: AuditEventsError) -> list[str]:
    """The lines of an error, with its notes about the output."""
    notes = getattr(error, "__notes__", [])
    if isinstance(error, StoppedError):  # the usual next step is about a state
        return [" ".join([f"{error.summary}.", *notes])]
    *lines, last = error.lines
    return [*lines, " ".join([last if not notes else f"{last.rstrip('.')}.", *notes])]
