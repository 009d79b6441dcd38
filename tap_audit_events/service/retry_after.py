"""The wait that a service requests before a retry."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

MAX_RETRY_AFTER_SECONDS: Final = 900.0
"""If a service requests more, the run ends; the next run resumes from its state."""

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def retry_after_seconds(header: str | None, *, now: datetime) -> float | None:
    """The wait that a ``Retry-After`` header requests (RFC 9110, section 10.2.3).

    Both forms are accepted: a number of seconds, and an HTTP date. If several numbers came, each in
    a header of its own, the largest counts.

    Args:
        header: the header's text, None if there is none.
        now: the time of the response, aware; best the service's own, so that clocks need not agree.

    Returns:
        Seconds from now: 0 for a date in the past, infinite if the number is too large for a
        float; None if there is no header or it has neither form.
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
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
