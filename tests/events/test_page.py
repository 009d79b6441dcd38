"""The bytes of a page become events without any loss."""

import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import ContractError, RetryableError
from tap_audit_events.events.exact_json import encode, read_record
from tap_audit_events.events.page import MAX_EVENT_BYTES, MAX_LEVELS, parse_page
from tests.builders import TOO_DEEP, an_event
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
    """JSON as Python's own parser reads it, with exact numbers."""
    return json.loads(text, parse_float=Decimal)


@given(st.lists(records, max_size=5), st.none() | st.text(min_size=1, max_size=50))
def test_events_are_delivered_as_they_were_sent(
    events: list[dict[str, Any]], cursor: str | None
) -> None:
    """Every value of every field is kept with all its digits, whether the field is known or not."""
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
    """The service may lay out and escape its JSON as it likes; no event contains a line end."""
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
        "7" * 6000,
        "0." + "123456789" * 40,
        "1.50",
        "1e400",
        "-2.5E-400",
        "1e9999999999999999999",
    ],
)
def test_a_number_of_any_length_keeps_its_value(number: str) -> None:
    """Numbers beyond 64 bits, beyond doubles and beyond `decimal` are written as they were sent."""
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
    """The same text elsewhere in the event is kept, even if the time is written with escapes."""
    text = b'{"entity": %b, "occurredAt": "%b", "id": "a", "n": 1.50}' % (also, sent)
    page = parse_page(an_envelope(text))
    expected = (
        b'{"entity": %b, "occurredAt": "2026-01-01T00:00:00.10Z", "id": "a", "n": 1.50}' % also
    )
    assert json.loads(bytes(page.texts[0])) == json.loads(expected)
    assert b"1.50" in bytes(page.texts[0])
    assert page.instants == ["2026-01-01T00:00:00.1"]


SIGN_IN = b"<html>sign in</html>"


@pytest.mark.parametrize(
    ("body", "problem", "start"),
    [
        (b"", "Input data was truncated", ""),
        (b'{"auditEvents": [', "Input data was truncated", '{"auditEvents": ['),
        (b'{"auditEvents": [{"id": NaN', "JSON is malformed", '{"auditEvents": [{"id": NaN'),
        (b'{"auditEvents": [{"id": "\xff', "'utf-8' codec", r'{"auditEvents": [{"id": "\xff'),
        (b'{"auditEvents": []}{}', "JSON is malformed", '{"auditEvents": []}{}'),
        (b'{"auditEvents": []]}', "JSON is malformed", '{"auditEvents": []]}'),
        (b'{"x": NaN}', "JSON is malformed", '{"x": NaN}'),
        (b'{"x": "%b' % (b"y" * 99), "Input data was truncated", '{"x": "' + "y" * 73 + "…"),
    ],
)
def test_a_body_that_is_not_json_may_be_requested_again(
    body: bytes, problem: str, start: str
) -> None:
    """Cut bodies may be temporary; the error shows how the body begins."""
    with pytest.raises(RetryableError, match=r"AE-NO-JSON: .*not JSON") as raised:
        parse_page(body)
    assert raised.value.details.startswith(problem)
    assert raised.value.details.endswith(f"; it begins {start!r}")


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (SIGN_IN, "body '<html>sign in</html>'"),
        (b"\n <!DOCTYPE html><title>\n Sign\n in</title>" + SIGN_IN, "a page titled 'Sign in'"),
        (SIGN_IN * 300, f"body '{(SIGN_IN.decode() * 300)[:300]}…'"),
        (b"\xff\xfe{}", r"body '\\xff\\xfe{}'"),
        (b"while(1); {}", "body 'while(1); {}'"),
    ],
)
def test_a_body_that_does_not_begin_like_json_comes_from_a_gateway(body: bytes, shown: str) -> None:
    """The error shows the title of a web page, or how another body begins."""
    with pytest.raises(RetryableError, match="AE-GATEWAY") as raised:
        parse_page(body)
    assert raised.value.details == f"status 200, {shown}"


