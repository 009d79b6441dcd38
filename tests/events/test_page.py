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
from tap_audit_events.events.text_repair import storable
from tests.builders import an_event

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


def an_envelope(*texts: bytes, cursor: str | None = None) -> bytes:
    end = b"" if cursor is None else b', "nextCursor": ' + json.dumps(cursor).encode()
    return b'{"auditEvents": [' + b", ".join(texts) + b"]" + end + b"}"


def exact(text: bytes) -> Any:
    """JSON as Python's own parser reads it, numbers as exact as they are written."""
    return json.loads(text, parse_float=Decimal)


def only_record(body: bytes) -> dict[str, Any]:
    page = parse_page(body)
    assert page.malformed is None
    (text,) = page.texts
    return read_record(text)


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
    ("sent", "left"),
    [
        (rb'"a\u0000b"', "a\ufffdb"),
        (rb'"\ud800"', "\ufffd"),
        (rb'"\uDFFFx"', "\ufffdx"),
        (rb'"\ud800\ud800\udc00"', "\ufffd\U00010000"),
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"\\ud800 \\\\u0000"', r"\ud800 \\u0000"),
        (rb'"\\\u0000"', "\\\ufffd"),
        (rb'"\u00e9\u0001\u001f"', "é\x01\x1f"),
        (b'"\xed\xa0\xbd\xed\xb8\x80 \xed\xa0\x80"', "😀 \ufffd"),
    ],
)
def test_only_nul_and_lone_surrogates_are_replaced(sent: bytes, left: str) -> None:
    """What no loader can store becomes U+FFFD; what only looks like it stays."""
    text = _encode(an_event()).replace(b'"Research"', sent, 1)
    record = only_record(an_envelope(text))
    assert record["action"]["details"]["fields"]["name"] == left


@given(st.lists(st.sampled_from(["\ud800", "\udfff", "\0", "\\", "u0000", "ud800", "é", '"'])))
def test_unstorable_characters_are_replaced_one_by_one(pieces: list[str]) -> None:
    """The result is what replacing in the decoded text gives; surrogate pairs are characters."""
    text = "".join(pieces)
    event = json.dumps(an_event(entity={"name": text})).encode()
    pairs_joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    expected = "".join(
        "\ufffd" if letter == "\0" or "\ud800" <= letter <= "\udfff" else letter
        for letter in pairs_joined
    )
    assert only_record(an_envelope(event))["entity"]["name"] == expected


escapes = st.sampled_from(
    [rb"\ud83d", rb"\uDe00", rb"\\", rb"\u0000", b"ud83d", b"uDE00", b"u0000", rb"\n", rb"\"", b"a"]
)


@given(st.lists(escapes, max_size=12).map(b"".join))
def test_escapes_are_judged_as_json_has_them(escaped: bytes) -> None:
    """Behind an escaped backslash there is no escape, and two in a row may be one character."""
    event = _encode(an_event()).replace(b'"Research"', b'"%b"' % escaped, 1)
    joined = json.loads(b'"%b"' % escaped)
    expected = "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in joined)
    record = only_record(an_envelope(event))
    assert record["action"]["details"]["fields"]["name"] == expected


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


@pytest.mark.parametrize("others", [0, 1, 1999, 2000, 2001, 9000])
@pytest.mark.parametrize("other", [rb"\n", rb"\\", rb"\u00e9"])
def test_what_no_loader_can_store_is_found_behind_any_number_of_escapes(
    other: bytes, others: int
) -> None:
    """Each of the few is looked at; behind them the rest is searched."""
    name = b'"%b%b"' % (other * others, rb"\u0000 \ud800")
    body = an_envelope(_encode(an_event()).replace(b'"Research"', name, 1))
    left = only_record(body)["action"]["details"]["fields"]["name"]
    assert left == json.loads(b'"%b"' % other) * others + "\ufffd \ufffd"


