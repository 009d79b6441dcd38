"""Finds secrets in text, in the forms in which programs write them, and masks them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from threading import Lock
from typing import Any, Final
from urllib.parse import quote

MASK: Final = "<masked>"
MIN_SECRET_LENGTH: Final = 4
"""In characters. A shorter secret would match inside ordinary words."""

_UNQUOTED: Final = ("", "/", "!#$%&'()*+,/:;=?@[]~")
"""Characters that programs leave as they are when they percent-encode a parameter or a path."""

_NOTHING: Final = re.compile("(?!)")


class _Secrets:
    """The registered secrets; a thread may add some while other threads search or add."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._texts: frozenset[str] = frozenset()
        self.pattern = _NOTHING
        self.longest_form = 0

    def add(self, texts: Iterable[str]) -> None:
        new = {text for text in texts if len(text) >= MIN_SECRET_LENGTH}
        with self._lock:
            if not new <= self._texts:
                self._texts |= new
                forms = {form for text in self._texts for form in _forms(text)}
                self.pattern = _compiled(forms)
                self.longest_form = max(map(len, forms))


_certain = _Secrets()
_all = _Secrets()


def register_secret(*texts: str) -> None:
    """Mask texts from now on, in everything that the tap writes except records."""
    _certain.add(texts)
    _all.add(texts)


def register_possible_secret(*texts: str) -> None:
    """Mask texts that may be secrets from now on, in logs and errors.

    STATE and SCHEMA show them, because they may be names of action types or fields.
    """
    _all.add(texts)


def contains_secret(text: str) -> bool:
    """Whether a registered secret is in a text, in any form. Possible secrets do not count."""
    return _certain.pattern.search(text) is not None


def redact(text: str) -> str:
    """Replace each secret and each possible secret in a text with a mask."""
    return _all.pattern.sub(MASK, text)


def longest_form() -> int:
    """The length of the longest form of the secrets so far, in characters."""
    return _all.longest_form


def redact_json(value: Any) -> Any:
    """Replace each secret in the strings and names of a JSON value. Possible secrets stay."""
    if isinstance(value, str):
        return _certain.pattern.sub(MASK, value)
    if isinstance(value, dict):
        return {redact_json(name): redact_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact_json(inner) for inner in value]
    return value


def _forms(secret: str) -> set[str]:
    """A secret as it is and in lower case (as the host of a URL); each of them also escaped."""
    forms = set()
    for text in (secret, secret.lower()):
        for in_json in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
            forms |= {text, in_json, in_json.replace("/", r"\/")}
        forms |= {repr(text)[1:-1], repr(f"\"'{text}")[4:-1]}  # with either quotes around it
        for unquoted in _UNQUOTED:
            encoded = quote(text, safe=unquoted, errors="replace")
            forms |= {encoded, re.sub("%..", lambda code: code[0].lower(), encoded)}
    return forms


def _compiled(forms: Iterable[str]) -> re.Pattern[str]:
    """A pattern that finds the longest of the forms at each position.

    The forms are grouped by their start, so that a thousand tokens with the same prefix cost
    hardly more than one.
    """
    groups: dict[str, list[str]] = {}
    for form in sorted(forms, key=len, reverse=True):
        start, rest = form[:MIN_SECRET_LENGTH], form[MIN_SECRET_LENGTH:]
        groups.setdefault(start, []).append(re.escape(rest))
    alternatives = (f"{re.escape(start)}(?:{'|'.join(rest)})" for start, rest in groups.items())
    return re.compile("|".join(alternatives))
