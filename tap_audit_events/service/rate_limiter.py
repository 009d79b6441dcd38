"""One rate limiter for all requests with a token, whichever thread sends them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf, isinf

from tap_audit_events.service.adaptive_rate import AdaptiveRate


class ClosedError(Exception):
    """The run is over: no request may be sent any more."""


@dataclass(slots=True)
class Permit:
    """Permit to send one request; after a good response, the caller sets `succeeded`."""

    started_at: float
    succeeded: bool = False


class RequestCounts:
    """Counts the requests of a run, across all its rate limiters: in flight, and in total.

    Attributes:
        on_wait: called when a request begins to wait, as others can be sent meanwhile.
        changed: lock of this object and its limiters; notified when a request ends, and by `close`.
        paused: requests that wait for their own retry.
        waiting: requests that wait because of the limits of their token.
        sent: requests sent so far, retries included.
        request_seconds: time that permits were held, in total.
        retry_wait_seconds: waits before retries, in total, each counted when it begins.
    """

    def __init__(self, limit: int, on_wait: Callable[[], object] = lambda: None) -> None:
        self.limit = limit
        self.on_wait = on_wait
        self.in_flight = self.paused = self.waiting = 0
        self.sent = self.retries = 0
        self.request_seconds = self.retry_wait_seconds = 0.0
        self.changed = threading.Condition()
        self.is_closed = False

    def close(self) -> None:
        """End the run: no more permits are given, and every wait ends with `ClosedError`."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()


class RateLimiter:
    """Limits how many requests are in flight; none during a wait that the service requested.

    It shares `run` with the limiters of other tokens. The limits of the run and of the token are
    checked here alone.
    """

    def __init__(self, run: RequestCounts, clock: Callable[[], float] = time.monotonic) -> None:
        self.run = run
        self.waiting = self._in_flight = 0
        self._rate = AdaptiveRate(run.limit)
        self._clock = clock
        self._changed = run.changed

    @property
    def is_held(self) -> bool:
        """Whether a request with this token waits, or the service has requested a wait."""
        return self.waiting > 0 or self._rate.held_until > self._clock()

    @contextmanager
    def permit(self) -> Iterator[Permit]:
        """Wait until a request may be sent, and count it as in flight for the block.

        `ClosedError` if the run is over.
        """
        with self._changed:
            while not self.run.is_closed and (seconds := self._seconds_to_wait()) > 0:
                self._wait_for_permit(seconds)
            self._check_open()
            permit = Permit(self._clock())
            self._rate.start(permit.started_at)
            self._in_flight += 1
            self.run.in_flight += 1
            self.run.sent += 1
        try:
            yield permit
        finally:
            with self._changed:
                self._in_flight -= 1
                self.run.in_flight -= 1
                self.run.request_seconds += self._clock() - permit.started_at
                self._rate.end(started_at=permit.started_at, succeeded=permit.succeeded)
                self._changed.notify_all()  # `notify` might wake a thread that waits for time

    def rate_limited(self, permit: Permit, seconds: float) -> None:
        """Send no request for that many seconds, and fewer at a time afterwards (status 429)."""
        with self._changed:
            self._rate.rate_limited(self._clock(), started_at=permit.started_at, seconds=seconds)

    def pause(self, seconds: float) -> None:
        """Wait before one request is retried; other requests are sent meanwhile.

        Call it without a permit, which would stay in use during the wait. `ClosedError` if the run
        is over.
        """
        with self._changed:
            self.run.retries += 1
            self.run.retry_wait_seconds += seconds
            end = self._clock() + seconds
            self.run.paused += 1
            self.run.on_wait()
            while not self.run.is_closed and (left := end - self._clock()) > 0:
                self._wait(left)
            self.run.paused -= 1
            self._check_open()

    def count_resend(self) -> None:
        """Count a request that was sent once more within its permit, with another token."""
        with self._changed:
            self.run.sent += 1
            self.run.retries += 1

    def _seconds_to_wait(self) -> float:
        is_full = self.run.in_flight >= self.run.limit
        return inf if is_full else self._seconds_because_of_token()

    def _seconds_because_of_token(self) -> float:
        """Seconds until the token's limits allow a request; infinite if another has to end."""
        is_full = self._in_flight >= int(self._rate.limit)
        return inf if is_full else self._rate.seconds_to_wait(self._clock())

    def _wait_for_permit(self, seconds: float) -> None:
        """Wait; count this as waiting, unless only the limit of the whole run is reached."""
        counts = self._seconds_because_of_token() > 0
        self.waiting += counts
        self.run.waiting += counts
        if counts:
            self.run.on_wait()
        self._wait(seconds)
        self.waiting -= counts
        self.run.waiting -= counts

    def _wait(self, seconds: float) -> None:
        """Wait for a change, at most that many seconds."""
        self._changed.wait(None if isinf(seconds) else seconds)

    def _check_open(self) -> None:
        if self.run.is_closed:
            raise ClosedError
