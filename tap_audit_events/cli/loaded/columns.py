"""Finds the columns of an event's id, time and organization, and how exact the time is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tap_audit_events.cli.loaded.batches import NANOSECONDS, unreadable
from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.events.stream_names import ORGANIZATION_KEY

TIMES: Final = ("occurred_at_text", "occurredat", "occurred_at")
"""Names of the time column in lower case, the most exact first."""

_MICROSECOND: Final = 1_000
_UNITS: Final = {"s": NANOSECONDS, "ms": 1_000_000, "us": _MICROSECOND, "ns": 1}
_DAY: Final = 86_400 * NANOSECONDS
_DIGITS: Final = re.compile(r"\(([0-9])\)")
_NOT_TEXT: Final = re.compile(r"json|struct|map|.*\[")
_NUMBER: Final = re.compile(
    r"u?(big|small|tiny|huge)?int(eger|[0-9]+)?\b|double|float|numeric|decimal"
)


@dataclass(frozen=True)
class TimeColumn:
    """A column with times.

    Attributes:
        name: its name.
        type: its type, in lower case.
    """

    name: str
    type: str

    @property
    def is_time(self) -> bool:
        """Whether the type is a date or time type, not text."""
        return self.type.startswith(("timestamp", "datetime", "date"))

    @property
    def has_zone(self) -> bool:
        """Whether the times are stored with a time zone."""
        return "with time zone" in self.type

    @property
    def unit_nanoseconds(self) -> int:
        """The smallest difference between two times, 0 if every digit is stored."""
        if not self.is_time:
            return 0
        if self.type.startswith("date") and "time" not in self.type:
            return _DAY
        if self.has_zone and "_ns" in self.type:
            return _MICROSECOND  # DuckDB keeps no more of a time with a zone
        if digits := _DIGITS.search(self.type):
            return int(NANOSECONDS / 10 ** int(digits[1]))
        for name, unit in _UNITS.items():
            if re.search(rf"_{name}\b", self.type):
                return unit
        return _MICROSECOND


@dataclass(frozen=True)
class Columns:
    """The columns of a table.

    Attributes:
        id: name of the column of the id.
        time: the column of the time.
        organization: name of the column of the organization; None if the table has no such column.
    """

    id: str
    time: TimeColumn
    organization: str | None


def find_columns(types: Mapping[str, str], place: str) -> Columns:
    """The columns of a table with these types.

    Args:
        types: the type of each column, by its name.
        place: what to call the table in messages.

    Raises:
        OutputError: the id or the time has no column, or one of the columns has no texts or times.
    """
    by_lower_name = {name.lower(): name for name in types}
    time = next((by_lower_name[name] for name in TIMES if name in by_lower_name), None)
    if time is None or "id" not in by_lower_name:
        names = sanitize(", ".join(types))
        raise unreadable(place, f"it has no columns id and occurredAt, but {names}")
    organization = by_lower_name.get(ORGANIZATION_KEY)
    for name in (by_lower_name["id"], time, organization):
        if name is not None and _NOT_TEXT.match(types[name].lower()):
            raise unreadable(place, f"its column {name} has {types[name]}, not text: name a view"
                             " that has it as text")  # fmt: skip
    if organization is not None and _NUMBER.match(types[organization].lower()):
        raise unreadable(place, f"its column {organization} has {types[organization]}, not text")
    return Columns(
        id=by_lower_name["id"],
        time=TimeColumn(time, types[time].lower()),
        organization=organization,
    )


def quoted(name: str) -> str:
    """A name for SQL; a dot separates a schema and a table."""
    return ".".join(f'"{part}"' for part in name.replace('"', '""').split("."))


def text_of(name: str | None) -> str:
    """An expression for a column as text, NULL without a column."""
    return "NULL::VARCHAR" if name is None else f"CAST({quoted(name)} AS VARCHAR)"
