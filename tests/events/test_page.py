"""A page's bytes become events, and lose nothing on the way."""

import json
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import ContractError, RetryableError
from tap_audit_events.events.exact_json import encode, read_record
from tap_audit_events.events.page import parse_page
from tests.builders import an_event
from tests.events.bodies import an_envelope, only_record

storable_text = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20
)
numbers = st.one_of(
    st.integers(),
    st.integers(-(10**60), 10**60),
    st.decimals(allow_nan=False, allow_infinity=False),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, storable_text),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(storable_text, inner, max_size=4)
    ),
    max_leaves=20,
)
records = st.builds(
    lambda details, extra: (
        extra | an_event(action={"type": "new_type", "details": details}) | {"note": extra}
    ),
    st.dictionaries(storable_text, values, max_size=5),
    st.dictionaries(storable_text.map("x{}".format), values, max_size=3),
)
_encode = msgspec.json.Encoder(decimal_format="number").encode


def exact(text: bytes) -> Any:
    """JSON as Python's own parser reads it, numbers as exact as they are written."""
    return json.loads(text, parse_float=Decimal)


@given(st.lists(records, max_size=5), st.none() | st.text(min_size=1, max_size=50))
def test_what_leaves_equals_what_came(events: list[dict[str, Any]], cursor: str | None) -> None:
    """Every value of every field survives, known or not, with all its digits."""
    texts = [_encode(event) for event in events]
    body = an_envelope(*texts, cursor=cursor)
    page = parse_page(body)
    assert page.malformed is None
    assert page.next_cursor == cursor
    assert [exact(_encode(read_record(text))) for text in page.texts] == list(map(exact, texts))
    assert list(map(bytes, page.texts)) == texts


@pytest.mark.parametrize("escaped", [True, False])
@given(st.data())
def test_white_space_and_escapes_do_not_matter(escaped: bool, data: st.DataObject) -> None:
    """The service's layout is its own affair."""
    event = data.draw(records)
    text = json.dumps(event, ensure_ascii=escaped, indent=3, default=float).encode()
    text = text.replace(b"\n", data.draw(st.sampled_from([b"\n", b"\r\n", b"\r", b" \t\n"])))
    assert exact(_encode(only_record(an_envelope(text)))) == exact(text)
    (left,) = parse_page(an_envelope(text)).texts
    assert exact(bytes(left)) == exact(text)
    assert not {b"\n", b"\r"} & set(map(bytes, zip(bytes(left), strict=True)))


@pytest.mark.parametrize(
    "number",
    [
        "18446744073709551616",
        "-" + "9" * 300,
        "7" * 6000,
        "0." + "123456789" * 40,
        "1.50",
        "-0.0",
        "1e400",
        "-2.5E-400",
        "1e9999999999999999999",
    ],
)
def test_a_number_of_any_length_keeps_its_value(number: str) -> None:
    """Numbers beyond 64 bits, beyond doubles and beyond `decimal` leave as they came."""
    text = _encode(an_event()).replace(b'"Research"', number.encode(), 1)
    encoded = encode(only_record(an_envelope(text)))
    sent, left = (json.loads(each, parse_int=str, parse_float=str) for each in (text, encoded))
    number_left = left["action"]["details"]["fields"]["name"]
    assert number_left.upper().replace("E+", "E") == number.upper()
    assert left | {"action": None} == sent | {"action": None}


@pytest.mark.parametrize(
    "also",
    [
        b'"2026-01-01T00:00:00.10+00:00"',
        b'{"occurredAt": "2026-01-01T00:00:00.10+00:00"}',
        rb'"\"2026-01-01T00:00:00.10+00:00\""',
    ],
)
@pytest.mark.parametrize(
    "sent", [b"2026-01-01T00:00:00.10+00:00", rb"2026-01-01T00:00:00.10\u002b00:00"]
)
def test_only_the_time_of_the_event_is_rewritten(sent: bytes, also: bytes) -> None:
    """The same text elsewhere in the event stays, however the time itself is written."""
    text = b'{"entity": %b, "occurredAt": "%b", "id": "a", "n": 1.50}' % (also, sent)
    page = parse_page(an_envelope(text))
    expected = (
        b'{"entity": %b, "occurredAt": "2026-01-01T00:00:00.10Z", "id": "a", "n": 1.50}' % also
    )
    assert json.loads(bytes(page.texts[0])) == json.loads(expected)
    assert b"1.50" in bytes(page.texts[0])
    assert page.instants == ["2026-01-01T00:00:00.1"]


