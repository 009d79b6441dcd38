"""The comparison of a stored event with the delivered one finds what a loader changed."""

from decimal import Decimal
from typing import Any

import pytest

from tests.loaders.comparison import (
    ADDED,
    CHANGED,
    CUT,
    DOUBLE,
    EMPTY_OBJECT_LOST,
    EMPTY_TEXT_LOST,
    JSON_TEXT,
    LOST,
    NULL_ADDED,
    NULL_LOST,
    PYTHON_TEXT,
    ROUNDED,
    changes,
)

NINE_DIGITS = "2026-01-05T07:32:00.123456789Z"


def test_equal_events_have_no_changes() -> None:
    """A time in another form and a number of another type are equal, too."""
    delivered = {"occurredAt": "2026-01-05T07:32:00.500Z", "a": {"n": 1, "list": [None, True]}}
    stored = {
        "occurredAt": "2026-01-05T08:32:00.5+01:00",
        "a": {"n": Decimal(1), "list": [None, True]},
    }

    assert changes(delivered, stored) == {}


@pytest.mark.parametrize(
    ("stored", "verdict"),
    [
        ("2026-01-05T07:32:00.123456Z", CUT),
        ("2026-01-05T07:32:00.123457Z", ROUNDED),
        ("2026-01-05T07:32:00.123Z", CHANGED),
    ],
)
def test_a_time_is_compared_as_an_instant(stored: str, verdict: str) -> None:
    assert changes({"occurredAt": NINE_DIGITS}, {"occurredAt": stored}) == {"occurredAt": verdict}


@pytest.mark.parametrize(
    ("delivered", "stored", "verdict"),
    [
        (Decimal("0.1000000000000000000001"), Decimal("0.1"), DOUBLE),
        (2**70, 2**70 + 1, DOUBLE),
        (2, 3, CHANGED),
        (1, True, CHANGED),
        ({"a": None}, "{'a': None}", PYTHON_TEXT),
        ({"a": None}, '{"a": null}', JSON_TEXT),
        ({"a": None}, "else", CHANGED),
        ("text", None, LOST),
    ],
)
def test_a_changed_value_has_the_name_of_its_change(
    delivered: Any, stored: Any, verdict: str
) -> None:
    assert changes({"outer": {"x": delivered}}, {"outer": {"x": stored}}) == {"outer.x": verdict}


@pytest.mark.parametrize(
    ("delivered", "verdict"),
    [
        (None, NULL_LOST),
        ("", EMPTY_TEXT_LOST),
        ({}, EMPTY_OBJECT_LOST),
        ({"a": None}, NULL_LOST),
        ({"a": 1}, LOST),
    ],
)
def test_a_missing_value_is_a_loss_of_its_kind(delivered: Any, verdict: str) -> None:
    assert changes({"x": delivered}, {}) == {"x": verdict}


def test_a_value_that_was_not_delivered_is_a_change() -> None:
    assert changes({}, {"x": None, "y": 1}) == {"x": NULL_ADDED, "y": ADDED}
