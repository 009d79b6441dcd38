"""Ending a run at a signal: the wish to stop, and reading ahead that it cuts short."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import TypeVar

from tap_audit_events.errors import StoppedError

_Item = TypeVar("_Item")
_Outcome = Callable[[], _Item | None]
"""Gives what was read, None at the end, or raises what went wrong."""


class Stop:
    """Whether a signal asked to stop; the main thread looks, and ends at a place that is whole.

    `ask` is all that a signal handler calls: it sets a flag and wakes the main thread, no more.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self._wake_ups: list[SimpleQueue[Callable[[], None]]] = []

    def ask(self, signal_number: int) -> None:
        """Note the wish to stop, and end the wait of `ahead`."""
        self.signal_number = signal_number
        for queue in self._wake_ups:
            queue.put(self.check)  # SimpleQueue may be used inside a signal handler

    def check(self) -> None:
        """Go on, or end here.

        Raises:
            StoppedError: a signal asked to stop.
        """
        if self.signal_number is not None:
            raise StoppedError(self.signal_number)

    def ahead(self, items: Iterator[_Item], *, most: int) -> Iterator[_Item]:
        """The same items, read by a thread of their own while those before them are used.

        Where a signal asks to stop, the thread is left to itself; it ends with the process.

        Args:
            items: what takes long to read.
            most: items that may have been read and not been done with, the one in use included.

        Raises:
            StoppedError: a signal asked to stop.
            Exception: what reading raises, after the items read before it.
        """
        outcomes: SimpleQueue[_Outcome[_Item]] = SimpleQueue()
        room = threading.Semaphore(most)
        self._wake_ups = [outcomes]  # type: ignore[list-item]  # `check` ends without an outcome
        self.check()
        reader = threading.Thread(target=_read, args=(items, outcomes, room), daemon=True)
        reader.start()
        while (item := outcomes.get()()) is not None:
            yield item
            room.release()


def _read(
    items: Iterator[_Item], outcomes: SimpleQueue[_Outcome[_Item]], room: threading.Semaphore
) -> None:
    try:
        while room.acquire() and (item := next(items, None)) is not None:
            outcomes.put(lambda item=item: item)  # type: ignore[misc]  # bound now, not later
    except Exception as error:  # noqa: BLE001 - raised again where the items are used
        outcomes.put(_raising(error))
    else:
        outcomes.put(lambda: None)


def _raising(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail
