"""A progress bar on a terminal, with the log lines above it."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, TextIO

from tap_audit_events.config.process import runs_under_meltano

_WIDTH: Final = 20
_CLEAR_LINE: Final = "\r\x1b[K"


def should_show_bar(environment: Mapping[str, str]) -> bool:
    """Whether the tap shows a bar: if stderr can draw it, and stdout is not a terminal too."""
    return can_draw_bar(environment) and not (sys.stdout is not None and sys.stdout.isatty())


def can_draw_bar(environment: Mapping[str, str]) -> bool:
    """Whether stderr is a terminal that can draw a bar.

    Never under Meltano, which prefixes each line.
    """
    return (
        sys.stderr is not None
        and sys.stderr.isatty()
        and environment.get("TERM") != "dumb"
        and not runs_under_meltano(environment)
    )


class ProgressBar:
    """A progress bar on the last line of a terminal. Until `close`, log lines are written above it.

    For this, log handlers write to the bar instead of the terminal.
    """

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._lock = threading.Lock()  # any thread may log
        self._line = ""
        self._handlers = [
            handler
            for handler in logging.getLogger().handlers
            if isinstance(handler, logging.StreamHandler) and handler.stream is terminal
        ]
        for handler in self._handlers:
            handler.setStream(self)

    def draw(self, share: float, text: str) -> None:
        """Show the share that is done, 0 to 1, and a text; all cut to the width of the terminal."""
        with self._lock, suppress(OSError):  # a closed terminal must not end the run
            columns = os.get_terminal_size(self._terminal.fileno()).columns or 80
            line = f"[{'#' * int(share * _WIDTH):-<{_WIDTH}}]  {int(share * 100):3}%  {text}"
            self._line = line[: columns - 1]
            self._replace_line(self._line)

    def write(self, text: str) -> None:
        """Write whole lines, then the bar below them."""
        with self._lock:
            self._replace_line(text + self._line)

    def flush(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        """Remove the bar; log handlers write to the terminal again."""
        for handler in self._handlers:
            handler.setStream(self._terminal)
        with self._lock, suppress(OSError):
            self._replace_line("")

    def _replace_line(self, text: str) -> None:
        self._terminal.write(_CLEAR_LINE + text)
        self._terminal.flush()
