"""Ends a run at a signal."""

from __future__ import annotations

import os
import signal
from queue import SimpleQueue
from typing import Final

from tap_audit_events.errors.exceptions import StoppedError

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
"""The signals that ask a run to stop."""


class Stop:
    """Whether a signal asked the run to stop.

    `handle` is the signal handler. It only notes the first signal; the main thread checks, and ends
    after a whole line.

    Attributes:
        signal_number: the signal, None as long as there was none.
        wakeups: anything put into it ends the main thread's wait. A `SimpleQueue` may
            be used inside a signal handler.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self.wakeups: SimpleQueue[None] = SimpleQueue()

    def handle_signals(self) -> None:
        """Handle signals from now on."""
        for each in SIGNALS:
            signal.signal(each, self.handle)

    def handle(self, signal_number: int, frame: object) -> None:
        """Handle a signal: ask the run to stop; at a second signal end the process at once.

        The exit code is then 128 + the number of the second signal.
        """
        del frame
        if self.signal_number is not None:
            os._exit(128 + signal_number)
        self.request(signal_number)

    def request(self, signal_number: int) -> None:
        """Note the signal, and end the main thread's wait."""
        self.signal_number = signal_number
        self.wakeups.put(None)

    def check(self) -> None:
        """Raise `StoppedError` if a signal asked the run to stop."""
        if self.signal_number is not None:
            raise StoppedError(self.signal_number)


def ignore_signals() -> None:
    """Ignore further signals: one would change the exit code."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
