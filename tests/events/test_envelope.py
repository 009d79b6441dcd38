"""The envelope: one list of events, of bounded length, and a cursor."""

import pytest

from tap_audit_events.errors.exceptions import ContractError
from tap_audit_events.events.exact_json import encode
from tap_audit_events.events.page import parse_page
from tests.builders import an_event
from tests.events.bodies import an_envelope


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b"null",
        b'{"auditEvents": {}}',
        b'{"auditEvents": null}',
        b'{"auditEvents": [], "nextCursor": 5}',
    ],
)
def test_json_that_is_no_page_is_an_error(body: bytes) -> None:
    """An envelope needs its list of events, and a cursor is a string."""
    with pytest.raises(ContractError, match="not a page of audit events"):
        parse_page(body)


def test_a_null_cursor_is_none() -> None:
    """`nextCursor: null` says the same as leaving it out."""
    page = parse_page(b'{"auditEvents": [], "nextCursor": null}')
    assert page.next_cursor is None
    assert not page.has_empty_cursor


def test_an_empty_cursor_is_treated_as_absent() -> None:
    """The page's events are kept, and the page says that the cursor was empty."""
    page = parse_page(an_envelope(encode(an_event()), cursor=""))
    assert page.ids == ["event-1"]
    assert page.next_cursor is None
    assert page.has_empty_cursor


@pytest.mark.parametrize("key", [b'"auditEvents"', rb'"audit\u0045vents"'])
def test_two_lists_of_events_are_an_error(key: bytes) -> None:
    """Only one of them would be read, and the events of the other lost."""
    event = encode(an_event())
    with pytest.raises(ContractError, match="more than once"):
        parse_page(b'{"auditEvents": [%b], %b: []}' % (event, key))


def test_a_field_named_like_the_list_of_events_is_kept() -> None:
    """In an event it is a field like any other, however often it comes."""
    event = encode(an_event(auditEvents=[{"auditEvents": []}], entity={"auditEvents": 1}))
    page = parse_page(an_envelope(event, event.replace(b"event-1", b"event-2")))
    assert page.ids == ["event-1", "event-2"]
