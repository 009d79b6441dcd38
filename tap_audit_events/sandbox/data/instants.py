"""The instants of RFC 3339 texts, exact to the last digit."""

import re
from datetime import date
from functools import lru_cache
from typing import Final, TypeAlias

Instant: TypeAlias = str
"""A date-time in UTC, as in `2024-05-31T12:00:00.5`, without zeros at the end of the fraction.

So instants compare as texts.
"""

_LAST_DAY: Final = date.max.toordinal()

_DATE_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-]\d\d):(\d\d))",
    re.ASCII,
)


def instant_of(text: str) -> Instant:
    """Read a date-time of RFC 3339, section 5.6.

    Second 60 of any minute, as in a leap second, is the start of the minute that follows.

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
    return _instant_from(seconds, fraction or "")


def _instant_from(seconds: int, fraction: str) -> Instant:
    """The instant of seconds since the day before 0001-01-01 and the digits of a fraction."""
    minute, second = divmod(seconds, 60)
    digits = fraction.rstrip("0")
    point = "." if digits else ""
    return f"{_minute(minute)}{second:02}{point}{digits}"


@lru_cache(maxsize=64)
def _minute(number: int) -> str:
    day, minute = divmod(number, 1440)
    return f"{_day(day)}T{minute // 60:02}:{minute % 60:02}:"


def _day(ordinal: int) -> str:
    """The date of an ordinal; an offset may lead to the day before the first or after the last."""
    if ordinal < 1:
        return "0000-12-31"
    return date.fromordinal(ordinal).isoformat() if ordinal <= _LAST_DAY else "9999-12-32"


def _offset_seconds(signed_hours: str, minutes: int) -> int:
    hours = int(signed_hours[1:])
    if hours > 23 or minutes > 59:
        raise ValueError(f"{signed_hours}:{minutes:02} is not an offset")
    seconds = hours * 3600 + minutes * 60
    return -seconds if signed_hours[0] == "-" else seconds
