"""Finds secrets in text, however they are written, and masks them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any, Final, NamedTuple
from urllib.parse import quote

MASK: Final = "<access_token>"
MIN_SECRET_LENGTH: Final = 4
"""In characters. A shorter secret would match inside ordinary words."""
_LENGTH_OF_START: Final = 8
"""In parts: rare in other texts, and compiled ten times as fast as a whole secret."""

_LONGEST_FORM: Final = 40
"""Maximum length of the form of one character of a secret: its code in JSON, and three codes of
NUL."""


class _Secret(NamedTuple):
    """A secret; `parts` are patterns, one for each of its characters, or run of backslashes."""

    text: str
    parts: tuple[str, ...]
    is_certain: bool


class _Secrets:
    """The registered secrets; a thread may add some while other threads search or add."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.clear()

    def clear(self) -> None:
        self._by_parts: dict[tuple[str, ...], _Secret] = {}
        self._by_start: dict[tuple[str, ...], list[_Secret]] = {}

    @property
    def longest(self) -> int:
        """The length of the longest secret, in characters."""
        return max((len(each.text) for each in self._by_parts.values()), default=0)

    def add(self, added: Iterable[_Secret]) -> None:
        """Add secrets; a possible secret that is added as certain becomes certain."""
        with self._lock:
            by_parts = dict(self._by_parts)
            for each in added:
                known = by_parts.get(each.parts)
                if not known or each.is_certain > known.is_certain:
                    by_parts[each.parts] = each
            if by_parts != self._by_parts:
                self._by_parts = by_parts
                self._by_start = _by_start(by_parts.values(), MIN_SECRET_LENGTH)

    def found_in(self, text: str) -> list[_Secret]:
        """The secrets that are in a text, the longest first, so that each is masked as a whole."""
        found = _found(text, self._by_start)
        return sorted(found, key=lambda each: len(each.text), reverse=True)


_secrets = _Secrets()


def register_secret(*texts: str) -> None:
    """Mask texts from now on, in everything that the tap writes except records."""
    _register(texts, is_certain=True)


def register_possible_secret(*texts: str) -> None:
    """Mask texts that may be secrets from now on, in logs and on stderr.

    STATE and SCHEMA show them, because they may be names of action types or fields.
    """
    _register(texts, is_certain=False)


def contains_secret(text: str) -> bool:
    """Whether a registered secret is in a text, in any form. Possible secrets do not count."""
    return any(each.is_certain for each in _secrets.found_in(text))


def redact(text: str) -> str:
    """Replace each secret and each possible secret in a text with a mask."""
    return _masked(text, _secrets.found_in(text))


def longest_form() -> int:
    """The maximum length of any form of the secrets so far, apart from extra zeros in codes."""
    return _LONGEST_FORM * _secrets.longest


def redact_json(value: Any) -> Any:
    """Replace each secret in the strings and names of a JSON value. Possible secrets stay."""
    if isinstance(value, str):
        return _masked(value, (each for each in _secrets.found_in(value) if each.is_certain))
    if isinstance(value, dict):
        return {redact_json(name): redact_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact_json(inner) for inner in value]
    return value


def _register(texts: Iterable[str], *, is_certain: bool) -> None:
    _secrets.add(
        _Secret(text, _parts(text), is_certain) for text in texts if len(text) >= MIN_SECRET_LENGTH
    )


def _masked(text: str, secrets: Iterable[_Secret]) -> str:
    for each in secrets:
        text = _compiled(each.parts).sub(MASK, text)
    return text


def _by_start(secrets: Iterable[_Secret], length: int) -> dict[tuple[str, ...], list[_Secret]]:
    """Secrets by their first `length` parts; by more parts if only one secret begins with them."""
    groups: dict[tuple[str, ...], list[_Secret]] = {}
    for each in secrets:
        groups.setdefault(each.parts[:length], []).append(each)
    return {
        start if len(alike) > 1 else alike[0].parts[: max(length, _LENGTH_OF_START)]: alike
        for start, alike in groups.items()
    }


def _found(text: str, by_start: Mapping[tuple[str, ...], Sequence[_Secret]]) -> Iterator[_Secret]:
    """The secrets that are in a text; first, the text is searched for their first parts.

    The tokens of a service have the same prefix. So most texts are searched once, however many
    tokens there are, and a whole pattern, which takes much longer to compile than to search, is
    rarely needed.
    """
    for start, alike in by_start.items():
        if not _compiled(start).search(text):
            continue
        if len(alike) > 1:
            yield from _found(text, _by_start(alike, len(start) + 1))
        elif _compiled(alike[0].parts).search(text):
            yield alike[0]


_NUL: Final = r"(?:\x00|\\\\?(?:x00|u0000|0)|%(?:25)?00|&#[xX]?0+;|\ufffd)"
"""The forms of NUL, which is between two letters of UTF-16 or UTF-32 that is read as UTF-8."""


def _parts(secret: str) -> tuple[str, ...]:
    return tuple(map(_part, re.findall(r"\\+|[^\\]", secret)))


@cache
def _part(part: str) -> str:
    forms = _backslashes(len(part)) if part[0] == "\\" else _character(part)
    return f"(?:{'|'.join(forms)})"


@cache
def _compiled(parts: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(f"{_NUL}{{0,3}}".join(parts))


def _backslashes(count: int) -> list[str]:
    """The forms of a whole run of backslashes, because each backslash may be half of an escape."""
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
