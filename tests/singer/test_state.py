"""The watermark in Singer STATE."""

from typing import Any

import pytest

from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.events.instants import parse_instant
from tap_audit_events.extraction.id_groups import Group
from tap_audit_events.extraction.watermark import Watermark
from tests.builders import ORGANIZATION_ID
from tests.extraction.watermarks import at, bookmark_of, digests_of, read_bookmark

OTHER_ORGANIZATION_ID = "00000000-1111-2222-3333-444444444444"


GROUP = Group(at(5), digests_of(["a", "b"]))


def a_bookmark(**changes: Any) -> dict[str, Any]:
    watermark = Watermark(at(5), [GROUP], lookback_seconds=0)
    bookmark = bookmark_of(watermark, organization_id=ORGANIZATION_ID, action_types=["x"])
    return bookmark | changes


def read(bookmark: dict[str, Any]) -> Watermark:
    return read_bookmark(bookmark, lookback_seconds=60)


def test_the_bookmark_is_a_singer_bookmark_and_one_list() -> None:
    """All other values are in one list, which a merge of states replaces as a whole."""
    assert a_bookmark() == {
        "replication_key": "occurredAt",
        "replication_key_value": "2026-01-01T00:00:00.5Z",
        "watermark": [
            {
                "version": 2,
                "bookmark": "2026-01-01T00:00:00.5Z",
                "organization_id": ORGANIZATION_ID,
                "action_types": ["x"],
                "ids_from": "2025-12-31T23:59:59Z",
                "ids": [["2026-01-01T00:00:00.5Z", "QPieOVtmQi+EcsLjTYVPdQ"]],
            }
        ],
        "coverage": [],
    }
    again = read(a_bookmark())
    assert (again.bookmark, again.groups) == (at(5), [GROUP])
    assert again.ids_from == parse_instant("2025-12-31T23:59:59Z")


def test_a_bookmark_of_version_1_is_read() -> None:
    """After an update from the version before, a run repeats nothing."""
    entry = {
        "version": 1,
        "bookmark": "2026-01-01T00:00:00.5Z",
        "organization_id": ORGANIZATION_ID,
        "action_types": [],
        "ids": ["a", "b"],
        "ids_from": "2025-12-31T23:59:59Z",
        "ids_until": "2026-01-01T00:00:00.5Z",
    }
    lines: list[str] = []
    watermark = read_bookmark(
        a_bookmark(watermark=[entry]),
        organization_id=ORGANIZATION_ID,
        lookback_seconds=60,
        warn=lines.append,
    )
    assert (watermark.bookmark, watermark.groups, lines) == (at(5), [GROUP], [])


@pytest.mark.parametrize(
    ("bookmark", "problem"),
    [
        (a_bookmark(replication_key="id"), "its replication_key is not occurredAt"),
        (a_bookmark(replication_key_value="yesterday"), "'yesterday' is not an RFC 3339"),
        (a_bookmark(replication_key_value=1767225600), "is not a text"),
        (a_bookmark(watermark=[]), "as this tap writes it"),
        (a_bookmark(watermark=[a_bookmark()["watermark"][0] | {"ids": [7]}]), "got `int` - at"),
        (a_bookmark(watermark=[{"version": 1, "ids": ["a"]}]), "as this tap writes it"),
    ],
)
def test_a_bookmark_that_cannot_be_used_is_refused(bookmark: dict[str, Any], problem: str) -> None:
    """The error says what is wrong with the bookmark, and how to start over."""
    with pytest.raises(SettingsError, match=problem) as error:
        read(bookmark)
    assert error.value.code == "AE-STATE"
    assert "To start over, run without the state" in str(error.value)
    assert str(error.value).endswith(
        " this bookmark from it. A target that only appends then has the events twice"
    )


def test_a_state_of_another_organization_is_refused() -> None:
    """Its bookmark would hide events; the error advises another state, not to start over."""
    with pytest.raises(SettingsError, match=rf"'{ORGANIZATION_ID}', not .* a state of its own$"):
        read_bookmark(a_bookmark(), organization_id=OTHER_ORGANIZATION_ID, lookback_seconds=0)
