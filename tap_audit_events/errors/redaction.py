"""Keeps the access token out of what leaves the process, in whatever form it stands there.

There are two doors: every log record, before any handler sees it, and everything that is written
to stderr. What the service's events hold is data, and leaves as it came.
"""

from __future__ import annotations

import html
import io
import logging
import re
import sys
from collections.abc import Callable
from typing import Any, Final, TextIO
from urllib.parse import quote

MASK: Final = "<access_token>"
LEAST_LENGTH: Final = 4
"""Characters of a secret: a shorter one would be found in every word."""

_secrets: list[tuple[str, re.Pattern[str]]] = []
"""The longest first: what begins as another does must not leave its end."""


def keep_secret(secret: str) -> None:
    """Never show a text again, beside those that were kept secret before."""
    if len(secret) >= LEAST_LENGTH and secret not in dict(_secrets):
        more = [*_secrets, (secret, _pattern(secret))]
        _secrets[:] = sorted(more, key=lambda each: len(each[0]), reverse=True)


def holds_secret(text: str) -> bool:
    """Whether a secret is in a text, in any form."""
    return any(pattern.search(text) for _, pattern in tuple(_secrets))


def without_secrets(text: str) -> str:
    """A text with a mask for each secret in it."""
    for _, pattern in tuple(_secrets):  # a thread may add one meanwhile
        text = pattern.sub(MASK, text)
    return text


def without_secrets_in(value: Any) -> Any:
    """What a JSON text holds, with a mask for each secret in its texts and names."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {without_secrets(name): without_secrets_in(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets_in(inner) for inner in value]
    return value


def _pattern(secret: str) -> re.Pattern[str]:
    parts = re.findall(r"\\+|[^\\]", secret)
    forms = [_backslashes(len(part)) if part[0] == "\\" else _character(part) for part in parts]
    return re.compile("".join(f"(?:{'|'.join(each)})" for each in forms))


def _backslashes(count: int) -> list[str]:
    """The forms of backslashes in a row; together, as each may stand for half of an escape."""
    escaped = [rf"\\{{{times * count}}}" for times in (4, 2, 1)]
    return [*(rf"(?:{form}){{{count}}}" for form in _codes("\\")), *escaped]


def _character(character: str) -> list[str]:
    """The forms of any other character: its codes, with backslashes before it, and itself."""
    plain = re.escape(character)
    escaped = [] if character.isalnum() else [rf"\\\\?\\?{plain}"]
    return [*_codes(character), *escaped, plain]


def _codes(character: str) -> list[str]:
    """The forms in an address, in JSON or Python, and in a page.

    Each begins with a character of its own, which makes the search fast.
    """
    number = ord(character)
    percent = quote(character, safe="", errors="replace")
    if percent == character:
        percent = f"%{number:02x}"
    return [
        f"%(?:25)?(?i:{percent[1:]})",
        rf"\\\\?(?:u(?i:{number:04x})|x(?i:{number:02x}))",
        f"&(?:#0*{number}|#[xX]0*(?i:{number:x})|{html.escape(character)[1:-1] or '#'});",
    ]


# The doors


def guard_log() -> None:
    """Let no handler see a record with a secret: neither those there are nor later ones."""
    logging.Handler.handle = _handle  # type: ignore[method-assign]


def guard_stderr() -> None:
    """Let nothing else that is written to stderr show one: tracebacks, usage errors, prints."""
    if sys.stderr is not None and not isinstance(sys.stderr, _Stderr):
        sys.stderr = _Stderr(sys.stderr)


_handle_any: Callable[[logging.Handler, logging.LogRecord], bool] = logging.Handler.handle


def _handle(self: logging.Handler, record: logging.LogRecord) -> bool:
    try:
        _clean(record)
    except Exception:  # noqa: BLE001 - a record that is broken is for the handler to report
        record.exc_info = None
    return _handle_any(self, record)


def _clean(record: logging.LogRecord) -> None:
    """Mask the secrets in a record: in its message with its traceback, and in what comes along."""
    text = record.getMessage()
    if record.exc_info:
        text += "\n" + logging.Formatter().formatException(record.exc_info)
    masked = without_secrets(text)
    if masked != text:
        record.msg, record.args, record.exc_info, record.exc_text = masked, None, None, None
    for name, value in list(vars(record).items()):
        if name not in {"msg", "args", "exc_info"}:
            text = str(value)
            masked = without_secrets(text)
            if masked != text:
                setattr(record, name, masked)


class _Stderr(io.TextIOBase):
    """Stderr, with a mask for each secret."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(without_secrets(text))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base has a plain attribute
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._stream.errors
