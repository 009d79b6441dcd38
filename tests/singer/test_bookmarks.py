"""The bookmarks of several organizations in a Singer state."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.singer.bookmarks import Bookmarks

IDS = [f"{n:08x}-0000-4000-8000-00000000000{n:x}" for n in range(10, 15)]


def a_bookmark(organization_id: str, second: int) -> dict[str, Any]:
    return {
        "replication_key": "occurredAt",
        "replication_key_value": f"2024-05-06T07:08:{second:02}Z",
        "watermark": [{"organization_id": organization_id, "action_types": [], "n": second}],
    }


def without_context(bookmark: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in bookmark.items() if name != "context"}


RUNS = st.lists(
    st.tuples(st.booleans(), st.dictionaries(st.sampled_from(IDS), st.integers(0, 59), max_size=4))
)


@given(runs=RUNS)
def test_each_organization_keeps_its_own_bookmark(runs: list[tuple[bool, dict[str, int]]]) -> None:
    """Runs of several organizations alternate with runs of one whose bookmark is in a partition."""
    state: dict[str, Any] = {}
    expected: dict[str, dict[str, Any]] = {}
    for is_single, drawn in runs:
        state = json.loads(json.dumps(state))
        known = sorted(drawn.keys() & expected.keys())[:1]
        run = {name: drawn[name] for name in known} if is_single else drawn
        if is_single and not run:
            continue
        bookmarks = Bookmarks(state, list(run), in_partitions=not is_single)
        for name, second in run.items():
            assert without_context(bookmarks.of(name)) == expected.get(name, {})
            bookmarks.keep(name.upper() if second % 2 else name, a_bookmark(name, second))
            expected[name] = a_bookmark(name, second)
    found = Bookmarks(json.loads(json.dumps(state)), IDS, in_partitions=True)
    for name in IDS:
        assert without_context(found.of(name.upper())) == expected.get(name, {})


@pytest.mark.parametrize("in_partitions", [True, False])
def test_a_partition_takes_precedence_over_the_top(in_partitions: bool) -> None:
    """A state may have both: a merge of states keeps the bookmark that was moved."""
    partition = {"context": {"organization_id": IDS[0]}} | a_bookmark(IDS[0], 2)
    state = a_bookmark(IDS[0], 1) | {"partitions": [partition]}
    bookmarks = Bookmarks(state, IDS[:1], in_partitions=in_partitions)
    assert without_context(bookmarks.of(IDS[0])) == a_bookmark(IDS[0], 2)
    bookmarks.keep(IDS[0], a_bookmark(IDS[0], 3))
    assert without_context(state["partitions"][0]) == a_bookmark(IDS[0], 3)
    assert ("watermark" in state) is not in_partitions


@pytest.mark.parametrize("key", ["replication_key_value", "occurredAt"])
def test_a_bookmark_without_an_organization_belongs_to_the_only_one(key: str) -> None:
    """It is refused if there are several organizations. Other taps use either key."""
    plain = {key: "2024-05-06T07:08:09Z"}
    assert Bookmarks(dict(plain), IDS[:1], in_partitions=True).of(IDS[0]).items() >= plain.items()
    with pytest.raises(SettingsError):
        Bookmarks(dict(plain), IDS[:2], in_partitions=True)
