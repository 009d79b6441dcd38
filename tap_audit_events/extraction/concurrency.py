"""How many requests in flight gain time, given how long responses and delivery take."""

from __future__ import annotations

from collections import deque
from typing import Final

_RESPONSES: Final = 16
"""Responses that tell how long one takes."""

_SMOOTHING: Final = 0.2
"""Weight of the newest page in the average of the delivery."""


class ConcurrencyEstimator:
    """Estimates the pages that may be on their way or ready without waiting for each other.

    While one request waits for its response, other pages can be read and delivered: as many as fit
    into that time. More requests than that only get in each other's way, as with a service that
    responds at once. The first request is sent alone.

    Attributes:
        most_in_flight: requests in flight and ready pages at most, at least 1.
    """

    def __init__(self) -> None:
        self.most_in_flight = 1
        self._waits: deque[float] = deque(maxlen=_RESPONSES)
        self._parse_seconds = 0.0
        self._deliver_seconds = 0.0

    def received(self, seconds: float, processor_seconds: float) -> None:
        """Take in how long a page took, and how much of that the processor worked for it."""
        self._waits.append(max(0.0, seconds - processor_seconds))
        self._parse_seconds = _average(self._parse_seconds, processor_seconds)
        self._estimate()

    def delivered(self, seconds: float) -> None:
        """Take in how long it took to deliver a page."""
        self._deliver_seconds = _average(self._deliver_seconds, seconds)
        self._estimate()

    def _estimate(self) -> None:
        if not self._waits:
            return
        wait = sorted(self._waits)[len(self._waits) // 4]  # a retry or a busy processor is slower
        page_seconds = max(self._parse_seconds, 1e-6) + self._deliver_seconds
        self.most_in_flight = max(1, int(min(wait / page_seconds, 1e6)))


def _average(average: float, newest: float) -> float:
    return newest if not average else average + _SMOOTHING * (newest - average)
