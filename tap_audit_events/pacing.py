"""When to ask again after a request that failed: what the service asks for, and what is decent."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_RETRY_AFTER_SECONDS: Final = 900.0
"""A service that asks to wait longer ends the run: the next one goes on where it stopped."""

LONGEST_BACKOFF_SECONDS: Final = 60.0

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def retry_after_seconds(header: str | None, *, now: datetime) -> float | None:
    """What a ``Retry-After`` header asks for, as seconds from now (RFC 9110, section 10.2.3).

    Both forms are read: seconds, and an HTTP date, which is 0 where it has passed.

    Args:
        header: the header's text, None where there is none.
        now: the time of the answer, aware; best the service's own, so that clocks need not agree.

    Returns:
        At least 0; None where there is no header or it is in neither form.
    """
    text = (header or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    moment = http_date(text)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def http_date(text: str | None) -> datetime | None:
    """The aware moment of an HTTP date, None where the text is none."""
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def pause_seconds(retry_after: float | None, backoff: float) -> float:
    """How long to wait before asking again: at least what the service asked for."""
    return max(retry_after or 0.0, backoff)
