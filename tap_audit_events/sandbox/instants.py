"""The instants of RFC 3339 texts, exact to the last digit."""

import re
from datetime import date
from typing import TypeAlias

Instant: TypeAlias = tuple[int, str]
"""Whole seconds of UTC, and the digits of the fraction without trailing zeros.

Instants compare as tuples: without trailing zeros, digits compare as the fractions they stand for.
"""

_DATE_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-]\d\d):(\d\d))",
    re.ASCII,
)


def instant_of(text: str) -> Instant:
    """Read a date-time of RFC 3339, section 5.6.

    A leap second, `23:59:60`, is the instant of the `00:00:00` that follows it.

    Raises ValueError for any other text, also for one without an offset.
    """
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a date-time of RFC 3339 with an offset")
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    if hour > 23 or minute > 59 or second > 60:
        raise ValueError(f"{text!r} is not a time of day")
    midnight = date(year, month, day).toordinal() * 86400
    fraction, offset_hours, offset_minutes = found.groups()[6:]
    seconds = midnight + hour * 3600 + minute * 60 + second
    if offset_hours:
        seconds -= _offset_seconds(offset_hours, int(offset_minutes))
    return seconds, (fraction or "").rstrip("0")


def _offset_seconds(signed_hours: str, minutes: int) -> int:
    hours = int(signed_hours[1:])
    if hours > 23 or minutes > 59:
        raise ValueError(f"{signed_hours}:{minutes:02} is not an offset")
    seconds = hours * 3600 + minutes * 60
    return -seconds if signed_hours[0] == "-" else seconds