@pytest.mark.parametrize("start", [0, *range(65_500, 65_540)])
def test_a_page_of_escaped_emoji_leaves_as_it_came(start: int) -> None:
    """A service may escape all but ASCII: such pages are as quick as others."""
    name = b'"%b%b"' % (b"a" * start, rb"\ud83d\ude00" * 3)
    body = an_envelope(_encode(an_event()).replace(b'"Research"', name, 1))
    assert storable(body) is body


def test_a_cursor_is_kept_as_it_came_if_the_page_had_to_be_changed() -> None:
    """A cursor is opaque, also beside an event that no loader can store."""
    event = json.dumps(an_event(entity={"name": "\0"})).encode()
    event = event.replace(b'"entity"', b'"number": ' + b"7" * 5000 + b', "entity"')
    assert parse_page(an_envelope(event, cursor="a\0b")).next_cursor == "a\0b"


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
    page = parse_page(an_envelope(_encode(an_event()), cursor=""))
    assert page.ids == ["event-1"]
    assert page.next_cursor is None
    assert page.has_empty_cursor


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


@pytest.mark.parametrize("bad", [rb"evt-\ud801", rb"evt-\u0000", b"evt-\xed\xa0\x80"])
def test_an_id_that_cannot_be_stored_ends_the_page(bad: bytes) -> None:
    """After the repair it might equal another event's id, which would then count as a repeat."""
    texts = [_encode(an_event(id=name)) for name in ("one", "two", "three")]
    texts[1] = texts[1].replace(b"two", bad)
    page = parse_page(an_envelope(*texts))
    assert page.ids == ["one"]
    assert len(page.instants) == len(page.texts) == 1
    assert page.malformed is not None
    assert page.malformed.code == "AE-EVENT"
    assert "event 2 of the page: its id 'evt-" in page.malformed.details
    assert page.malformed.details.endswith("cannot be stored as it is")


@pytest.mark.parametrize(
    "good", [rb"\ud83d\ude00", b"\xed\xa0\xbd\xed\xb8\x80", rb"\\ud800", b"\xef\xbf\xbd"]
)
def test_an_id_that_can_be_stored_is_kept_in_a_repaired_page(good: bytes) -> None:
    """Pairs of surrogates are characters, and U+FFFD that the service itself sent is one too."""
    text = _encode(an_event(id="it", entity={"name": "?"})).replace(b'"it"', b'"%b"' % good)
    page = parse_page(an_envelope(text.replace(b'"?"', rb'"\u0000"')))
    assert page.malformed is None
    assert len(page.ids) == 1


@pytest.mark.parametrize("key", [b'"auditEvents"', rb'"audit\u0045vents"'])
def test_two_lists_of_events_are_an_error(key: bytes) -> None:
    """Only one of them would be read, and the events of the other lost."""
    event = _encode(an_event())
    with pytest.raises(ContractError, match="more than once"):
        parse_page(b'{"auditEvents": [%b], %b: []}' % (event, key))


def test_a_field_named_like_the_list_of_events_is_kept() -> None:
    """In an event it is a field like any other, however often it comes."""
    event = _encode(an_event(auditEvents=[{"auditEvents": []}], entity={"auditEvents": 1}))
    page = parse_page(an_envelope(event, event.replace(b"event-1", b"event-2")))
    assert page.ids == ["event-1", "event-2"]


def test_two_halves_of_a_pair_in_different_encodings_are_not_repaired_in_an_id() -> None:
    """They become two times U+FFFD, like the halves of any other pair."""
    text = _encode(an_event(id="it")).replace(b'"it"', b'"\xed\xa0\x80\\udc00"')
    page = parse_page(an_envelope(text))
    assert page.ids == []
    assert page.malformed is not None
    assert page.malformed.code == "AE-EVENT"


def test_an_encoded_pair_in_a_cursor_is_a_character() -> None:
    """In an id and in any other text it is one too."""
    body = b'{"auditEvents": [], "nextCursor": "c\xed\xa0\xbd\xed\xb8\x80"}'
    assert parse_page(body).next_cursor == "c\U0001f600"
