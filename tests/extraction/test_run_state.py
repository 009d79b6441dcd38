"""The state of one organization: the JSON form of its watermark."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.events.instants import Instant, parse_instant
from tap_audit_events.extraction.id_groups import Group
from tap_audit_events.extraction.run_state import is_run_state, to_run_state
from tap_audit_events.extraction.watermark import MAX_REMEMBERED_IDS, Watermark
from tests.extraction.watermarks import at, deliver, digests_of, from_json, to_json

GOLDEN = {
    "version": 2,
    "bookmark": "2026-01-01T00:00:10Z",
    "organization_id": "",
    "action_types": [],
    "ids_from": "2025-12-31T23:59:10Z",
    "ids": [
        ["2026-01-01T00:00:00.5Z", "QPieOVtmQi8"],
        ["2026-01-01T00:00:10Z", "hHLC402FT3VCCHg+kn0NaA"],
    ],
}
VERSION_1 = {
    "version": 1,
    "bookmark": "2026-01-01T00:00:10Z",
    "organization_id": "6f1d4c1e-7f0b-4f3a-9d35-0c8a5b1e2d47",
    "action_types": [],
    "ids": ["a", "b", "b", "\ud800"],
    "ids_from": "2026-01-01T00:00:05Z",
    "ids_until": "2026-01-01T00:00:20Z",
}


def read(value: Any, lookback: int = 60) -> Watermark:
    return from_json(value, lookback_seconds=lookback)


def test_the_json_form_does_not_change() -> None:
    """A later version must read what this one wrote."""
    watermark = Watermark(lookback_seconds=60)
    deliver(watermark, [("a", at(5)), ("b", at(100)), ("\ud800", at(100))])
    assert to_json(watermark) == GOLDEN
    again = read(GOLDEN)
    assert (again.bookmark, again.groups) == (watermark.bookmark, watermark.groups)
    assert to_json(again) == GOLDEN
    page = [("a", at(5)), ("b", at(100)), ("\ud800", at(100)), ("c", at(100))]
    assert deliver(again, page) == ["c"]


def test_covered_from_is_an_optional_key() -> None:
    """Earlier versions did not write the key, and ignore it."""
    value = GOLDEN | {"covered_from": "2025-12-31T00:00:00.5Z"}
    assert read(value).covered_from == parse_instant("2025-12-31T00:00:00.5Z")
    assert to_json(read(value)) == value
    assert read(GOLDEN).covered_from is None
    at_the_bookmark = read(GOLDEN | {"covered_from": "2026-01-01T00:00:10Z"})
    assert at_the_bookmark.covered_from == at(100)


def test_excluded_types_are_an_optional_key() -> None:
    """Without the setting, the state is that of earlier versions."""
    state = to_run_state(
        read(GOLDEN), organization_id="", action_types=[], exclude_action_types=["x"]
    )
    assert state == GOLDEN | {"exclude_action_types": ["x"]}
    assert to_json(read(state)) == GOLDEN
    assert is_run_state(state)
    for value in ([5], "x", None):
        assert not is_run_state(state | {"exclude_action_types": value})


def test_numbers_may_be_written_with_a_fraction() -> None:
    """Tools that store states may write an integer as 2.0."""
    assert read(GOLDEN | {"version": 2.0}).groups == read(GOLDEN).groups


def test_a_watermark_without_events_is_an_empty_object() -> None:
    """Before the first event there is no bookmark to write."""
    assert to_json(Watermark()) == {}
    assert read({}).bookmark is None


def test_version_1_becomes_one_group() -> None:
    """All ids of version 1 have one instant, which is after the bookmark if that had to stay."""
    watermark = read(VERSION_1, lookback=1)
    assert watermark.groups == [Group(at(200), digests_of(["a", "b", "\ud800"]))]
    assert (watermark.bookmark, watermark.ids_from) == (at(100), at(90))
    assert read(VERSION_1, lookback=300).ids_from == at(50)
    assert deliver(watermark, [("a", at(100)), ("b", at(150)), ("c", at(150))]) == ["c"]
    deliver(watermark, [("d", at(211))])
    assert [len(group.split()) for group in watermark.groups] == [3, 1]
    deliver(watermark, [("e", at(220))])
    assert watermark.groups[0] == Group(at(211), digests_of("d"))
    assert read(VERSION_1 | {"ids": []}).groups == []


@given(
    st.lists(st.tuples(st.text(), st.integers(0, 700)), unique_by=lambda each: each[0]),
    st.integers(0, 100),
    st.booleans(),
)
def test_a_watermark_survives_json(
    events: list[tuple[str, int]], lookback: int, in_order: bool
) -> None:
    """A watermark that is read from JSON text equals the written one, and is written the same."""
    watermark = Watermark(lookback_seconds=lookback)
    deliver(watermark, [(i, at(tenths)) for i, tenths in events], moves_bookmark=in_order)
    written = json.loads(json.dumps(to_json(watermark)))
    again = read(written, lookback)
    assert (again.bookmark, again.ids_from) == (watermark.bookmark, watermark.ids_from)
    assert again.groups == watermark.groups
    assert to_json(again) == written


def test_a_full_memory_is_about_a_megabyte() -> None:
    """100,000 ids of any length are 8 bytes each, in a few hundred groups."""
    watermark = Watermark(lookback_seconds=10**6)
    for page in range(MAX_REMEMBERED_IDS // 1000 + 5):
        events: list[tuple[str, Instant]] = [
            (f"{page:012}-{n:023}", at(10 * page + n // 100)) for n in range(1000)
        ]
        deliver(watermark, events)
    written = to_json(watermark)
    assert 99_000 <= sum(len(group.split()) for group in watermark.groups) <= MAX_REMEMBERED_IDS
    assert len(written["ids"]) <= 512
    assert len(json.dumps(written)) <= 1_100_000


def with_ids(*groups: Any) -> dict[str, Any]:
    return GOLDEN | {"ids": [*groups]}


TIME = "2026-01-01T00:00:10Z"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (GOLDEN | {"version": 3}, "its version is not 1 or 2"),
        ({"version": 2}, "missing required field `bookmark`"),
        (GOLDEN | {"bookmark": 7}, r"Expected `str`, got `int` - at `\$.bookmark`"),
        (GOLDEN | {"bookmark": "yesterday"}, "in its bookmark, 'yesterday' is "),
        (GOLDEN | {"ids_from": "2026-01-01T00:00:11Z"}, "its ids_from lies after its bookmark"),
        (
            GOLDEN | {"covered_from": "2026-01-01T00:00:10.1Z"},
            "its covered_from lies after its bookmark",
        ),
        (GOLDEN | {"ids": None}, r"Expected `array`, got `null` - at `\$.ids`"),
        (with_ids([TIME, "QPieOVtmXp0", 1]), r"of length 2, got 3 - at `\$.ids\[0\]`"),
        (with_ids([TIME, 7]), r"Expected `str`, got `int` - at `\$.ids\[0\]\[1\]`"),
        (with_ids(["now", "QPieOVtmXp0"]), "in its ids, 'now' is "),
        (with_ids([TIME, "QPieOVtmX!0"]), "a group of its ids is not base64"),
        (with_ids([TIME, "QPieOVtmXp0=QPieOVtmXp0="]), "a group of its ids is not base64"),
        (with_ids([TIME, "QPieOVtm"]), "does not consist of digests of 8 bytes"),
        (GOLDEN | {"ids": GOLDEN["ids"][::-1]}, "its groups of ids are not in the order of time"),  # type: ignore[index]
        (VERSION_1 | {"ids": ["a", 7]}, r"got `int` - at `\$.ids\[1\]`"),
        ({key: VERSION_1[key] for key in ("version", "bookmark", "ids_from")}, "field `ids`"),
    ],
)
def test_json_that_is_not_a_watermark_is_refused(value: dict[str, Any], problem: str) -> None:
    """The message says which part is wrong."""
    with pytest.raises(SettingsError, match=problem):
        read(value)
