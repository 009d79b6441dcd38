"""The access token: its form, the file that contains it, and masking of what may be a token."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.errors.redaction import register_possible_secret

PAT_MARK: Final = "pat_"
"""Every personal access token contains this text, after a prefix (interface.md 5, rule 2)."""

MAX_TOKEN_BYTES: Final = 8192
"""Far more than any token has: usual servers accept no header of this length."""

_TOO_LARGE: Final = f"is larger than any token: at most {MAX_TOKEN_BYTES:,} bytes"

_MARKED: Final = re.compile(rf"{PAT_MARK}.", re.IGNORECASE)
_END_OF_NAME: Final = r"\s\"'`,;:/?#@()\[\]{}<>|\\=&"
_PIECES: Final = (
    re.compile(rf"(?<![^{_END_OF_NAME}])[^{_END_OF_NAME}]*{PAT_MARK}\S+", re.IGNORECASE),
    re.compile(rf"[^{_END_OF_NAME}]+"),
    re.compile(r"[\w-]+"),
)
"""From the coarsest to the finest: a URL, an option, a list or a sentence may contain a token."""

_RANDOM: Final = re.compile(rf"{PAT_MARK}.*(?:\d|[A-Z]{{20}})", re.IGNORECASE)
"""What is random has a digit, or more letters in a row than a word."""


def check_token(text: str) -> str:
    """A token that can be sent in a header (RFC 6750); `ValueError` says why it cannot."""
    if len(text) > MAX_TOKEN_BYTES:
        raise ValueError(_TOO_LARGE)
    if text.lower().startswith("bearer "):
        raise ValueError("begins with 'Bearer': write the token alone")
    if text[0] == text[-1] and text[0] in "\"'":
        raise ValueError("has quotes around the token: remove them")
    if not re.fullmatch(r"[!-~]+", text):
        raise ValueError(
            "must be one word of printable ASCII: it contains white space, a control character or a"
            " non-ASCII letter; look for a line break at its end"
        )
    return text


def read_token_file(path: str, check: Callable[[str], str] = check_token) -> str:
    """The token in a file, without a byte order mark and line breaks at its end.

    Args:
        path: the file.
        check: returns the token, or raises `ValueError`.

    Raises:
        ValueError: the token cannot be used. The message is meant to follow the setting's name,
            and does not contain the text of the file.
    """
    try:
        text = _read_bytes(Path(path)).decode("utf-8-sig").rstrip("\r\n")
        if not text:
            raise ValueError("is empty: write the token into it")
        return check(text)
    except OSError as error:
        raise ValueError(_unreadable(path, error.strerror)) from None
    except UnicodeError:
        raise ValueError(f"{sanitize(path)} is not a text file: write the token into it") from None
    except ValueError as error:
        raise ValueError(f"{sanitize(path)} {error}") from None


def _unreadable(path: str, reason: str | None) -> str:
    """The text of the error for a path that cannot be read: the path that was tried.

    If it is the token itself, it contains `PAT_MARK` and is masked.
    """
    text = f"{sanitize(path)} cannot be read: {reason}"
    if Path(path).is_absolute():
        return text
    if path.startswith("~"):
        return f"{text}; ~ is not expanded: write the path of the home folder"
    with suppress(OSError):  # the working directory is gone
        text = f"{sanitize(Path.cwd() / path)} cannot be read: {reason}"
    return f"{text}; a relative path starts at the folder in which the command was started"


def others_may_read(status: os.stat_result) -> bool:
    """Whether more users may read a file than need to.

    The group may read a file of root: this is how a mounted secret reaches the tap's user.
    """
    others = stat.S_IROTH if status.st_uid == 0 else stat.S_IROTH | stat.S_IRGRP
    return bool(status.st_mode & others)


def _read_bytes(path: Path) -> bytes:
    if "\0" in str(path):
        raise ValueError("is not a path: it contains a NUL character")
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("is not a regular file, so it could not be read again")
    with path.open("rb") as file:
        data = file.read(MAX_TOKEN_BYTES + 1)
    if len(data) > MAX_TOKEN_BYTES:
        raise ValueError(_TOO_LARGE)
    return data


def mask_possible_tokens(value: Any, *, even_words: bool = False) -> None:
    """From now on, mask each possible token in a value, including those in its lists and names.

    A text that consists of words, such as ``user_pat_created``, is masked only with `even_words`.
    """
    texts = _marked_pieces(value)
    register_possible_secret(*(text for text in texts if even_words or _RANDOM.search(text)))


def _marked_pieces(value: Any) -> Iterator[str]:
    waiting = [value]  # not recursive: a configuration may be nested deeply
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):  # the SDK's configuration is not a dict
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            waiting += item
        elif not isinstance(item, int):  # str() refuses very long integers
            text = str(item)
            for each in {text, unquote(text)}:
                for pieces in _PIECES:
                    yield from filter(_MARKED.search, pieces.findall(each))
