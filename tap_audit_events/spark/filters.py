"""What Spark's filters say about the requests: a range of time, action types, organizations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from pyspark.sql import datasource as spark

from tap_audit_events.events.instants import EARLIEST, LATEST, Instant, instant_of

_MICROSECOND: Final = timedelta(microseconds=1)
_NINES: Final = "9" * 93
"""No time has so many further digits that are all 9."""


class Wanted(NamedTuple):
    """What a query needs.

    Attributes:
        start: the earliest instant.
        end: the latest instant.
        action_types: None if every type is wanted.
        organization_ids: None if every organization is wanted.
    """

    start: Instant = EARLIEST
    end: Instant = LATEST
    action_types: frozenset[str] | None = None
    organization_ids: frozenset[str] | None = None


def wanted(filters: Iterable[Any]) -> Wanted:
    """What remains after filters that all must hold. Those of other columns and forms say nothing.

    The column `occurred_at` is cut to microseconds, so the range contains all instants that are cut
    to a microsecond that passes the filters, and no others.
    """
    found = Wanted()
    for each in filters:
        column = ".".join(getattr(each, "attribute", ()))
        values = _equal_values(each)
        if column == "occurred_at":
            found = _within(found, each, values)
        elif values is None or not all(isinstance(value, str) for value in values):
            continue
        elif column == "action_type" and all(_can_be_sent(value) for value in values):
            found = found._replace(action_types=_common(found.action_types, values))
        elif column == "organization_id":
            found = found._replace(organization_ids=_common(found.organization_ids, values))
    return found


def _equal_values(condition: Any) -> frozenset[Any] | None:
    """The values of which a column must have one; None if the filter does not say that."""
    if isinstance(condition, spark.In):
        return frozenset(each for each in condition.value if each is not None)
    if isinstance(condition, (spark.EqualTo, spark.EqualNullSafe)):
        return None if condition.value is None else frozenset({condition.value})
    return None


def _within(found: Wanted, condition: Any, values: frozenset[Any] | None) -> Wanted:
    if values is not None:
        if not values or not all(map(_is_time, values)):
            return found
        return _clip(found, min(values), max(values))
    value: Any = getattr(condition, "value", None)
    if not _is_time(value) or type(condition) not in _BOUNDS:
        return found
    return _clip(found, *_BOUNDS[type(condition)](value))


_BOUNDS: Final[dict[type, Callable[[datetime], tuple[datetime | None, datetime | None]]]] = {
    spark.GreaterThan: lambda value: (value + _MICROSECOND, None),
    spark.GreaterThanOrEqual: lambda value: (value, None),
    spark.LessThan: lambda value: (None, value - _MICROSECOND),
    spark.LessThanOrEqual: lambda value: (None, value),
}
"""The first and the last microsecond that pass a filter."""


def _clip(found: Wanted, first: datetime | None, last: datetime | None) -> Wanted:
    start = found.start if first is None else max(found.start, instant_of(first))
    end = found.end if last is None else min(found.end, last_instant_of(last))
    return found._replace(start=start, end=end)


def last_instant_of(microsecond: datetime) -> Instant:
    """The last instant that is cut to a microsecond."""
    moment = microsecond.astimezone(UTC).replace(tzinfo=None)
    return Instant(f"{moment.isoformat(timespec='microseconds')}{_NINES}")


def _is_time(value: Any) -> bool:
    """Whether a value is a time with a zone that can be moved by a microsecond."""
    return (
        isinstance(value, datetime)
        and value.tzinfo is not None
        and datetime.min.replace(tzinfo=UTC) < value < datetime.max.replace(tzinfo=UTC)
    )


def _can_be_sent(action_type: str) -> bool:
    """Whether it can be in the parameter ``actionTypes`` (interface.md 4.1)."""
    return bool(action_type) and "," not in action_type


def _common(before: frozenset[str] | None, values: frozenset[str]) -> frozenset[str]:
    return values if before is None else before & values
