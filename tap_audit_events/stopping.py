"""Ending a run at a signal."""

from __future__ import annotations

from queue import SimpleQueue

from tap_audit_events.errors import StoppedError


class Stop:
    """Whether a signal asked to stop; the main thread looks, and ends at a place that is whole.

    `ask` is all that a signal handler calls: it sets a flag and wakes the main thread, no more.

    Attributes:
        signal_number: the signal, None as long as there is none.
        news: something comes out whenever the main thread, if it waits, should look around.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self.news: SimpleQueue[None] = SimpleQueue()  # may be used inside a signal handler

    def ask(self, signal_number: int) -> None:
        """Note the wish to stop, and wake the main thread."""
        self.signal_number = signal_number
        self.news.put(None)

    def check(self) -> None:
        """Go on, or end here.

        Raises:
            StoppedError: a signal asked to stop.
        """
        if self.signal_number is not None:
            raise StoppedError(self.signal_number)
