"""The contents of a page, and the order of pages: interface.md 2.7 and 4.1."""

from typing import Any

from tests.builders import an_event
from tests.sandbox.conftest import Sandbox


def hundreds(count: int) -> list[dict[str, Any]]:
    """Return the events e-000, e-001 and so on, one in each second."""
    return [
        an_event(id=f"e-{number:03}", at=f"2024-05-06T07:{number // 60:02}:{number % 60:02}Z")
        for number in range(count)
    ]


def test_a_request_without_parameters_gets_the_100_newest_events_newest_first(
    sandbox: Sandbox,
) -> None:
    """4.1: pageSize is 100 and order is desc if they are not given."""
    ids, cursor = sandbox(*hundreds(101)).page()
    assert ids == [f"e-{number:03}" for number in range(100, 0, -1)]
    assert cursor is not None


def test_an_event_is_served_as_it_was_added(sandbox: Sandbox) -> None:
    """2.1: the response has every field of the event, with its value."""
    event = an_event(
        scope={"organizationId": "o", "channelId": "שאלות"}, extra=[1.5, None, "\u2028"]
    )
    response = sandbox(event).get()
    assert response.headers["Content-Type"] == "application/json"
    assert response.json() == {"auditEvents": [event]}


def test_a_raw_event_is_served_byte_for_byte(sandbox: Sandbox) -> None:
    """The numbers, escapes and white space of a raw text are not changed."""
    digits = b"9" * 5000
    text = b'{ "id":"\\u0061", "occurredAt":"2024-01-01T00:00:00Z",\t"n":' + digits
    text += b',"r":1.10E+2, "action":{"type":"\\ud800", "details":{}}}'
    client = sandbox()
    client.service.add_raw([text])
    assert client.get().content == b'{"auditEvents":[' + text + b"]}"


def test_a_filter_finds_events_that_are_added_later(sandbox: Sandbox) -> None:
    """An event that was added between two requests with a filter is found by the second."""
    client = sandbox(an_event(id="b", action_type="one"))
    assert client.ids(actionTypes="one") == ["b"]
    client.service.add([an_event(id="a", action_type="one"), an_event(id="c")])
    assert client.ids(actionTypes="one", order="asc") == ["a", "b"]


def test_a_cursor_marks_a_position_not_a_count(sandbox: Sandbox) -> None:
    """4.1, rule 3: an event that is added before the position does not move the next page."""
    client = sandbox(*hundreds(4))
    first, cursor = client.page(order="asc", pageSize=2)
    client.service.add([an_event(id="new", at="2024-05-06T07:00:00.5Z")])
    client.service.add([an_event(id="next", at="2024-05-06T07:00:01.5Z")])
    assert first == ["e-000", "e-001"]
    assert client.page(order="asc", pageSize=2, cursor=cursor)[0] == ["next", "e-002"]


def test_a_cursor_is_accepted_only_if_it_is_percent_encoded(sandbox: Sandbox) -> None:
    """4.1, rule 3: a cursor is opaque, so it may contain any character."""
    client = sandbox(*hundreds(2))
    _, cursor = client.page(pageSize=1)
    assert cursor is not None
    assert set("+/=&% ") <= set(cursor)
    raw = client.session.get(f"{client.url}?pageSize=1&cursor={cursor}")
    assert raw.status_code == 400