@pytest.mark.parametrize(
    ("sent", "left"),
    [
        ("2026-01-01T02:00:00.500+02:00", "2026-01-01T00:00:00.500Z"),
        ("2026-01-01t00:00:00z", "2026-01-01T00:00:00Z"),
        ("2016-12-31T23:59:60.1Z", "2017-01-01T00:00:00.1Z"),
        ("2026-01-01T00:00:00.1234567890123Z", "2026-01-01T00:00:00.1234567890123Z"),
    ],
)
def test_a_time_leaves_in_utc_form(sent: str, left: str) -> None:
    """Only a time in another form is rewritten, and keeps all its digits."""
    assert only_record(an_envelope(_encode(an_event(at=sent))))["occurredAt"] == left


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>sign in</html>", b'{"auditEvents": [', b"\xff\xfe{}", b'{"auditEvents": [NaN]}'],
)
def test_a_body_that_is_no_json_may_be_asked_for_again(body: bytes) -> None:
    """Cut bodies and the pages of proxies are no JSON, and may pass."""
    with pytest.raises(RetryableError, match="not JSON"):
        parse_page(body)


@pytest.mark.parametrize(
    "bad",
    [
        b"{}",
        b"7",
        b"null",
        b'{"id": "x"}',
        b'{"id": null, "occurredAt": "2026-01-01T00:00:00Z"}',
        b'{"id": 7, "occurredAt": "2026-01-01T00:00:00Z"}',
        b'{"id": "", "occurredAt": "2026-01-01T00:00:00Z"}',
        b'{"id": "x", "occurredAt": 1767225600}',
        b'{"id": "x", "occurredAt": "2026-01-01"}',
        rb'{"id": "x", "occurredAt": "2026-01-01T00:00:00Z\n"}',
    ],
)
def test_events_before_one_that_cannot_be_used_are_kept(bad: bytes) -> None:
    """A page ends before the first event without a usable id or time, and names that event."""
    good = [_encode(an_event(id=name)) for name in ("one", "two")]
    page = parse_page(an_envelope(*good, bad, _encode(an_event(id="four"))))
    assert page.ids == ["one", "two"]
    assert len(page.instants) == len(page.texts) == 2
    assert "event 3 of the page" in str(page.malformed)


def test_nesting_beyond_the_parser_is_an_error() -> None:
    """A body that is nested too deep is named as such, and is no crash."""
    deep = b"[" * 100_000 + b"]" * 100_000
    with pytest.raises(ContractError, match="nested too deeply"):
        parse_page(an_envelope(deep))


def on_a_deeper_stack(read: Callable[[], object], *, calls: int = 50) -> None:
    if calls:
        on_a_deeper_stack(read, calls=calls - 1)
    else:
        read()


@pytest.mark.parametrize("name", ["Research", "\0"])
def test_a_depth_just_below_the_limit_is_read_or_refused(name: str) -> None:
    """Parts of a page are read on a deeper stack than others; no depth is a crash."""

    def nested(depth: int) -> bytes:
        event = json.dumps(an_event(entity={"name": name}, note="…")).encode()
        return an_envelope(event.replace(rb'"\u2026"', b"[" * depth + b"]" * depth))

    def is_refused(depth: int) -> bool:
        try:
            parse_page(nested(depth))
        except ContractError:
            return True
        return False

    too_deep = bisect_left(range(100_000), True, key=is_refused)
    assert 0 < too_deep < 100_000
    for depth in range(too_deep - 100, too_deep):
        with suppress(ContractError):
            on_a_deeper_stack(partial(parse_page, nested(depth)))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_page_or_a_documented_error(body: bytes) -> None:
    """Nothing but the documented errors comes out of a body."""
    with suppress(RetryableError, ContractError):
        parse_page(body)
