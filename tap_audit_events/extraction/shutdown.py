"""Ends a run at a signal."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

    def wait(self, seconds: float) -> None:
        """Wait in the main thread, at most until a signal, which raises `StoppedError`."""
        with interrupting(self):
            time.sleep(seconds)

    @contextmanager
    def grace(self, seconds: float) -> Iterator[None]:
        """Within the ``with`` block, in the main thread, a signal does not interrupt at once.

        If the block has not ended so many seconds after the signal, `StoppedError` is raised.
        """

        def expire(*_: object) -> None:
            self.check()

        def handle(signal_number: int, frame: object) -> None:
            is_first = self.signal_number is None
            self.handle(signal_number, frame)
            if is_first:
                signal.setitimer(signal.ITIMER_REAL, seconds)

        before = {each: signal.signal(each, handle) for each in SIGNALS}
        before[signal.SIGALRM] = signal.signal(signal.SIGALRM, expire)
        if self.signal_number is not None:
            left = seconds - (self._clock() - self._requested_at)
            signal.setitimer(signal.ITIMER_REAL, max(left, ONE_REQUEST_SECONDS))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for each, handler in before.items():
                signal.signal(each, handler)


@contextmanager
def interrupting(stop: Stop) -> Iterator[None]:
    """Within the ``with`` block, the first signal raises `StoppedError`, even inside a library.

    Only for code that may be interrupted anywhere, such as a long query.
    """

    def handle(signal_number: int, frame: object) -> None:
        was_stopping = stop.signal_number is not None
        stop.handle(signal_number, frame)
        if not was_stopping:
            stop.check()

    stop.check()
    before = {each: signal.signal(each, handle) for each in SIGNALS}
    try:
        yield
    except Exception:
        stop.check()  # a library may have raised another error because of the signal
        raise
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def ignore_signals() -> None:
    """Ignore further signals: one would change the exit code."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
