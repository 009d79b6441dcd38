"""Characters that no loader can store are replaced, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import ContractError
from tap_audit_events.events import text_repair
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
    """They become U+FFFD; text that only looks like them is kept."""
    text = encode(an_event()).replace(b'"Research"', sent, 1)
    record = only_record(an_envelope(text))
    assert record["action"]["details"]["fields"]["name"] == left


@given(st.lists(st.sampled_from(["\ud800", "\udfff", "\0", "\\", "u0000", "ud800", "é", '"'])))
def test_unstorable_characters_are_replaced_one_by_one(pieces: list[str]) -> None:
    """The result equals a replacement in the decoded text; surrogate pairs are characters."""
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
def test_escapes_are_read_as_in_json(escaped: bytes) -> None:
    """After an escaped backslash there is no escape, and two escapes may be one character."""
    event = encode(an_event()).replace(b'"Research"', b'"%b"' % escaped, 1)
    joined = json.loads(b'"%b"' % escaped)
    expected = "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in joined)
    record = only_record(an_envelope(event))
    assert record["action"]["details"]["fields"]["name"] == expected


@pytest.mark.parametrize("bad", [rb"\ud8", rb"\ud80g", rb"\u000", rb"\ud800\ud8", rb"\ud83d\ude0"])
def test_a_malformed_escape_is_not_repaired(bad: bytes) -> None:
    """A repair would include the quotation mark after it and make another text valid."""
    name = b'"%b", "x": "\\u0000"' % bad
    body = an_envelope(encode(an_event()).replace(b'"Research"', name, 1))
    page = parse_page(body)
    assert page.malformed is not None
    assert "event 1 of the page is not JSON: " in page.malformed.details


encoded = st.sampled_from(["\ud83d", "\ude00", "a", "é", "€", "😀"])


@given(st.lists(encoded, max_size=12).map("".join), st.integers(4, 9))
def test_no_character_is_divided_by_the_end_of_a_chunk(text: str, chunk_bytes: int) -> None:
    """Neither the bytes of a character nor the two halves of a surrogate pair are separated."""
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(text_repair, "_CHUNK_BYTES", chunk_bytes)
        assert storable(text.encode("utf-8", "surrogatepass")) == joined.encode()


def test_a_cursor_is_not_changed_with_its_page() -> None:
    """A cursor is opaque, even next to an event that no loader can store."""
    event = json.dumps(an_event(entity={"name": "\0"})).encode()
    event = event.replace(b'"entity"', b'"number": ' + b"7" * 5000 + b', "entity"')
    assert parse_page(an_envelope(event, cursor="a\0b")).next_cursor == "a\0b"


@pytest.mark.parametrize("bad", [rb"evt-\ud801", rb"evt-\u0000", b"evt-\xed\xa0\x80"])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_an_id_that_cannot_be_stored_ends_the_page(bad: bytes, position: int) -> None:
    """A repaired id might equal another event's id, and that event would count as a repeat."""
    texts = [encode(an_event(id=f"{n}", at=f"2026-01-01T00:00:0{n}Z")) for n in range(4)]
    sent = texts[position].replace(b'"%d"' % position, b'"%b"' % bad)
    page = parse_page(an_envelope(*texts[:position], sent, *texts[position + 1 :], cursor="next"))
    assert page.ids == [f"{n}" for n in range(position)]
    assert page.instants == [f"2026-01-01T00:00:0{n}" for n in range(position)]
    assert list(map(bytes, page.texts)) == texts[:position]
    assert page.next_cursor == "next"
    assert page.malformed is not None
    assert page.malformed.code == "AE-EVENT"
    assert page.malformed.details == (
        f"event {position + 1} of the page: its id 'evt-\ufffd', with U+FFFD for NUL or a lone"
        " surrogate, cannot be stored as it is"
    )


@pytest.mark.parametrize(
    "good", [rb"\ud83d\ude00", b"\xed\xa0\xbd\xed\xb8\x80", rb"\\ud800", b"\xef\xbf\xbd"]
)
def test_an_id_that_can_be_stored_is_kept_in_a_repaired_page(good: bytes) -> None:
    """Pairs of surrogates are characters, and U+FFFD that the service itself sent is one too."""
    text = encode(an_event(id="it", entity={"name": "?"})).replace(b'"it"', b'"%b"' % good)
    page = parse_page(an_envelope(text.replace(b'"?"', rb'"\u0000"')))
    assert page.malformed is None
    assert len(page.ids) == 1


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (rb"a\u0000b", "a\0b"),
        (rb"\ufffd\u0000", "\ufffd\0"),
        (rb"\ufffd", "\ufffd"),
        (b"\xef\xbf\xbd", "\ufffd"),
        (b"", None),
    ],
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_cursor_is_used_as_it_was_sent(sent: bytes, kept: str | None, mark: bytes) -> None:
    """It is opaque, even next to a repaired event and after a byte order mark."""
    events = [
        encode(an_event(id="\ufffd")),
        encode(an_event(id="?")).replace(b"user-1", rb"\u0000"),
    ]
    body = an_envelope(*events, cursor="here").replace(b"here", sent)
    page = parse_page(mark + body)
    assert (page.ids, page.malformed) == (["\ufffd", "?"], None)
    assert page.next_cursor == kept
    assert page.has_empty_cursor == (kept is None)
    empty = parse_page(mark + an_envelope(cursor="here").replace(b"here", sent))
    assert (empty.ids, empty.next_cursor) == ([], kept)


@pytest.mark.parametrize("sent", [rb"\ud800", rb"a\udfff", b"\xed\xa0\x80", rb"\u0000\ud800"])
def test_a_cursor_that_is_not_unicode_text_is_an_error(sent: bytes) -> None:
    """Such a cursor could not be sent back unchanged."""
    body = an_envelope(encode(an_event()), cursor="here").replace(b"here", sent)
    with pytest.raises(ContractError, match=r"AE-ENVELOPE: .*\(nextCursor is not Unicode text\)"):
        parse_page(body)


@pytest.mark.parametrize(
    "text", [b'"a"', rb'"\\u0000 \\\\ud800"', rb'"\u00e9\n\ue000"', "é\U0001f600".encode()]
)
def test_text_that_needs_no_repair_is_returned_as_it_is(text: bytes) -> None:
    """Only a byte order mark is removed, as it is not part of the text."""
    assert storable(text) is text
    assert storable(b"\xef\xbb\xbf" + text) == text


@pytest.mark.parametrize("start", [0, *range(65_533, 65_540), *range(131_069, 131_076)])
@pytest.mark.parametrize("character", ["é", "€", "\U0001f600"])
def test_a_character_may_lie_across_the_chunks_in_which_text_is_checked(
    start: int, character: str
) -> None:
    """An incomplete character is an error, in the middle and at the end of the text."""
    encoded = character.encode()
    whole = b"a" * start + encoded
    assert storable(whole) is whole
    assert storable(whole + b"a") == whole + b"a"
    for cut in (whole[:-1], whole[:-1] + b"a", whole + encoded[:1], b"\x80" + whole):
        with pytest.raises(UnicodeDecodeError):
            storable(cut)
