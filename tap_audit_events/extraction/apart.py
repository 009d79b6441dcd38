"""Work in a thread of its own, while the main thread attends to signals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty
from typing import Final

from tap_audit_events.extraction.shutdown import Stop

IDLE_SECONDS: Final = 1.0
"""How often the main thread looks around."""


def run_apart(work: Callable[[], object], stop: Stop, idle: Callable[[], object]) -> None:
    """Do some work that may wait for the service, and end at once where a signal asks to stop.

    Signal handlers run in the main thread only, and what waits for the network cannot be left
    without an error that might strike anywhere. So another thread does the work. Where a signal
    asks to stop, it finishes what is in hand; then it is left to itself, with `stop.in_hand` taken
    from it for good, and ends with the process.

    Args:
        work: holds `stop.in_hand` while it does what must be whole in the end.
        stop: tells when to stop.
        idle: called now and then while nothing is in hand.

    Raises:
        StoppedError: a signal asked to stop.
        Exception: what ended the work.
    """
    ended: list[BaseException | None] = []

    def body() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again by the main thread
            ended.append(error)
        else:
            ended.append(None)
        stop.alarm.put(None)

    threading.Thread(target=body, daemon=True).start()
    try:
        while not ended and stop.signal_number is None:
            try:
                stop.alarm.get(timeout=IDLE_SECONDS)
            except Empty:
                if stop.in_hand.acquire(blocking=False):
                    try:
                        idle()
                    finally:
                        stop.in_hand.release()
    finally:
        while not ended and not stop.in_hand.acquire(timeout=IDLE_SECONDS):
            """What is in hand is not whole yet: perhaps the pipe is full."""
    if ended and ended[0] is not None:
        raise ended[0]
    stop.check()
