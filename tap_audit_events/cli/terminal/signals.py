"""Signals while this process is inside of a library."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tap_audit_events.extraction.shutdown import SIGNALS, Stop


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
