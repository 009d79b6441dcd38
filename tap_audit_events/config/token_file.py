"""The file that holds the access token: read at start, and again where the token is refused."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

from tap_audit_events.errors.exceptions import shown

LARGEST_BYTES: Final = 8192
"""Far above any token: no server takes a header as long."""


def read_token_file(path: str) -> str:
    """The token in a file; a byte order mark and the line break at its end are no part of it.

    Raises:
        ValueError: with the path and what is wrong with it, to follow the setting's name. What the
            file holds is not shown.
    """
    try:
        text = _bytes(Path(path)).decode("utf-8-sig").rstrip("\r\n")
        if not text:
            raise ValueError("is empty: write the token into it")
        check_token(text)
    except OSError as error:
        raise ValueError(f"{shown(path)} cannot be read: {error.strerror}") from None
    except UnicodeError:
        raise ValueError(f"{shown(path)} holds no text: write the token into it") from None
    except ValueError as error:
        raise ValueError(f"{shown(path)} {error}") from None
    return text


def check_token(text: str) -> None:
    """Check that a token can be sent in a header (RFC 6750).

    Raises:
        ValueError: it is not one word of printable ASCII.
    """
    if not re.fullmatch(r"[!-~]+", text):
        raise ValueError(
            "must be one word of printable ASCII: it has white space, a control character or a"
            " letter outside of ASCII; look for a line break at its end"
        )


def others_may_read(status: os.stat_result) -> bool:
    """Whether more people may read a file than need to.

    Its group may where the file is root's: so a mounted secret is handed to the tap's user.
    """
    others = stat.S_IROTH if status.st_uid == 0 else stat.S_IROTH | stat.S_IRGRP
    return bool(status.st_mode & others)


def _bytes(path: Path) -> bytes:
    if "\0" in str(path):
        raise ValueError("is no path: it holds a NUL character")
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("is no regular file: it could not be read again")
    with path.open("rb") as file:
        data = file.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise ValueError(f"is larger than any token: it may have {LARGEST_BYTES:,} bytes at most")
    return data
