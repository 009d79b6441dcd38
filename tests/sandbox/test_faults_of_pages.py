"""Faults in the events and the cursor of a page."""

import pytest

from tests.builders import an_event
from tests.sandbox.conftest import Sandbox

ABCD = [an_event(id=name) for name in "abcd"]
SECONDS = [an_event(id=f"s-{n}", at=f"2024-05-06T07:00:{n:02}Z") for n in range(9)]


def test_an_empty_page_continues_at_the_same_place(sandbox: Sandbox) -> None:
    """Each empty page has a new cursor, and no event is lost, wherever the empty page is."""
    client = sandbox(*ABCD, faults=["empty@1,3,5"])
    pages = client.pages(order="asc", pageSize=2)
    assert pages == [[], ["a", "b"], [], ["c", "d"]]
    client = sandbox(*ABCD, faults=["empty@2"])
    assert client.pages(order="asc", pageSize=3) == [["a", "b", "c"], [], ["d"]]
    cursors = [request.params["cursor"] for request in client.service.requests[1:]]
    assert len(set(cursors)) == 2


@pytest.mark.parametrize(("fault", "cursor"), [("null-cursor@*", None), ("empty-cursor@*", "")])
def test_the_last_cursor_can_be_null_or_empty(
    sandbox: Sandbox, fault: str, cursor: str | None
) -> None:
    """All pages before the last have a real one."""
    client = sandbox(*ABCD, faults=[fault])
    first = client.get(pageSize=3).json()
    last = client.get(pageSize=3, cursor=first["nextCursor"]).json()
    assert first["nextCursor"]
    assert last["nextCursor"] == cursor


@pytest.mark.parametrize("back", [1, 9])
def test_cursors_can_go_in_a_circle(sandbox: Sandbox, back: int) -> None:
    """`back` counts the pages back to the cursor that is repeated; at most, it is the first."""
    client = sandbox(*ABCD, faults=[f"same-cursor:back={back}@3"])
    _, first = client.page(pageSize=1)
    _, second = client.page(pageSize=1, cursor=first)
    assert client.page(pageSize=1, cursor=second) == (["b"], first)


def test_hidden_events_appear_with_their_request(sandbox: Sandbox) -> None:
    """A request with a lower number does not find them."""
    client = sandbox(*ABCD[:1])
    client.service.add(ABCD[1:2], visible_from_request=3)
    client.service.add_raw(
        [b'{"id":"r","occurredAt":"2024-01-01T00:00:00Z","action":{"type":"t"}}'], 3
    )
    assert [sorted(client.page()[0]) for _ in range(3)] == [["a"], ["a"], ["a", "b", "r"]]


def test_late_events_appear_once_the_newest_was_served(sandbox: Sandbox) -> None:
    """An export that has passed their position misses them; the next one does not."""
    client = sandbox(
        an_event(id="old", at="2024-01-01T00:00:00Z"), an_event(id="new", at="2024-01-03T00:00:00Z")
    )
    client.service.add_late([an_event(id="late", at="2024-01-02T00:00:00Z")])
    assert client.ids(order="asc", pageSize=1) == ["old", "new"]
    assert client.ids(order="asc", pageSize=1) == ["old", "late", "new"]


def test_an_ignored_cursor_leads_to_the_first_page_again(sandbox: Sandbox) -> None:
    """Each of these pages has a new cursor, so the pages never end."""
    client = sandbox(*ABCD, faults=["ignore-cursor@2-"])
    parameters = {"pageSize": 2, "order": "asc", "startTime": "2024-01-01T00:00:00Z"}
    pages, cursors, cursor = [], [], None
    for _ in range(4):
        given = parameters if cursor is None else parameters | {"cursor": cursor}
        page, cursor = client.page(**given)
        pages.append(page)
        cursors.append(cursor)
    assert pages == [["a", "b"]] * 4
    assert len(set(cursors) - {None}) == 4
    assert client.service.violations == []


@pytest.mark.parametrize(
    ("fault", "expected"),
    [("ignore-start@*", ["s-0", "s-1", "s-2"]), ("ignore-end@*", ["s-1", "s-2", "s-3"])],
)
def test_a_bound_can_be_ignored(sandbox: Sandbox, fault: str, expected: list[str]) -> None:
    """The fault holds on every page, and the other bound is respected."""
    client = sandbox(*SECONDS[:4], faults=[fault])
    bounds = {"startTime": "2024-05-06T07:00:01Z", "endTime": "2024-05-06T07:00:02Z"}
    assert client.ids(**bounds, order="asc", pageSize=2) == expected


def test_a_displaced_event_is_served_that_many_places_later(sandbox: Sandbox) -> None:
    """It is served once, whatever the page size is."""
    client = sandbox(*SECONDS, faults=["displaced:places=3,event=2@*"])
    expected = ["s-0", "s-2", "s-3", "s-4", "s-1", "s-5", "s-6", "s-7", "s-8"]
    for size in range(1, 11):
        assert client.ids(order="asc", pageSize=size) == expected


def test_the_time_filter_stays_correct_for_a_displaced_event(sandbox: Sandbox) -> None:
    """A result contains it if the range includes its time, and at the latest as the last event."""
    client = sandbox(*SECONDS, faults=["displaced:places=3,event=4@*"])

    def window(first: int, last: int) -> list[str]:
        bounds = {f"{name}Time": f"2024-05-06T07:00:{second:02}Z"
                  for name, second in (("start", first), ("end", last))}  # fmt: skip
        return client.ids(**bounds, order="asc", pageSize=2)

    assert window(0, 2) == ["s-0", "s-1", "s-2"]
    assert window(2, 8) == ["s-2", "s-4", "s-5", "s-6", "s-3", "s-7", "s-8"]
    assert window(2, 4) == ["s-2", "s-4", "s-3"]
    assert window(3, 3) == ["s-3"]
    assert window(4, 8) == ["s-4", "s-5", "s-6", "s-7", "s-8"]
