"""A registered secret is found in the forms in which programs write it, and nothing else is."""

import json
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.config.access_token import mask_possible_tokens
from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.config.settings import read_settings, register_secrets
from tap_audit_events.errors.exceptions import sanitize, sanitize_start
from tap_audit_events.errors.redaction import (
    MASK,
    MIN_SECRET_LENGTH,
    contains_secret,
    redact,
    redact_json,
    register_possible_secret,
    register_secret,
)
from tests.builders import ORGANIZATION_ID

pytestmark = pytest.mark.usefixtures("no_secrets")

TOKEN = "acme_pat_9+/=&<\"X\\y'%Zz"
"""A token that every kind of escaping changes."""

FORMS: list[Callable[[str], str]] = [
    str,
    str.lower,
    lambda secret: json.dumps(secret)[1:-1],
    lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    lambda secret: json.dumps(secret)[1:-1].replace("/", "\\/"),
    lambda secret: repr(secret)[1:-1],
    lambda secret: repr(f'it\'s a "{secret}"')[len(r"'it\'s a ") + 1 : -2],
    quote,
    lambda secret: quote(secret, safe=""),
    lambda secret: quote(secret, safe="").lower(),
    lambda secret: urlencode({"cursor": secret}).partition("=")[2],
]


@pytest.mark.parametrize("form", FORMS)
@given(
    secret=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=MIN_SECRET_LENGTH)
    | st.sampled_from([TOKEN, "pässwörd", "ключ-доступа", "stra/ße", "pat_\x00x", "pat_\x7f"])
)
def test_every_form_of_a_secret_is_masked(form: Callable[[str], str], secret: str) -> None:
    """The text around it stays."""
    register_secret(secret)
    assert form(secret) not in redact(f"é {form(secret)} é\n").replace(MASK, "")
    register_secret(TOKEN)
    assert redact(f"Bearer {form(TOKEN)} é\n") == f"Bearer {MASK} é\n"


@pytest.mark.parametrize("text", ["", "acme_pat_8", "acme_pat_9+/=&<", "pat_", "\\u0061cme"])
def test_other_texts_stay(text: str) -> None:
    register_secret(TOKEN, "abc")  # too short: it would match inside ordinary words
    assert redact(f"{text} abc") == f"{text} abc"
    assert not contains_secret(text)


def test_a_secret_that_contains_another_is_masked_whole() -> None:
    """A token file that is read while it is written contains the beginning of the token."""
    secrets = ["pat_", "acme_pat_1", "acme_pat_12", "a acme_pat_12 b"]
    for order in (secrets, secrets[::-1]):
        register_secret(*order)
        for mask in (redact, redact_json):
            assert mask(", ".join(secrets)) == ", ".join([MASK] * 4)


def test_a_possible_secret_is_masked_in_logs_only() -> None:
    """It may be an ordinary name in a schema; once it is registered as certain, it stays so."""
    register_possible_secret(TOKEN)
    assert redact(TOKEN) == MASK
    assert redact_json({"names": [TOKEN]}) == {"names": [TOKEN]}
    assert not contains_secret(TOKEN)
    register_secret(TOKEN)
    register_possible_secret(TOKEN)
    assert contains_secret(TOKEN)
    masked = redact_json({"a": [TOKEN, {TOKEN: (f"is {TOKEN}", 7)}], "b": None, "c": 1.5})
    assert masked == {"a": [MASK, {MASK: [f"is {MASK}", 7]}], "b": None, "c": 1.5}


def test_a_secret_that_a_message_cuts_is_not_shown_in_part() -> None:
    """The message, the part of a long text that is read, or the text itself may end within it."""
    register_secret(TOKEN)
    shown = [
        sanitize(290 * "x" + TOKEN),
        sanitize_start(f"{quote(TOKEN, safe='')} ".encode() * 1000, 100_000),
        sanitize_start(TOKEN[:-1].encode(), is_cut=True),
    ]
    assert not [each for each in shown if "acme" in each]


# Secrets in settings


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("acme_pat_a/secret7x2", "is acme_pat_a/secret7x2"),
        ("https://host/acme_pat_a.secret7x2", "GET /acme_pat_a.secret7x2?x=1"),
        ("https://host/x%2Facme%5Fpat%5Fsecret7", "GET /x/acme_pat_secret7"),
        ({"acme_pat_a.secret7x2": None}, "is acme_pat_a.secret7x2"),
        ("--test=acme_pat_a/secret7x2==", "invalid: 'acme_pat_a/secret7x2=='"),
        ("Bearer:acme_pat_secret-name7x2.", "unknown: acme_pat_secret-name7x2"),
        (MappingProxyType({"acme_pat_a/secret7x2": 1}), "is 'acme_pat_a/secret7x2'"),
        ("acme_pat_secretsecretsecretsecret", "is acme_pat_secretsecretsecretsecret"),
    ],
)
def test_a_text_that_may_be_a_token_is_masked_to_its_end(given: object, shown: str) -> None:
    """A token may contain characters that a name does not (RFC 6750, section 2.1)."""
    mask_possible_tokens([given])
    assert "secret" not in redact(shown)


@pytest.mark.parametrize("name", ["user_pat_created", "PAT_CREATED", "/run/secrets/acme_pat_token"])
def test_words_in_a_setting_are_not_masked(name: str) -> None:
    """An action type or a path may contain the mark of a token without being one."""
    register_secrets(
        {
            "access_token": "acme_pat_0a1b2c3d4e5f",
            "action_types": [name],
            "access_token_file": name,
            "stream_maps": {"audit_events": {name: "1"}},
        }
    )
    assert redact(f"of {name}, acme_pat_0a1b2c3d4e5f") == f"of {name}, {MASK}"


@pytest.mark.parametrize(
    "config",
    [
        {"acces_token": "acme_pat_of-words"},
        {"organizations": "[{'access_token': 'acme_pat_of-words'"},
        {"access_token": "Bearer acme_pat_of-words"},
    ],
)
def test_words_in_a_place_of_tokens_are_masked(config: dict[str, str]) -> None:
    """This includes a misspelt name."""
    register_secrets(config)
    assert redact("is acme_pat_of-words") == f"is {MASK}"


def test_each_secret_setting_is_masked(tmp_path: Path) -> None:
    """The names are those of the schema; tokens in files are masked too."""
    for name, schema in SETTINGS_SCHEMA["properties"].items():
        if schema.get("secret"):
            value = f"of-another-kind-in-{name}"
            is_list = "array" in schema["type"]
            register_secrets({name: [{"access_token": value}] if is_list else value})
            assert redact(value) == MASK
    path = tmp_path / "token"
    path.write_text("in-a-file")
    items = [{"organization_id": ORGANIZATION_ID, "access_token_file": str(path)}]
    read_settings({"base_url": "https://host", "organizations": items})
    assert redact("in-a-file") == MASK
