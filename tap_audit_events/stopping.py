"""Ending a run at a signal: the wish to stop, and calls whose waiting it cuts short."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from tap_audit_events.errors import StoppedError

_Result = TypeVar("_Result")


class Stop:
    """Whether a signal asked to stop; the main thread looks, and ends at a place that is whole.

    `ask` is all that a signal handler calls: it sets a flag and wakes the main thread, no more.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self._calls: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._results: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def ask(self, signal_number: int) -> None:
        """Note the wish to stop, and end a `call` that is waited for."""
        self.signal_number = signal_number
        self._results.put(self.check)  # SimpleQueue may be used inside a signal handler

    def check(self) -> None:
        """Go on, or end here.

        Raises:
            StoppedError: a signal asked to stop.
        """
        if self.signal_number is not None:
            raise StoppedError(self.signal_number)

    def call(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Call a function that may take long, in a thread of its own, and wait for its result.

        Where a signal asks to stop meanwhile, the call is left to itself.

        Raises:
            StoppedError: a signal asked to stop.
            Exception: whatever the function raises.
        """
        self.check()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="requests", daemon=True)
            self._thread.start()
        self._calls.put(lambda: function(*arguments))
        result: _Result = self._results.get()()
        return result

    def _work(self) -> None:
        while True:
            self._results.put(_outcome(self._calls.get()))


def _outcome(call: Callable[[], _Result]) -> Callable[[], _Result]:
    """Make a call now; what comes back gives its result, or raises its error, when it is called."""
    try:
        result = call()
    except Exception as error:  # noqa: BLE001 - raised again where the result is taken
        failure = error

        def fail() -> _Result:
            raise failure

        return fail
    return lambda: result
