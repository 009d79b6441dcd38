"""The gate that every request goes through, whichever thread sends it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isinf

from tap_audit_events.service.adaptive_rate import Pace


class ClosedError(Exception):
    """The run is over: nothing is to be sent any more."""


@dataclass(slots=True)
class Turn:
    """A request's leave to be sent.

    Attributes:
        started_at: when it was given, on the gate's clock.
        is_good: set where the reply was a good one.
    """

    started_at: float
    is_good: bool = False


class Gate:
    """Holds requests back: so many at a time, none while the service wants none.

    Args:
        most: requests under way at most.
        clock: seconds that go by.

    Attributes:
        requests: sent so far.
        retries: of them, those that were sent again.
        request_seconds: how long they took, added up.
        waited_seconds: how long requests were put off after failures, added up.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.requests = self.retries = 0
        self.request_seconds = self.waited_seconds = 0.0
        self._pace = Pace(most)
        self._clock = clock
        self._changed = threading.Condition()
        self._is_closed = False

    @contextmanager
    def turn(self, begun: Turn | None = None) -> Iterator[Turn]:
        """Wait until a request may be sent, and count it as under way for the block.

        Args:
            begun: the turn of a request that was sent already.

        Raises:
            ClosedError: the run is over.
        """
        turn = begun or self._wait_for_turn()
        try:
            yield turn
        finally:
            self.end(turn)

    def turn_at_once(self) -> Turn | None:
        """Count a request as under way that may be sent now; None where it would have to wait.

        Whoever takes it goes through `turn` with it, or ends it.
        """
        with self._changed:
            if self._is_closed or self._pace.seconds_to_wait(self._clock()) > 0:
                return None
            return self._start()

    def end(self, turn: Turn) -> None:
        """The request is over."""
        with self._changed:
            self.request_seconds += self._clock() - turn.started_at
            self._pace.end(good=turn.is_good)
            self._changed.notify_all()  # one of them waits for time, perhaps

    def hold(self, turn: Turn, seconds: float) -> None:
        """The service refused a request for its rate: no request is sent for so long."""
        with self._changed:
            self._count_retry(seconds)
            self._pace.hold(self._clock(), started_at=turn.started_at, seconds=seconds)

    def pause(self, seconds: float) -> None:
        """Let time go by before one request is sent again.

        Raises:
            ClosedError: the run is over.
        """
        with self._changed:
            self._count_retry(seconds)
            until = self._clock() + seconds
            while (left := until - self._clock()) > 0:
                self._wait(left)

    def sent_again(self) -> None:
        """A request was sent once more within its turn, with another token."""
        with self._changed:
            self.requests += 1
            self.retries += 1

    def close(self) -> None:
        """Send nothing any more, and end every wait."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _wait_for_turn(self) -> Turn:
        with self._changed:
            while (seconds := self._pace.seconds_to_wait(self._clock())) > 0:
                self._wait(seconds)
            self._check()
            return self._start()

    def _start(self) -> Turn:
        turn = Turn(self._clock())
        self._pace.start(turn.started_at)
        self.requests += 1
        self._changed.notify_all()  # perhaps one more may
        return turn

    def _count_retry(self, seconds: float) -> None:
        self.retries += 1
        self.waited_seconds += seconds

    def _wait(self, seconds: float) -> None:
        self._check()
        self._changed.wait(None if isinf(seconds) else seconds)
        self._check()

    def _check(self) -> None:
        if self._is_closed:
            raise ClosedError
