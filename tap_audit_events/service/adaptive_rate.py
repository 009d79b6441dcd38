"""How many requests may be in flight, and how far apart they start."""

from __future__ import annotations

from math import exp2, inf
from typing import Final

MARGIN: Final = 1.05
"""Factor between the measured spacing and the one used."""

WIDER: Final = 1.25
"""Factor by which a refusal of spaced requests widens the spacing."""

MAX_SPACING_SECONDS: Final = 5.0
"""A service that allows even fewer requests slows the run by its own ``Retry-After``."""

MAX_FIRST_SPACING_SECONDS: Final = 0.2
"""If the first refusal would lead to a wider spacing, requests are not spaced: after few successes
and a long wait, the rate is unknown, as other clients may have used up the quota."""

STEADY_REQUESTS: Final = 60
STEADY_SECONDS: Final = 20.0
"""After a refusal, the spacing is kept for this many requests, but at most this many seconds."""

HALVING_SECONDS: Final = 4.0
"""Afterwards it is halved each time that this many seconds pass without a refusal."""


class AdaptiveRate:
    """Limits how many requests are in flight, and spaces them, according to the refusals.

    The ADR "One rate limiter for each token" has the rules. A period lasts from the end of one wait
    that the service requested to the end of the next one. The number of requests that succeed in
    a period is what the service allows in that time.

    Attributes:
        limit: how many requests may be in flight, for now; its fraction does not count. The
            rate limiter counts them.
        held_until: when requests may start again after a refusal; -inf if there was none.
    """

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self.limit = float((concurrency + 1) // 2)
        self.held_until = self._next_start = -inf
        self._period_start = inf
        self._succeeded = 0  # of the requests started in this period
        self._spacing = 0.0  # after the newest refusal
        self._shrunk = 0.0  # what is left of it after the newest request

    def seconds_to_wait(self, now: float) -> float:
        """Seconds until the next request may start."""
        return max(0.0, self.held_until - now, self._next_start - now)

    def start(self, now: float) -> None:
        self._period_start = min(self._period_start, now)
        kept_until = self.held_until + min(STEADY_REQUESTS * self._spacing, STEADY_SECONDS)
        self._shrunk = self._spacing * exp2(-max(0.0, now - kept_until) / HALVING_SECONDS)
        self._next_start = now + self._shrunk

    def end(self, *, started_at: float, succeeded: bool) -> None:
        if succeeded:
            self.limit = min(self.limit + 1 / self.limit, self._concurrency)
            self._succeeded += started_at >= self.held_until

    def rate_limited(self, now: float, *, started_at: float, seconds: float) -> None:
        """Record status 429 of a request: no request starts for that many seconds.

        Requests that were in flight together and are refused together slow the rate only once.
        """
        if started_at >= self.held_until:
            self.limit = max(1.0, self.limit / 2)
            spacing = self._shrunk * WIDER or self._measured(started_at + seconds)
            self._spacing = min(spacing, MAX_SPACING_SECONDS)
            self._succeeded = 0
        self.held_until = max(self.held_until, now + seconds)
        self._period_start = self._next_start = self.held_until

    def _measured(self, period_end: float) -> float:
        """The spacing at which the successes of this period just fill the period; 0 if unknown."""
        if not self._succeeded:
            return 0.0
        spacing = (period_end - self._period_start) / self._succeeded * MARGIN
        is_first = self.held_until == -inf
        return 0.0 if is_first and spacing > MAX_FIRST_SPACING_SECONDS else spacing
