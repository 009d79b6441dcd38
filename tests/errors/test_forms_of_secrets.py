"""A secret is found in every form in which text may contain it, and nothing else is masked."""

import html
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.errors import redaction
from tap_audit_events.errors.redaction import (
    MASK,
    MIN_SECRET_LENGTH,
    contains_secret,
    longest_form,
    redact,
    redact_json,
    register_possible_secret,
    register_secret,
)
from tests.errors.test_masking import TOKEN, fresh_redaction  # noqa: F401 - a fixture


def in_unicode_escapes(text: str) -> str:
    return "".join(f"\\u{ord(character):04X}" for character in text)


def in_character_references(text: str) -> str:
    return "".join(f"&#x{ord(character):x};" for character in text)


def escaped(text: str) -> str:
    return json.dumps(text)[1:-1]


FORMS: list[Callable[[str], str]] = [
    str,
    escaped,
    lambda token: escaped(escaped(token)),
    lambda token: repr(token)[1:-1],
    lambda token: repr(token.encode())[2:-1],
    quote,
    lambda token: quote(token, safe=""),
    lambda token: quote(quote(token, safe=""), safe=""),
    lambda token: "".join(f"%{byte:02x}" for byte in token.encode()),
    html.escape,
    in_character_references,
    in_unicode_escapes,
    lambda token: escaped(token).replace("/", "\\/"),
    str.lower,
    str.upper,
    lambda token: quote(token.upper(), safe=""),
]

WIDE_FORMS: list[Callable[[str], str]] = [
    lambda token: token.encode("utf-16-le").decode().rstrip("\0"),
    lambda token: repr(token.encode("utf-16-le").decode().rstrip("\0"))[1:-1],
    lambda token: repr(token.encode("utf-16-be").lstrip(b"\0"))[2:-1],
    lambda token: escaped(token.encode("utf-16-le").decode().rstrip("\0")),
    lambda token: escaped(repr(token.encode("utf-16-le").rstrip(b"\0"))[2:-1]),
    lambda token: quote(token.encode("utf-16-be").lstrip(b"\0"), safe=""),
    lambda token: token.encode("utf-32-le").decode().rstrip("\0"),
    lambda token: token.encode("utf-16-le").decode().rstrip("\0").replace("\0", "\ufffd"),
]
TOKENS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=MIN_SECRET_LENGTH)


@pytest.mark.parametrize("form", FORMS)
@given(token=TOKENS)
def test_every_form_of_a_token_is_masked(form: Callable[[str], str], token: str) -> None:
    """The token may have any printable ASCII characters; the text around it is not changed."""
    redaction._secrets.clear()
    register_secret(token)
    assert redact(f"Bearer {form(token)} é\n") == f"Bearer {MASK} é\n"


@pytest.mark.parametrize("form", WIDE_FORMS)
@given(token=st.from_regex(r"[A-Za-z][A-Za-z0-9._~+/=-]{5,30}", fullmatch=True))
def test_a_token_in_utf_16_or_utf_32_is_masked(form: Callable[[str], str], token: str) -> None:
    """The tokens are those of RFC 6750, as backslashes among NULs would be ambiguous."""
    redaction._secrets.clear()
    register_secret(token)
    assert redact(f"Bearer {form(token)} é\n") == f"Bearer {MASK} é\n"


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("times", [1, 2, 4])
def test_backslashes_of_a_token_are_masked_however_often_they_are_escaped(
    count: int, times: int
) -> None:
    """JSON doubles each backslash, and JSON in JSON doubles it again."""
    backslash = "\\"
    register_secret(f"pat_{backslash * count}x")
    text = f"pat_{backslash * count * times}x"
    assert redact(f"<{text}>") == f"<{MASK}>"
    assert redact(f"<{text[:-1]}>") == f"<{text[:-1]}>"


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("nuls", [1, 3])
def test_a_token_with_backslashes_among_nuls_is_masked(count: int, nuls: int) -> None:
    """UTF-16 and UTF-32 that are read as Latin-1 have NULs after each character."""
    register_secret("pat_" + "\\" * count + "x")
    text = "".join(each + "\0" * nuls for each in "pat_" + "\\" * count + "x").rstrip("\0")
    assert redact(f"<{text}>") == f"<{MASK}>"


def test_contains_secret_finds_certain_secrets_only() -> None:
    """A possible secret may also be an ordinary name in a schema or in a setting."""
    assert not contains_secret(TOKEN)
    register_possible_secret(TOKEN)
    assert not contains_secret(f"<{TOKEN}>")
    register_secret(TOKEN)
    assert contains_secret(f"<{TOKEN}>")
    assert not contains_secret("something else")


@given(tokens=st.lists(TOKENS, min_size=2, max_size=4))
def test_every_registered_token_stays_secret(tokens: list[str]) -> None:
    """A token that was replaced during the run is still masked."""
    redaction._secrets.clear()
    for token in tokens:
        register_secret(token)
    masked = redact(" ".join(tokens)).replace(MASK, "\0")
    assert not any(token in masked for token in tokens)


