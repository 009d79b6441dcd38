"""RFC 3339 date-times, compared and rewritten exactly, to the last digit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NewType, cast

Instant = NewType("Instant", str)
"""The exact moment of an RFC 3339 text: ``YYYY-MM-DDTHH:MM:SS[.fraction]`` in UTC.

It has no offset, no trailing zeros in its fraction and a year of four digits. So these texts sort
by time, and equal moments are equal texts.
"""

EARLIEST = Instant("0001-01-01T00:00:00")
LATEST = Instant("9999-12-31T23:59:59")
NEVER = Instant("")
"""Stands for no instant. It sorts before every instant."""

_DATE_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]((?:[01][0-9]|2[0-3]):[0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"([Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DIGITS_OF_LAST: Final = 99
"""Digits of the fraction of the last instant of a day: no time has so many that are all 9."""

_UTC_LINES = re.compile(r"(?:\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?Z\n)*+", re.ASCII)
_WHOLE = len(EARLIEST)
_FIRST = datetime.fromisoformat(EARLIEST)
_MICROSECOND = timedelta(microseconds=1)


def parse_instant(text: str) -> Instant:
    """The instant of an RFC 3339 ``date-time`` (section 5.6), whatever its offset and precision.

    A leap second is the first second of the next minute, as in POSIX time. ``-00:00`` is UTC.

    Raises:
        ValueError: ``text`` is not an RFC 3339 date-time, has no offset, or is outside the years
            1 to 9999 in UTC. The message says which.
    """
    whole, fraction = _split(text)
    digits = fraction.rstrip("0")
    return Instant(f"{whole}.{digits}" if digits else whole)


def first_instant(text: str) -> Instant:
    """The first instant of a time: that of an RFC 3339 date-time, or the start of a UTC day.

    Raises:
        ValueError: ``text`` is neither, as in `parse_instant`.
    """
    if _DAY.fullmatch(text):
        return parse_instant(f"{text}T00:00:00Z")
    if not _DATE_TIME.fullmatch(text):
        raise ValueError(
            "is not an RFC 3339 date-time with an offset, such as 2026-01-31T00:00:00Z, or a date,"
            " such as 2026-01-31"
        )
    return parse_instant(text)


def last_instant(text: str) -> Instant:
    """The last instant of a time: that of an RFC 3339 date-time, or the end of a UTC day.

    Every event of the day is before it, whatever the precision of its time.

    Raises:
        ValueError: as `first_instant`.
    """
    first = first_instant(text)
    if _DAY.fullmatch(text):
        return Instant(f"{text}T23:59:59.{'9' * _DIGITS_OF_LAST}")
    return first


def utc_text(text: str) -> str:
    """The same instant in UTC form (``…T…Z``, no leap second), with all digits of its fraction.

    A text that has this form is returned unchanged.

    Raises:
        ValueError: as `parse_instant`.
    """
    whole, fraction = _split(text)
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"


def utc_instants(texts: Sequence[str]) -> list[Instant] | None:
    """The instants of many texts at once, if each is in UTC form.

    None if one of them is in another form or invalid: the caller then parses each by itself.
    """
    lines = "\n".join([*texts, ""])
    if not _UTC_LINES.fullmatch(lines) or not _all_exist(texts):
        return None
    instants = [
        time if time[-1] != "0" or "." not in time else time.rstrip("0").removesuffix(".")
        for time in lines.split("Z\n")[:-1]
    ]
    return cast("list[Instant]", instants)  # calling Instant for each would double the time


def text_of(instant: Instant) -> str:
    """An instant as RFC 3339 text in UTC form."""
    return f"{instant}Z"


def brief(instant: Instant) -> str:
    """An instant as text for people; a fraction is cut after a dozen digits."""
    return f"{instant[:32]}Z"


def instant_of(moment: datetime) -> Instant:
    """The instant of an aware ``datetime``."""
    return parse_instant(moment.astimezone(UTC).isoformat())


def whole_second(instant: Instant) -> Instant:
    """The instant rounded down to a whole second."""
    return Instant(instant[:_WHOLE])


def to_nanoseconds(instant: Instant) -> Instant:
    """The instant rounded down to nanoseconds: many databases refuse more digits."""
    return Instant(instant[: _WHOLE + 10])


def next_whole_second(instant: Instant) -> Instant:
    """The instant rounded up to a whole second, at most `LATEST`."""
    whole = whole_second(instant)
    return whole if whole == instant else later(whole, seconds=1)


def later(instant: Instant, *, seconds: int) -> Instant:
    """The instant that many seconds later, or earlier if negative, within the years 1 to 9999."""
    whole, fraction = instant[:_WHOLE], instant[_WHOLE:]
    try:
        moved = datetime.fromisoformat(whole) + timedelta(seconds=seconds)
    except OverflowError:
        return LATEST if seconds > 0 else EARLIEST
    return Instant(moved.isoformat() + fraction)


def microseconds(instant: Instant) -> int:
    """The whole microseconds since the start of the year 1, which was a Monday."""
    return (datetime.fromisoformat(instant) - _FIRST) // _MICROSECOND


def seconds_between(earlier: Instant, later: Instant) -> float:
    """The seconds from one instant to another, to the microsecond; not exact."""
    return (microseconds(later) - microseconds(earlier)) / 1e6


def _split(text: str) -> tuple[str, str]:
    """The whole second in UTC, as text without an offset, and the digits of the fraction."""
    match = _DATE_TIME.fullmatch(text)
    if not match:
        raise ValueError(
            "is not an RFC 3339 date-time with an offset, such as 2026-01-31T00:00:00Z"
            " or 2026-01-31T00:00:00.5+02:00"
        )
    return _moment(match).isoformat(), match[4] or ""


def _moment(match: re.Match[str]) -> datetime:
    """The whole second of a matched date-time in UTC, without ``tzinfo``."""
    date, time, second, _, offset = match.groups()
    leaps = second == "60"
    try:
        local = datetime.fromisoformat(f"{date}T{time}:{'59' if leaps else second}{offset.upper()}")
        moment = local.astimezone(UTC).replace(tzinfo=None)
        if leaps and (moment.hour, moment.minute) != (23, 59):
            raise ValueError("second 60 is valid only at 23:59:60 UTC")
        return moment + timedelta(seconds=leaps)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"is not a date-time that exists ({error})") from None


def _all_exist(texts: Sequence[str]) -> bool:
    try:
        return all(map(datetime.fromisoformat, texts))
    except ValueError:
        return False
