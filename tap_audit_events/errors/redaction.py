"""Finds secrets in text, however they are written, and masks them."""

from __future__ import annotations

import html
import re
from typing import Any, Final, NamedTuple
from urllib.parse import quote

MASK: Final = "<access_token>"
MIN_SECRET_LENGTH: Final = 4
"""In characters. A shorter secret would match inside ordinary words."""


class _Secret(NamedTuple):
    text: str
    pattern: re.Pattern[str]
    is_certain: bool


_secrets: list[_Secret] = []
"""The longest first, so that a secret that begins with another one is masked as a whole."""


def register_secret(text: str) -> None:
    """Mask a text from now on, in everything that the tap writes except records."""
    _register(text, is_certain=True)


def register_possible_secret(text: str) -> None:
    """Mask a text that may be a secret from now on, in logs and on stderr.

    STATE and SCHEMA keep it: there it may be the name of an action type or a field.
    """
    _register(text, is_certain=False)


def contains_secret(text: str) -> bool:
    """Whether a registered secret is in a text, in any form. Possible secrets do not count."""
    return any(each.is_certain and each.pattern.search(text) for each in tuple(_secrets))


def redact(text: str) -> str:
    """Replace each secret and each possible secret in a text with a mask."""
    for each in tuple(_secrets):  # another thread may register one meanwhile
        text = each.pattern.sub(MASK, text)
    return text


def redact_json(value: Any) -> Any:
    """Replace each secret in the strings and names of a JSON value. Possible secrets stay."""
    if isinstance(value, str):
        for each in tuple(_secrets):
            if each.is_certain:
                value = each.pattern.sub(MASK, value)
        return value
    if isinstance(value, dict):
        return {redact_json(name): redact_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact_json(inner) for inner in value]
    return value


def _register(text: str, *, is_certain: bool) -> None:
    if len(text) < MIN_SECRET_LENGTH:
        return
    others = [each for each in _secrets if each.text != text]
    if len(others) < len(_secrets):
        (known,) = (each for each in _secrets if each.text == text)
        added = known._replace(is_certain=known.is_certain or is_certain)
    else:
        added = _Secret(text, _pattern(text), is_certain)
    _secrets[:] = sorted([*others, added], key=lambda each: len(each.text), reverse=True)


_NUL: Final = r"(?:\x00|\\\\?(?:x00|u0000|0)|%(?:25)?00|&#[xX]?0+;|\ufffd)"
"""What UTF-16 and UTF-32 leave between two letters if they are read as UTF-8."""


def _pattern(secret: str) -> re.Pattern[str]:
    parts = re.findall(r"\\+|[^\\]", secret)
    forms = [_backslashes(len(part)) if part[0] == "\\" else _character(part) for part in parts]
    return re.compile(f"{_NUL}{{0,3}}".join(f"(?:{'|'.join(each)})" for each in forms))


def _backslashes(count: int) -> list[str]:
    """The forms of a run of backslashes: as a whole, because each may be half of an escape."""
    escaped = [rf"\\{{{times * count}}}" for times in (4, 2, 1)]
    with_nul = rf"(?:\\{{1,4}}?{_NUL}{{1,3}}){{{count - 1}}}\\{{1,4}}"
    codes = (rf"(?:{form}{_NUL}{{0,3}}){{{count}}}" for form in _codes("\\"))
    return [*codes, with_nul, *escaped]


def _character(character: str) -> list[str]:
    """The forms of any other character, in either case: its codes, itself, and itself escaped."""
    cases = {character, character.lower(), character.upper()}
    return [form for each in sorted(cases) if len(each) == 1 for form in _forms(each)]


def _forms(character: str) -> list[str]:
    plain = re.escape(character)
    escaped = [] if character.isalnum() else [rf"\\\\?\\?{plain}"]
    return [*_codes(character), *escaped, plain]


def _codes(character: str) -> list[str]:
    """The codes of a character in a URL, in JSON or Python, and in HTML.

    Each form begins with a literal character, which lets the search skip most of a text.
    """
    number = ord(character)
    percent = quote(character, safe="", errors="replace")
    if percent == character:
        percent = f"%{number:02x}"
    name = html.escape(character)[1:-1]
    return [
        f"%(?:25)?(?i:{percent[1:]})",
        rf"\\\\?(?:u(?i:{number:04x})|x(?i:{number:02x}))",
        f"&(?:#0*{number}|#[xX]0*(?i:{number:x}){f'|{name}' if name else ''});",
    ]
