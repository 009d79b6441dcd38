"""The request rate limit (interface.md 8)."""

from collections import deque


class RateLimit:
    """Admits so many requests in any second; below one a second, one in each longer while."""

    def __init__(self, requests_per_second: float) -> None:
        if not requests_per_second > 0:
            raise ValueError("the rate limit is not above 0 requests a second")
        self._requests = max(1, int(requests_per_second))
        self._window_seconds = self._requests / requests_per_second
        self._admitted: deque[float] = deque(maxlen=self._requests)

    def seconds_to_wait(self, now: float) -> float:
        """Admit a request, returning 0, or say in how many seconds the next one can be."""
        if len(self._admitted) == self._requests:
            free_at = self._admitted[0] + self._window_seconds
            if now < free_at:
                return free_at - now
        self._admitted.append(now)
        return 0.0