def test_a_token_that_begins_with_another_is_masked_whole() -> None:
    """A token file that is read while it is being written contains the beginning of the token."""
    register_secret(TOKEN[:10])
    register_secret(TOKEN)
    assert redact(f"{TOKEN} {TOKEN[:10]}") == f"{MASK} {MASK}"


def test_a_possible_secret_is_masked_in_text_only() -> None:
    """It is masked in JSON values too as soon as it is registered as a certain secret."""
    register_possible_secret(TOKEN)
    assert redact(TOKEN) == MASK
    assert redact_json({"names": [TOKEN]}) == {"names": [TOKEN]}
    register_secret(TOKEN)
    register_possible_secret(TOKEN)
    assert redact_json({"names": [TOKEN], TOKEN: 1}) == {"names": [MASK], MASK: 1}


@pytest.mark.parametrize("secret", ["pässwörd", "ключ-доступа", "mot€de€passe", "stra/ße"])
@pytest.mark.parametrize(
    "form",
    [
        str,
        escaped,
        quote,
        in_character_references,
        in_unicode_escapes,
        str.lower,
        lambda text: ascii(text)[1:-1],
        lambda text: quote(text.lower(), safe="").lower(),
    ],
)
def test_a_secret_may_have_any_letters(secret: str, form: Callable[[str], str]) -> None:
    """A text that is rejected as a token is not shown either."""
    register_secret(secret)
    assert redact(f"<{form(secret)}>") == f"<{MASK}>"


@pytest.mark.parametrize("secret", ["pat_\udcff", "pat_\0x", "pat_ x", "pat_\x7f"])
@pytest.mark.parametrize(
    "form",
    [str, escaped, lambda text: repr(text)[1:-1], in_unicode_escapes, in_character_references],
)
def test_a_secret_may_hold_unprintable_characters(secret: str, form: Callable[[str], str]) -> None:
    """An environment variable may hold bytes that are not UTF-8."""
    register_secret(secret)
    assert redact(f"<{form(secret)}>") == f"<{MASK}>"


def test_a_text_of_three_characters_is_not_masked() -> None:
    """Such a short text occurs inside ordinary words."""
    for text in ("pat", "", "the", "path"):
        register_secret(text)
        register_possible_secret(text)
    assert redact("the path, the pattern") == f"the {MASK}, the pattern"
    assert contains_secret("the path")
    assert not contains_secret("the pattern")


@pytest.mark.parametrize("register", [register_secret, register_possible_secret])
def test_text_that_only_resembles_a_secret_stays(register: Callable[[str], None]) -> None:
    """A text with a character added inside, removed or changed is not the secret."""
    register("pat_1/2")
    for text in (
        "pat_1",
        "pat_12",
        "pat_1/3",
        "pat-1/2",
        "pat_1//2",
        "p at_1/2",
        "pat_1%2",
        "pat&#;1/2",
        "pat&;1/2",
        "",
    ):
        assert redact(text) == text
    assert redact("pat_1/2/3") == f"{MASK}/3"


@pytest.mark.parametrize("before", ["\\", "\\\\", "%", "&", "\0", "x", "-"])
def test_the_text_before_and_after_a_secret_stays(before: str) -> None:
    """For example, the backslash of a path is not taken for an escape of the first letter."""
    register_secret("pat_12z")
    assert redact(f"{before}pat_12z{before}") == f"{before}{MASK}{before}"


def test_every_text_in_a_json_value_is_masked() -> None:
    """Names and strings are masked at any depth; other values stay."""
    register_secret(TOKEN)
    value = {"a": [TOKEN, {TOKEN: (f"is {TOKEN}", 7)}], "b": None, "c": 1.5, "d": True, "e": ""}
    masked = {"a": [MASK, {MASK: [f"is {MASK}", 7]}], "b": None, "c": 1.5, "d": True, "e": ""}
    assert redact_json(value) == masked


def test_a_secret_that_contains_another_is_masked_whole_in_any_order() -> None:
    """The order in which the secrets were registered does not matter, in text or in JSON."""
    for first, second in (("pat_", "a pat_ b"), ("a pat_ b", "pat_")):
        redaction._secrets.clear()
        register_secret(first)
        register_secret(second)
        for mask in (redact, redact_json):
            assert mask("a pat_ b, pat_") == f"{MASK}, {MASK}"


def test_no_form_is_longer_than_longest_form_says() -> None:
    """UTF-32 in JSON in JSON is the longest form: a text that is cut must not show a part of it."""
    register_secret(TOKEN)
    form = "".join(rf"\\u{ord(letter):04x}" + 3 * r"\\u0000" for letter in TOKEN)
    assert redact(form).startswith(MASK)
    assert len(form) <= longest_form()
