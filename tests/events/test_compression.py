"""A page that waits is compressed, and comes back as it was."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.compression import compress, decompress
from tap_audit_events.events.page import Page, parse_page
from tap_audit_events.sandbox import generate
from tests.builders import an_event
from tests.events.bodies import an_envelope
from tests.events.test_page import _encode as encode_exactly
from tests.events.test_page import records


def check_comes_back(page: Page) -> None:
    """Check that a page comes back as it was; its texts may be of another type."""
    held = compress(page)
    again = decompress(held)
    assert list(map(bytes, again.texts)) == list(map(bytes, page.texts))
    assert replace(again, texts=(), size=0) == replace(page, texts=(), size=0)


@given(st.lists(records, max_size=5), st.none() | st.text(min_size=1, max_size=50))
def test_a_page_that_waited_is_as_it_was(events: list[dict[str, Any]], cursor: str | None) -> None:
    """Ids, instants, texts and cursor survive to the last byte, whatever the events hold."""
    check_comes_back(parse_page(an_envelope(*map(encode_exactly, events), cursor=cursor)))


@pytest.mark.parametrize(
    "event",
    [
        b'{"id": "1",\n"occurredAt":\r\n"2024-05-06T07:08:09Z"}',
        b'{"id": "\\n\\u2028", "occurredAt": "2024-05-06T07:08:09Z", "note": "\\n"}',
        b'{"id": "1", "occurredAt": "2024-05-06T09:08:09.10+02:00"}',
        b'{"id": "1", "occurredAt": "2024-05-06T07:08:09Z", "note": "\\u0000\\ud800"}',
    ],
    ids=["line breaks", "escaped line breaks", "another time zone", "repaired text"],
)
def test_texts_are_kept_apart(event: bytes) -> None:
    """Each is on a line of its own, however the service wrote it."""
    page = parse_page(an_envelope(event, event, event))
    assert len(page.texts) == 3
    check_comes_back(page)


def test_what_else_a_page_knows_is_kept() -> None:
    """That it ends before a malformed event, and that its cursor was empty."""
    page = parse_page(an_envelope(encode_exactly(an_event()), b'{"id": 5}', cursor=""))
    assert page.malformed is not None
    assert page.has_empty_cursor
    check_comes_back(page)


def test_a_page_without_events_is_not_compressed() -> None:
    """There is nothing to compress."""
    page = parse_page(an_envelope())
    assert compress(page) is page
    assert decompress(page) is page


def test_a_page_that_waits_takes_a_third_of_its_bytes() -> None:
    """What is counted as held are the compressed columns; until then it is the body."""
    events = generate(1000, 30, 1, datetime.now(UTC))
    page = parse_page(an_envelope(*map(encode_exactly, events)))
    held = compress(page)
    assert held.compressed is not None
    assert held.size == len(held.compressed)
    assert held.size < page.size / 3
    assert (held.ids, held.instants, held.texts) == ((), (), ())
