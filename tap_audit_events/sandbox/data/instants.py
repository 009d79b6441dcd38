"""The instants of RFC 3339 texts, exact to the last digit."""

import re
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Instant: TypeAlias = str
"""A date-time in UTC, as in `2024-05-31T12:00:00.5`, without zeros at the end of the fraction.

So instants compare as texts.
"""

_DATE_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d):(\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:[0-5]\d)", re.ASCII
)


def instant_of(text: str) -> Instant:
    """Read a date-time of RFC 3339, section 5.6.

    Second 60 of any minute, as in a leap second, is the start of the minute that follows.

    Raises ValueError for any other text, also for one without an offset.
    """
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a date-time of RFC 3339 with an offset")
    day, minute, second, fraction, offset = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{minute}:00{offset.upper()}")
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error
    if int(second) > 60:
        raise ValueError(f"{text!r} is not a time of day")
    digits = (fraction or "").rstrip("0")
    try:
        moment = moment.astimezone(UTC) + timedelta(seconds=int(second))
    except OverflowError:  # Outside of the years 1 to 9999, where no event is.
        return "0000" if moment.year == 1 else "~"
    return moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + (f".{digits}" if digits else "")
