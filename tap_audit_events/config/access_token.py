"""What an access token looks like, and the masking of every text that could be one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from tap_audit_events.errors.redaction import register_possible_secret

PAT_MARK: Final = "pat_"
"""A personal access token contains it, after a prefix (interface.md 5, rule 2)."""

_MARKED = re.compile(rf"{PAT_MARK}.", re.IGNORECASE)
_PIECES: Final = (
    re.compile(r"\S+"),
    re.compile(r"[^\s\"'`,;:/?#@()\[\]{}<>|\\=&]+"),
    re.compile(r"[\w-]+"),
)
"""From the coarsest to the finest: a token may be part of a URL, a list or a sentence."""


def check_token(text: str) -> None:
    """Check that a token can be sent in a header (RFC 6750).

    Raises:
        ValueError: it begins with ``Bearer``, is in quotes, or is not one word of printable ASCII.
    """
    if text.lower().startswith("bearer "):
        raise ValueError("begins with 'Bearer': write the token alone")
    if text[0] == text[-1] and text[0] in "\"'":
        raise ValueError("has quotes around the token: remove them")
    if not re.fullmatch(r"[!-~]+", text):
        raise ValueError(
            "must be one word of printable ASCII: it contains white space, a control character or a"
            " non-ASCII letter; look for a line break at its end"
        )


def mask_possible_tokens(value: Any) -> None:
    """Mask, from now on, each text in a value, also in its lists and names, that may be a token."""
    register_possible_secret(*_possible_tokens(value))


def _possible_tokens(value: Any) -> Iterator[str]:
    waiting = [value]  # not recursive: a configuration may be nested deeply
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            waiting += item
        elif not isinstance(item, int):  # a long one cannot be text
            yield from _marked_pieces(str(item))


def _marked_pieces(text: str) -> Iterator[str]:
    for each in {text, unquote(text)}:
        for pieces in _PIECES:
            yield from filter(_MARKED.search, pieces.findall(each))