GOOD = b'{"id": "a", "occurredAt": "2026-01-01T00:00:00Z"}'
NO_JSON = (
    b"NaN",
    b'{"id": "b", "occurredAt": "2026-01-01T00:00:00Z", "x": NaN}',
    b'{"id": "b", "x": [-Infinity, {}]}',
    b'{"id": "b", "x": "tab\t"}',
    b'{"id": "b", "x": "\x00"}',
    b'{"id": "b", "x": 01}',
    b'{"id": "b", "x": "\\q\\""}',
    b'{"id": "b",}',
    b"{'id': 'b'}",
    b"",
)


@pytest.mark.parametrize("bad", NO_JSON)
@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("end", [b', "nextCursor": "c"}', b"}\n"])
def test_an_event_that_is_not_json_is_named(bad: bytes, count: int, end: bytes) -> None:
    """The service would send it again, so the events before it are kept and nothing is retried."""
    good = [GOOD, GOOD, GOOD.replace(b"a", rb"\u0000", 1)][:count]
    body = b' {"auditEvents": [%b]%b' % (b" , ".join([*good, bad, GOOD]), end)
    page = parse_page(body)
    assert page.malformed is not None
    assert page.malformed.code == "AE-EVENT"
    if count < 3:
        assert page.ids == ["a"] * count
        assert f"event {count + 1} of the page is not JSON: " in page.malformed.details
    else:  # the third has an id that cannot be stored
        assert page.ids == ["a", "a"]
        assert "event 3 of the page: its id" in page.malformed.details


def test_a_body_that_is_not_json_outside_of_its_events_is_an_error() -> None:
    """It is complete, so the service would send it again."""
    bodies = (
        b'{"auditEvents": [%b], "x": NaN}' % GOOD,
        b'{"auditEvents": [],}',
        b'{"auditEvents": [%b, NaN], "auditEvents": [NaN]}' % GOOD,
    )
    for body in bodies:
        with pytest.raises(ContractError, match=r"AE-ENVELOPE: .*outside of its events"):
            parse_page(body)


def test_a_body_that_is_cut_anywhere_is_not_json() -> None:
    """The cut may be within an escape or a character."""
    escaped = json.dumps(an_event(entity={"name": 'a\\ "\0é'})).encode()
    body = an_envelope(escaped, encode({"name": "é€"}))
    assert parse_page(body).ids == ["event-1"]
    for length in range(len(body)):
        with pytest.raises(RetryableError, match="AE-NO-JSON"):
            parse_page(body[:length])


NO_TIME = "occurredAt is not an RFC 3339 date-time with an offset, such as "


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b"{}", "Object missing required field `id`"),
        (b"7", "Expected `object`, got `int`"),
        (b'{"id": "x"}', "Object missing required field `occurredAt`"),
        (b'{"id": 7, "occurredAt": "2026-01-01T00:00:00Z"}', "Expected `str`, got `int`"),
        (b'{"id": "", "occurredAt": "2026-01-01T00:00:00Z"}', "Expected `str` of length >= 1"),
        (b'{"id": "x", "occurredAt": 1767225600}', "Expected `str`, got `int` - at `$.occurredAt`"),
        (b'{"id": "x", "occurredAt": "2026-01-01"}', NO_TIME),
        (rb'{"id": "x", "occurredAt": "2026-01-01T00:00:00Z\n"}', NO_TIME),
        (
            b'{"id": "x", "occurredAt": "2026-02-30T00:00:00Z"}',
            "occurredAt is not a date-time",
        ),
    ],
)
@pytest.mark.parametrize("count", [0, 1, 2])
def test_events_before_one_that_cannot_be_used_are_kept(
    bad: bytes, problem: str, count: int
) -> None:
    """A page ends before the first event without a usable id or time; its error shows the event."""
    good = [
        encode(an_event(id=name, at=at)).replace(b"{", b"{ ", 1)
        for name, at in [("one", "2026-01-01T01:00:00.50+01:00"), ("two", "2026-01-01T00:00:01Z")]
    ]
    body = an_envelope(*good[:count], bad, encode(an_event(id="four")), cursor="next")
    page = parse_page(body)
    assert page.ids == ["one", "two"][:count]
    assert page.instants == ["2026-01-01T00:00:00.5", "2026-01-01T00:00:01"][:count]
    left = [read_record(text)["occurredAt"] for text in page.texts]
    assert left == ["2026-01-01T00:00:00.50Z", "2026-01-01T00:00:01Z"][:count]
    assert list(map(bytes, page.texts[1:])) == good[1:count]  # in the bytes that were sent
    assert (page.next_cursor, page.size) == ("next", len(body))
    assert page.malformed is not None
    assert page.malformed.code == "AE-EVENT"
    assert page.malformed.details.startswith(f"event {count + 1} of the page: {problem}")
    assert page.malformed.details.endswith(f": {bad.decode()!r}")


