"""Retries of one request: how many, and how long to wait before each."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from logging import Logger
from typing import Final

import backoff

from tap_audit_events.errors.exceptions import RetryableError, service_error

MAX_BACKOFF_SECONDS: Final = 60.0
MAX_RETRY_AFTER_SECONDS: Final = 900.0
"""If the service requests a longer wait, there is no retry; the next run resumes from its state."""

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")


class Retries:
    """Counts the retries of one request, at most `most`, and logs each wait."""

    def __init__(self, most: int, logger: Logger) -> None:
        self._most = most
        self._logger = logger
        self._count = 0
        self._backoffs = backoff.expo(max_value=MAX_BACKOFF_SECONDS)
        next(self._backoffs)  # a generator of backoff must be started: its first item is not a wait

    def seconds_before_next(self, error: RetryableError) -> float | None:
        """Seconds to wait before the next retry, or None if no retry is left.

        The backoff is exponential, with full jitter, and at least ``Retry-After``. If no retry
        is left, the number of retries is added to the error. `RefusedError` if the service requests
        a wait of more than `MAX_RETRY_AFTER_SECONDS`.
        """
        requested = error.retry_after_seconds or 0.0
        if requested > MAX_RETRY_AFTER_SECONDS:
            details = f"Retry-After of {requested:.0f} seconds; {error.details}"
            too_long = service_error("AE-RETRY-AFTER", details=details)
            too_long.concerns_token = error.concerns_token
            raise too_long from None
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


def retry_after_seconds(header: str | None, *, now: datetime) -> float | None:
    """The wait that a ``Retry-After`` header requests (RFC 9110, section 10.2.3).

    The header is a number of seconds, or an HTTP date, which is compared with `now`: ideally the
    time of the response, so that the clocks need not agree. If several headers have numbers, the
    largest counts. None if there is no header, or it has neither form.
    """
    text = (header or "").strip()
    numbers = re.split(", *", text)  # headers of the same name are joined
    if all(map(_SECONDS.fullmatch, numbers)):
        return max(map(float, numbers))
    moment = http_date(text)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def http_date(text: str | None) -> datetime | None:
    """The aware time of an HTTP date, None if the text is not a date."""
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
