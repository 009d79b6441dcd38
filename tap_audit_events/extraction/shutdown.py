"""Ending a run at a signal."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Lock

from tap_audit_events.errors.exceptions import StoppedError


class Stop:
    """Whether a signal asked to stop; whoever delivers looks, and ends at a place that is whole.

    `ask` is all that a signal handler calls: it sets a flag and ends waits, no more.

    Attributes:
        signal_number: the signal, None as long as there is none.
        news: something comes out whenever whoever delivers, if it waits, should look around.
        alarm: the same for the main thread, where another one delivers.
        in_hand: held while something is delivered that must be whole in the end. Where a signal
            asks to stop, who holds it last writes STATE.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self.news: SimpleQueue[None] = SimpleQueue()  # may be used inside a signal handler
        self.alarm: SimpleQueue[None] = SimpleQueue()
        self.in_hand = Lock()

    def ask(self, signal_number: int) -> None:
        """Note the wish to stop, and wake whoever may wait."""
        self.signal_number = signal_number
        self.news.put(None)
        self.alarm.put(None)

    def check(self) -> None:
        """Go on, or end here.

        Raises:
            StoppedError: a signal asked to stop.
        """
        if self.signal_number is not None:
            raise StoppedError(self.signal_number)
