"""The envelope: one list of events, of bounded length, and a cursor."""

import pytest

from tap_audit_events.errors.exceptions import ContractError, RetryableError
from tap_audit_events.events.exact_json import encode
from tap_audit_events.events.page import parse_page
from tests.builders import an_event
from tests.events.bodies import an_envelope


def test_a_thousand_events_are_a_page_and_more_are_not() -> None:
    """No more events can be requested; members that are not events count as well."""
    texts = [encode({"id": f"{n}", "occurredAt": "2026-01-01T00:00:00Z"}) for n in range(1001)]
    assert parse_page(an_envelope(*texts[:1000])).ids == [f"{n}" for n in range(1000)]
    for members in (texts, texts * 3, [b"0"] * 1001):
        with pytest.raises(ContractError, match=r"AE-TOO-MANY-EVENTS: .* \(more than 1,000\)"):
            parse_page(an_envelope(*members))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"auditEvents": {}}', "Expected `array`, got `object` - at `$.auditEvents`"),
        (b'{"auditEvents": null}', "Expected `array`, got `null` - at `$.auditEvents`"),
        (
            b'{"auditEvents": [], "nextCursor": 5}',
            "Expected `str | null`, got `int` - at `$.nextCursor`",
        ),
    ],
)
def test_a_page_of_another_form_is_an_error(body: bytes, problem: str) -> None:
    """`auditEvents` is a list, and `nextCursor` a string. The error shows the body."""
    with pytest.raises(ContractError, match=r"AE-ENVELOPE: .*not a page of audit events") as raised:
        parse_page(body)
    assert raised.value.details == f"'{problem}'; it begins '{body.decode()}'"


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b"null",
        b"7",
        b'{"errCode": "busy", "msg": "Wait", "vars": null}',
        b'{"data": {"auditEvents": []}}',
    ],
)
def test_json_without_events_does_not_come_from_the_service(body: bytes) -> None:
    """A gateway may send its own errors with status 200. The request is retried."""
    with pytest.raises(RetryableError, match="AE-GATEWAY") as raised:
        parse_page(body)
    assert raised.value.details == f"status 200, body '{body.decode()}'"


def test_a_null_cursor_is_treated_as_absent() -> None:
    """`nextCursor: null` means the same as no `nextCursor`."""
    page = parse_page(b'{"auditEvents": [], "nextCursor": null}')
    assert page.next_cursor is None
    assert not page.has_empty_cursor


def test_an_empty_cursor_is_treated_as_absent() -> None:
    """The page's events are kept, and the page says that the cursor was empty."""
    page = parse_page(an_envelope(encode(an_event()), cursor=""))
    assert page.ids == ["event-1"]
    assert page.next_cursor is None
    assert page.has_empty_cursor


NAME = "auditEvents"
ESCAPED = [NAME.replace(each, f"\\u{ord(each):04{case}}", 1) for each in NAME for case in "xX"]


@pytest.mark.parametrize("name", [NAME, *ESCAPED])
def test_two_lists_of_events_are_an_error(name: str) -> None:
    """Only one list would be read and the other lost, even if its name is written with escapes."""
    key, event = f'"{name}"'.encode(), encode(an_event())
    for body in (
        b'{"auditEvents":[%b],%b:[]}' % (event, key),
        b'{"auditEvents":[0],%b:[]}' % key,
        b'{"auditEvents":[0],%b:[%b]}' % (key, event),
        b'{"auditEvents":[0],%b:[%b]}' % (key, b",".join([event] * 9)),
        b'{%b:[0],"auditEvents":[],"nextCursor":"next"}' % key,
    ):
        with pytest.raises(
            ContractError, match=r"AE-ENVELOPE: .*\(it contains auditEvents more than once\)"
        ):
            parse_page(body)


@pytest.mark.parametrize("name", ["nextCursor", "next\\u0043ursor"])
def test_two_cursors_are_an_error(name: str) -> None:
    """If the service sends two cursors, neither is used: either may lead further."""
    body = b'{"nextCursor": "next", "auditEvents": [], "%b": null}' % name.encode()
    with pytest.raises(ContractError, match=r"\(it contains nextCursor more than once\)"):
        parse_page(body)


def test_a_field_named_like_the_list_of_events_is_kept() -> None:
    """In an event, `auditEvents` is a field like any other, even if it is repeated."""
    event = encode(an_event(auditEvents=[{"auditEvents": []}], entity={"auditEvents": 1}))
    page = parse_page(an_envelope(event, event.replace(b"event-1", b"event-2")))
    assert page.ids == ["event-1", "event-2"]
