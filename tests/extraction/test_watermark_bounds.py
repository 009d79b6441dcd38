"""Exactly which ids the watermark holds, and how many."""

import pytest

from tap_audit_events.extraction.id_groups import Group, digest_of
from tap_audit_events.extraction.watermark import Watermark
from tests.extraction.watermarks import (
    at,
    deliver,
    digests_of,
    to_json,
    with_memory,
)

BOOKMARK = 1000
LOOKBACK = 60


def delivered_at(times: dict[int, int], memory: int = 10**6) -> Watermark:
    """A watermark after so many events at each time, then one at the bookmark."""
    watermark = with_memory(memory, lookback_seconds=LOOKBACK)
    for time, count in times.items():
        deliver(watermark, [(f"{time}-{n}", at(time)) for n in range(count)])
    deliver(watermark, [("newest", at(BOOKMARK))])
    return watermark


@pytest.mark.parametrize("until", [398, 399, 400, 401, 402])
def test_a_group_of_ids_expires_with_its_own_instant(until: int) -> None:
    """An id leaves STATE when its group's instant leaves the lookback, whatever other groups do."""
    groups = [Group(at(until), digests_of(["a", "b"])), Group(at(900), digests_of(["c"]))]
    watermark = Watermark(at(950), groups, ids_from=at(0), lookback_seconds=LOOKBACK)
    deliver(watermark, [("newest", at(BOOKMARK))])
    kept = [group.until for group in watermark.groups]
    assert kept == [at(until)] * (until >= 400) + [at(900), at(BOOKMARK)]
    again = Watermark(at(BOOKMARK), watermark.groups, lookback_seconds=LOOKBACK)
    page = [("a", at(until)), ("b", at(until - 1)), ("c", at(890)), ("newest", at(BOOKMARK))]
    assert deliver(again, page) == ([] if until >= 400 else ["a", "b"])


def test_an_id_of_a_group_is_recognized_up_to_a_second_after_the_groups_instant() -> None:
    """A later event with the same id counts as new."""
    for time, is_known in ((899, True), (900, True), (910, True), (911, False)):
        watermark = Watermark(at(950), [Group(at(900), digests_of(["a"]))], lookback_seconds=60)
        assert deliver(watermark, [("a", at(time))]) == ([] if is_known else ["a"])


def test_ids_that_are_not_unicode_text_have_digests_of_their_own() -> None:
    """A lone surrogate is part of an id like any other character."""
    assert len({digest_of(each) for each in ("\ud800", "\ud801", "\ufffd", "?")}) == 4


def test_a_snapshot_does_not_change() -> None:
    """A snapshot may be written as JSON after more events were delivered."""
    watermark = delivered_at({990: 2})
    snapshot, expected = watermark.snapshot(), to_json(watermark)
    deliver(watermark, [("later", at(BOOKMARK + 1)), ("late", at(BOOKMARK - 1))])
    assert to_json(snapshot) == expected != to_json(watermark)
