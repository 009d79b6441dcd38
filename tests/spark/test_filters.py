"""The range of the requests contains exactly the events that the filters of a query let through."""

import operator
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import datasource as spark

from tap_audit_events.events.instants import Instant, parse_instant
from tap_audit_events.spark.filters import wanted

COMPARISONS = {
    spark.EqualTo: operator.eq,
    spark.EqualNullSafe: operator.eq,
    spark.GreaterThan: operator.gt,
    spark.GreaterThanOrEqual: operator.ge,
    spark.LessThan: operator.lt,
    spark.LessThanOrEqual: operator.le,
}
FIRST = datetime(2024, 5, 6, tzinfo=UTC)
TIMES = st.integers(0, 5).map(lambda count: FIRST + timedelta(microseconds=count))
FRACTIONS = st.sampled_from(["", "0001", "5", "999999"])
TIME_FILTERS = st.builds(
    lambda kind, time: kind(("occurred_at",), time), st.sampled_from([*COMPARISONS]), TIMES
)


def instant(time: datetime, more: str) -> Instant:
    """An instant with more digits, which the column cuts to this time."""
    return parse_instant(f"{time:%Y-%m-%dT%H:%M:%S.%f}{more}Z")


@settings(max_examples=400)
@given(st.lists(TIME_FILTERS, max_size=3), TIMES, FRACTIONS)
def test_the_range_has_the_instants_whose_column_passes(
    filters: list[Any], time: datetime, more: str
) -> None:
    found = wanted(filters)
    passes = all(COMPARISONS[type(each)](time, each.value) for each in filters)
    assert (found.start <= instant(time, more) <= found.end) == passes


@settings(max_examples=200)
@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1), max_size=3))
def test_action_types_and_organizations_are_those_that_every_filter_has(
    lists: list[list[str | None]],
) -> None:
    for column, name in (("action_type", "action_types"), ("organization_id", "organization_ids")):
        found = getattr(wanted(spark.In((column,), tuple(each)) for each in lists), name)
        sets = [set(each) - {None} for each in lists]
        assert found == (frozenset(set.intersection(*sets)) if sets else None)


def test_what_the_service_cannot_filter_is_left_to_spark() -> None:
    filters = [
        spark.EqualTo(("action_type",), "a,b"),
        spark.EqualTo(("action_type",), ""),
        spark.Not(spark.EqualTo(("action_type",), "a")),
        spark.StringStartsWith(("action_type",), "a"),
        spark.IsNull(("occurred_at",)),
        spark.Not(spark.LessThan(("occurred_at",), FIRST)),
        spark.GreaterThan(("occurred_at",), FIRST.replace(tzinfo=None)),
        spark.EqualTo(("id",), "x"),
        spark.EqualNullSafe(("action_type",), None),
    ]
    assert wanted(filters) == wanted([])
