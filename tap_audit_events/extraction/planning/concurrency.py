"""How many requests in flight gain time, given how long responses and delivery take."""

from __future__ import annotations

from collections import deque
from typing import Final

_PAGES: Final = 16
"""The times of this many of the newest pages are used."""

NEAR_SECONDS: Final = 0.015
"""After a first response that took less, the second request is sent alone too: a run of a few pages
from a near service should cost no request for windows."""


class ConcurrencyEstimator:
    """Estimates how many requests in flight gain time.

    While one page is read or delivered, others can wait for their response: as many as fit into
    the time that a response takes. More requests would only compete for the processor, as with a
    service that responds at once. The first request is sent alone; if its response is quick, so is
    the second. By then the window is not cut any more, so a near service is read sequentially.
    """

    def __init__(self) -> None:
        self._waits: deque[float] = deque(maxlen=_PAGES)
        self._parses: deque[float] = deque(maxlen=_PAGES)
        self._deliveries: deque[float] = deque(maxlen=_PAGES)

    def received(self, seconds: float, processor_seconds: float) -> None:
        """Record how long a page took, and how much of that was processor time."""
        self._waits.append(max(0.0, seconds - processor_seconds))
        self._parses.append(processor_seconds)

    def waited(self, seconds: float) -> None:
        """Record that no page has arrived for so long: before the first one, that is a long time.

        Otherwise one organization that hangs would hold up all others.
        """
        if not self._waits:
            self._waits.append(seconds)

    def delivered(self, seconds: float) -> None:
        self._deliveries.append(seconds)

    @property
    def most_in_flight(self) -> int:
        """Requests in flight that gain time, at least 1."""
        if len(self._waits) == 1 and self._waits[0] < NEAR_SECONDS:
            return 1
        page_seconds = max(_typical(self._parses), 1e-6) + _typical(self._deliveries)
        return 1 + round(_typical(self._waits) / page_seconds)


def _typical(seconds: deque[float]) -> float:
    """The lower quartile: retries, a busy processor or a target's commits prolong some times."""
    ordered = sorted(seconds)  # a copy, as another thread may add times
    return ordered[len(ordered) // 4] if ordered else 0.0
