"""Retries of one request: which errors, how often, and how long to wait before each."""

from __future__ import annotations

from logging import Logger
from typing import Final

import backoff

from tap_audit_events.errors.exceptions import RetryableError, service_error
from tap_audit_events.service.retry_after import MAX_RETRY_AFTER_SECONDS

MAX_BACKOFF_SECONDS: Final = 60.0


class Retries:
    """Counts the retries of one request, `most` at most, and logs each wait."""

    def __init__(self, most: int, logger: Logger) -> None:
        self._most = most
        self._logger = logger
        self._count = 0
        self._backoffs = backoff.expo(max_value=MAX_BACKOFF_SECONDS)
        next(self._backoffs)  # backoff's generators yield nothing first

    def seconds_before_next(self, error: RetryableError) -> float | None:
        """Seconds to wait before the next retry, or None if no retry is left.

        It is at least what ``Retry-After`` says; without it exponential, with full jitter. If no
        retry is left, the number of retries is added to the error.

        Raises:
            RefusedError: the service wants a wait of more than `MAX_RETRY_AFTER_SECONDS`.
        """
        requested = error.retry_after_seconds or 0.0
        if requested > MAX_RETRY_AFTER_SECONDS:
            raise service_error(
                "AE-RETRY-AFTER", details=f"Retry-After of {requested:.0f} seconds; {error.details}"
            ) from None
        if self._count >= self._most:
            noun = "retry" if self._count == 1 else "retries"
            error.details += f"; gave up after {self._count} {noun}" if self._count else ""
            return None
        self._count += 1
        seconds: float = max(requested, backoff.full_jitter(next(self._backoffs)))
        self._logger.warning(
            "Retry %d of %d in %.1f s: %s", self._count, self._most, seconds, error.summary
        )
        return seconds