@pytest.mark.parametrize(("field", "most"), [("id", 1000), ("occurredAt", 100)])
def test_ids_and_times_have_a_greatest_length(field: str, most: int) -> None:
    """It is counted in characters; the page ends before an event with a longer one."""
    longest = {"id": "é" * 1000, "occurredAt": f"2026-01-01T00:00:00.{'1' * 79}Z"}
    assert len(longest[field]) == most
    page = parse_page(an_envelope(encode(longest)))
    assert (page.malformed, page.ids) == (None, [longest["id"]])
    longest[field] = longest[field].replace(longest[field][-2], longest[field][-2] * 2, 1)
    page = parse_page(an_envelope(encode(longest)))
    assert page.ids == []
    assert f"Expected `str` of length <= {most} - at `$.{field}`" in str(page.malformed)


def test_an_event_has_a_greatest_size() -> None:
    """An event of that size is read; the page ends before one that is a byte larger."""
    small = encode(an_event(id="a", at="2024-05-06T08:00:00Z"))
    shortest = encode(an_event(id="b", at="2024-05-06T08:00:01Z") | {"padding": ""})
    padding = MAX_EVENT_BYTES - len(shortest)
    largest = shortest.replace(b'"padding":""', b'"padding":"%b"' % (b"x" * padding))
    too_large = largest.replace(b'"padding":"', b'"padding":"x')
    assert len(largest) == MAX_EVENT_BYTES
    page = parse_page(an_envelope(small, largest))
    assert (len(page.ids), page.malformed) == (2, None)
    page = parse_page(an_envelope(largest, too_large))
    assert page.ids == ["b"]
    assert page.malformed is not None
    assert page.malformed.code == "AE-EVENT-SIZE"
    sizes = f"event 2 of the page: it has {MAX_EVENT_BYTES + 1:,} bytes; the most is"
    assert f"{sizes} {MAX_EVENT_BYTES:,}" in page.malformed.details


def test_nesting_beyond_the_parser_is_an_error() -> None:
    """The page ends before an event that is nested too deeply; there is no crash."""
    page = parse_page(an_envelope(GOOD, TOO_DEEP, GOOD))
    assert page.ids == ["a"]
    assert page.malformed is not None
    assert page.malformed.code == "AE-NESTING"
    assert page.malformed.details.startswith("event 2 of the page: ")
    with pytest.raises(ContractError, match="nested too deeply"):
        parse_page(b'{"auditEvents": [], "x": %b}' % TOO_DEEP)


def _nested(levels: int) -> bytes:
    deep = b"[" * (levels - 1) + b"]" * (levels - 1)
    return GOOD.replace(b"}", b', "x": %b}' % deep)


UNUSABLE = {
    **dict.fromkeys(NO_JSON, "AE-EVENT"),
    b'{"id": "b", "x": "\xff\xed\xa0\x80"}': "AE-EVENT",
    b"7": "AE-EVENT",
    b'{"id": "b"}': "AE-EVENT",
    b'{"id":\r\n"b"}': "AE-EVENT",
    GOOD.replace(b"00Z", b"61Z"): "AE-EVENT",
    GOOD.replace(b'"a"', rb'"\u0000"'): "AE-EVENT",
    GOOD.replace(b'"a"', rb'"\ud800 \\"'): "AE-EVENT",
    _nested(MAX_LEVELS + 1): "AE-NESTING",
    _nested(2_000): "AE-NESTING",
}
"""Events that cannot be used, each with the code of its error."""

