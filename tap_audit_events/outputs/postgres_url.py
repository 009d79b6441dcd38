"""Recognizes the URL of a PostgreSQL database, without the library that connects to it."""

from __future__ import annotations

import re
from typing import Final

_URL: Final = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
_UNAMBIGUOUS: Final = re.compile(r"[^/@]*@[^@]*|[^@]*")
"""The rest of a URL, if it is certain where a password in it ends."""

AMBIGUOUS: Final = (
    "in the URL, write / in the password as %2F, and each @ but the one before the host as %40"
)


def is_postgres_url(text: str) -> bool:
    """Whether a text begins as the URL of a PostgreSQL database."""
    return bool(_URL.match(text))


def is_ambiguous(url: str) -> bool:
    """Whether part of the password could be shown as part of the host or the path."""
    scheme = _URL.match(url)
    return scheme is not None and not _UNAMBIGUOUS.fullmatch(url, scheme.end())
