"""Ends a run at a signal."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from tap_audit_events.errors.exceptions import StoppedError

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
"""The signals that ask a run to stop."""

ONE_REQUEST_SECONDS: Final = 0.1
"""Signals within this time count as one: `timeout` sends its signal to the process and to its
group, and a program that passes Ctrl-C on sends what the terminal has sent already."""


class Stop:
    """Whether a signal asked the run to stop; the main thread checks, and ends after a whole line.

    Attributes:
        signal_number: the signal, None as long as there was none.
        wakeups: anything put into it ends the main thread's wait. A `SimpleQueue` may
            be used inside a signal handler.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._requested_at = 0.0
        self.signal_number: int | None = None
        self.wakeups: SimpleQueue[None] = SimpleQueue()

    def handle_signals(self) -> None:
        for each in SIGNALS:
            signal.signal(each, self.handle)

    def handle(self, signal_number: int, _: object) -> None:
        """Handle a signal: ask the run to stop; at a second signal end the process at once.

        The exit code is then 128 + the number of the second signal. A signal within
        `ONE_REQUEST_SECONDS` of the first is not a second one.
        """
        if self.signal_number is None:
            self.request(signal_number)
        elif self._clock() - self._requested_at > ONE_REQUEST_SECONDS:
            os._exit(128 + signal_number)

    def request(self, signal_number: int) -> None:
        """Note the signal, and end the main thread's wait."""
        self._requested_at = self._clock()  # first: the handler may be called again in between
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