USABLE = (
    GOOD,
    b'{"id": "c", "occurredAt": "2026-01-01T01:00:00+01:00", "x": "\xf0\x9f\x98\x80"}',
    b'{"id": "d", "occurredAt": "2026-01-01T00:00:00Z", "x": "\\u0000"}',
    _nested(MAX_LEVELS),
)


@given(
    st.lists(st.sampled_from([*UNUSABLE, *USABLE]), max_size=6).filter(lambda each: each != [b""]),
    st.sampled_from([None, "next", "a\0b"]),
    st.booleans(),
)
def test_events_that_cannot_be_used_are_set_aside(
    events: list[bytes], cursor: str | None, has_mark: bool
) -> None:
    """The page is what it would be without them, and has each of them as it was sent."""
    mark = b"\xef\xbb\xbf" * has_mark
    page = parse_page(mark + an_envelope(*events, cursor=cursor), sets_aside=True)
    usable = [event for event in events if event in USABLE]
    expected = parse_page(an_envelope(*usable, cursor=cursor))
    assert list(page.ids) == list(expected.ids)
    assert list(page.instants) == list(expected.instants)
    assert list(map(bytes, page.texts)) == list(map(bytes, expected.texts))
    assert (page.next_cursor, page.malformed) == (cursor, None)
    found = {each.position: (each.text, each.error.code) for each in page.unusable}
    assert found == {
        position: (event, UNUSABLE[event])
        for position, event in enumerate(events)
        if event in UNUSABLE
    }
    for position, _, error in page.unusable:
        assert f"event {position + 1} of the page" in error.details


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (encode(an_event(id="b", note="x" * MAX_EVENT_BYTES)), "AE-EVENT-SIZE"),
        (TOO_DEEP, "AE-NESTING"),
    ],
    ids=["large", "deep"],
)
def test_an_event_that_is_too_large_or_deep_is_set_aside(event: bytes, code: str) -> None:
    """Its text is kept, however large it is, and however deeply it is nested."""
    page = parse_page(an_envelope(GOOD, event, GOOD), sets_aside=True)
    assert page.ids == ["a", "a"]
    ((position, text, error),) = page.unusable
    assert (position, text, error.code) == (1, event, code)


def test_brackets_in_texts_and_beside_each_other_are_no_levels() -> None:
    """An event with the most levels is not set aside, however many brackets it has."""
    others = b', "y": "\\"%b", "z": [[], {}]}' % (b"[" * MAX_LEVELS)
    page = parse_page(an_envelope(_nested(MAX_LEVELS).replace(b"}", others)), sets_aside=True)
    assert (page.ids, list(page.unusable)) == (["a"], [])


def test_what_concerns_the_page_is_not_set_aside() -> None:
    """Such a page might hide events or further pages."""
    for body in (b'{"auditEvents": [%b], "x": NaN}' % GOOD, b'{"auditEvents": 7}', b"{}"):
        with pytest.raises((ContractError, RetryableError)):
            parse_page(body, sets_aside=True)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_page_or_a_documented_error(body: bytes) -> None:
    """No body leads to any other exception."""
    for sets_aside in (False, True):
        with suppress(RetryableError, ContractError):
            parse_page(body, sets_aside=sets_aside)


@pytest.mark.parametrize(
    ("seconds", "is_ascending", "oldest", "newest"),
    [
        ([3], True, 3, 3),
        ([1, 2, 2, 5], True, 1, 5),
        ([5, 2, 1], False, 1, 5),
        ([2, 1, 5, 3], False, 1, 5),
    ],
)
def test_a_page_knows_the_order_of_its_times(
    seconds: list[int], is_ascending: bool, oldest: int, newest: int
) -> None:
    """Events of the same time count as ascending."""
    events = [encode(an_event(at=f"2026-01-01T00:00:0{each}Z")) for each in seconds]
    page = parse_page(an_envelope(*events))
    assert page.is_ascending == is_ascending
    bounds = [f"2026-01-01T00:00:0{each}" for each in (oldest, newest)]
    assert [page.oldest, page.newest] == bounds
