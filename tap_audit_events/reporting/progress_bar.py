"""A progress bar on a terminal, which log lines pass above."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, TextIO

import click

_STEPS: Final = 1000
_WIDTH: Final = 20
_BESIDE_TEXT: Final = _WIDTH + len("[]   100%  ")
_CLEAR_LINE: Final = "\r\x1b[K"


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether somebody watches: stderr is a terminal that can draw, stdout none, no Meltano."""
    return (
        sys.stderr is not None
        and sys.stderr.isatty()
        and not (sys.stdout is not None and sys.stdout.isatty())
        and environment.get("TERM") != "dumb"
        and not any(name.startswith("MELTANO_") for name in environment)
    )


class Bar:
    """The last line of a terminal; from its making until `close`, what is logged goes above it.

    Args:
        terminal: where logs go, too.
    """

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._lock = threading.Lock()  # any thread may log
        self._line = ""
        self._bar: click._termui_impl.ProgressBar[str] = click.progressbar(
            length=_STEPS,
            file=terminal,
            width=_WIDTH,
            show_eta=False,
            item_show_func=lambda text: text,
            bar_template="[%(bar)s]  %(info)s",
        )
        self._handlers = [
            handler
            for handler in logging.getLogger().handlers
            if isinstance(handler, logging.StreamHandler) and handler.stream is terminal
        ]
        for handler in self._handlers:
            handler.setStream(_Above(self))

    def draw(self, share: float, text: str) -> None:
        """Show how much is done, 0 to 1, and a text as far as it fits."""
        with self._lock, suppress(OSError):  # a terminal that has gone ends no run
            columns = os.get_terminal_size(self._terminal.fileno()).columns or 80
            self._bar.pos = round(share * _STEPS)
            self._bar.current_item = text[: max(0, columns - _BESIDE_TEXT - 1)]
            self._line = self._bar.format_progress_line()
            self._write(self._line)

    def write_above(self, text: str) -> None:
        """Write whole lines, and the bar below them again."""
        with self._lock:
            self._write(text + self._line)

    def close(self) -> None:
        """Wipe it out; logs go where they went before."""
        for handler in self._handlers:
            handler.setStream(self._terminal)
        with self._lock, suppress(OSError):
            self._write("")

    def _write(self, text: str) -> None:
        self._terminal.write(_CLEAR_LINE + text)
        self._terminal.flush()


class _Above:
    """What a log handler writes to as long as there is a bar."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar

    def write(self, text: str) -> None:
        self._bar.write_above(text)

    def flush(self) -> None:
        """Nothing waits."""
