"""What no loader can store is replaced, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.exact_json import encode
from tap_audit_events.events.page import parse_page
from tap_audit_events.events.text_repair import storable
from tests.builders import an_event
from tests.events.bodies import an_envelope, only_record


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
    text = encode(an_event()).replace(b'"Research"', sent, 1)
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
    event = encode(an_event()).replace(b'"Research"', b'"%b"' % escaped, 1)
    joined = json.loads(b'"%b"' % escaped)
    expected = "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in joined)
    record = only_record(an_envelope(event))
    assert record["action"]["details"]["fields"]["name"] == expected


@pytest.mark.parametrize("others", [0, 1, 1999, 2000, 2001, 9000])
@pytest.mark.parametrize("other", [rb"\n", rb"\\", rb"\u00e9"])
def test_what_no_loader_can_store_is_found_behind_any_number_of_escapes(
    other: bytes, others: int
) -> None:
    """Each of the few is looked at; behind them the rest is searched."""
    name = b'"%b%b"' % (other * others, rb"\u0000 \ud800")
    body = an_envelope(encode(an_event()).replace(b'"Research"', name, 1))
    left = only_record(body)["action"]["details"]["fields"]["name"]
    assert left == json.loads(b'"%b"' % other) * others + "\ufffd \ufffd"


@pytest.mark.parametrize("start", [0, *range(65_500, 65_540)])
def test_a_page_of_escaped_emoji_leaves_as_it_came(start: int) -> None:
    """A service may escape all but ASCII: such pages are as quick as others."""
    name = b'"%b%b"' % (b"a" * start, rb"\ud83d\ude00" * 3)
    body = an_envelope(encode(an_event()).replace(b'"Research"', name, 1))
    assert storable(body) is body


def test_a_cursor_is_kept_as_it_came_if_the_page_had_to_be_changed() -> None:
    """A cursor is opaque, also beside an event that no loader can store."""
    event = json.dumps(an_event(entity={"name": "\0"})).encode()
    event = event.replace(b'"entity"', b'"number": ' + b"7" * 5000 + b', "entity"')
    assert parse_page(an_envelope(event, cursor="a\0b")).next_cursor == "a\0b"


@pytest.mark.parametrize("bad", [rb"evt-\ud801", rb"evt-\u0000", b"evt-\xed\xa0\x80"])
def test_an_id_that_cannot_be_stored_ends_the_page(bad: bytes) -> None:
    """After the repair it might equal another event's id, which would then count as a repeat."""
    texts = [encode(an_event(id=name)) for name in ("one", "two", "three")]
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
    text = encode(an_event(id="it", entity={"name": "?"})).replace(b'"it"', b'"%b"' % good)
    page = parse_page(an_envelope(text.replace(b'"?"', rb'"\u0000"')))
    assert page.malformed is None
    assert len(page.ids) == 1


def test_two_halves_of_a_pair_in_different_encodings_are_not_repaired_in_an_id() -> None:
    """They become two times U+FFFD, like the halves of any other pair."""
    text = encode(an_event(id="it")).replace(b'"it"', b'"\xed\xa0\x80\\udc00"')
    page = parse_page(an_envelope(text))
    assert page.ids == []
    assert page.malformed is not None
    assert page.malformed.code == "AE-EVENT"


def test_an_encoded_pair_in_a_cursor_is_a_character() -> None:
    """In an id and in any other text it is one too."""
    body = b'{"auditEvents": [], "nextCursor": "c\xed\xa0\xbd\xed\xb8\x80"}'
    assert parse_page(body).next_cursor == "c\U0001f600"
