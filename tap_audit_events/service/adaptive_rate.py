"""When to ask: how many requests at a time, how soon after each other, how long after a failure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf
from typing import Final

LONGEST_RETRY_AFTER_SECONDS: Final = 900.0
"""A service that asks to wait longer ends the run: the next one goes on where it stopped."""

LONGEST_BACKOFF_SECONDS: Final = 60.0

GOOD_RUN: Final = 20
"""Good replies in a row after which a little more is tried."""

FIRST_GOOD_RUN: Final = 1
"""The same as long as the service has refused nothing: as soon as an export can use it."""

LONGEST_GOOD_RUN: Final = 320
"""Good replies in a row after which requests come closer again, at most."""

LONGEST_SPACING_SECONDS: Final = 10.0

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


class Pace:
    """How many requests may be under way, and when the next may start.

    The number begins at half of the most, grows by one after each run of good replies, and is
    halved when the service refuses one for its rate (additive increase, multiplicative decrease).

    Where replies come fast, even one at a time may be too many: requests are spaced too, at first
    a tenth wider than by what the service took before it refused. After a good run they come a
    tenth closer; where that is refused they move apart again, and the next try needs a run twice
    as long. So a steady limit is met, and tried less and less. Those refused together count once.

    Args:
        most: requests under way at most.

    Attributes:
        limit: requests under way at most, for now.
        under_way: requests under way.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.limit = (most + 1) // 2
        self.under_way = 0
        self._spacing_seconds = 0.0
        self._first_at: float | None = None
        self._started_at = self._held_until = self._refused_at = -inf
        self._good = self._good_run = self._good_at_spacing = 0
        self._run_to_come_closer = GOOD_RUN

    def seconds_to_wait(self, now: float) -> float:
        """Until the next request may start; infinite where one has to end first."""
        if self.under_way >= self.limit:
            return inf
        return max(0.0, self._held_until - now, self._started_at + self._spacing_seconds - now)

    def start(self, now: float) -> None:
        """A request starts."""
        if self._first_at is None:
            self._first_at = now
        self.under_way += 1
        self._started_at = now

    def end(self, *, good: bool) -> None:
        """A request has ended, with a good reply or without."""
        self.under_way -= 1
        if not good:
            self._good_run = self._good_at_spacing = 0
            return
        self._good += 1
        self._good_run += 1
        self._good_at_spacing += 1
        if self._good_run == (GOOD_RUN if self._is_refused else FIRST_GOOD_RUN):
            self._good_run = 0
            self.limit = min(self.limit + 1, self._most)
        if self._good_at_spacing >= self._run_to_come_closer:
            self._good_at_spacing = 0
            self._spacing_seconds *= 0.9

    def hold(self, now: float, *, started_at: float, seconds: float) -> None:
        """A request was refused for the rate: nothing starts for so many seconds."""
        self._held_until = max(self._held_until, now + seconds)
        if started_at <= self._refused_at:
            return  # refused together with one that has slowed everything already
        self.limit = max(1, self.limit // 2)
        if self._is_refused:
            spacing = self._spacing_seconds * 1.15
            self._run_to_come_closer = min(2 * self._run_to_come_closer, LONGEST_GOOD_RUN)
        else:
            took = now + seconds - (now if self._first_at is None else self._first_at)
            spacing = took / max(1, self._good) * 1.1
        self._spacing_seconds = min(spacing, LONGEST_SPACING_SECONDS)
        self._refused_at = now

    @property
    def _is_refused(self) -> bool:
        return self._refused_at > -inf
