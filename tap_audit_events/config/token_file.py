"""The file that contains the access token. It is read again if the service refuses the token."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from tap_audit_events.config.access_token import check_token
from tap_audit_events.errors.exceptions import sanitize

MAX_TOKEN_FILE_BYTES: Final = 8192
"""Far more than any token has: no server accepts so long a header."""


def read_token_file(path: str) -> str:
    """The token in a file, without a byte order mark and the line break at its end.

    Raises:
        ValueError: the path and what is wrong with it, to follow the setting's name. The message
            does not contain the text of the file.
    """
    try:
        text = _read_bytes(Path(path)).decode("utf-8-sig").rstrip("\r\n")
        if not text:
            raise ValueError("is empty: write the token into it")
        check_token(text)
    except OSError as error:
        raise ValueError(_unreadable(path, error.strerror)) from None
    except UnicodeError:
        raise ValueError(f"{sanitize(path)} is not a text file: write the token into it") from None
    except ValueError as error:
        raise ValueError(f"{sanitize(path)} {error}") from None
    return text


def _unreadable(path: str, reason: str | None) -> str:
    """What is wrong with a path that cannot be read.

    A path that is not absolute is not shown: it may be the token itself.
    """
    if Path(path).is_absolute():
        return f"{sanitize(path)} cannot be read: {reason}"
    if path.startswith("~"):
        return (
            f"names a file that cannot be read: {reason}; ~ is not expanded: write the path of the"
            " home folder"
        )
    return (
        f"names a file that cannot be read: {reason}; a relative path starts at the folder in which"
        " the command was started"
    )


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
        data = file.read(MAX_TOKEN_FILE_BYTES + 1)
    if len(data) > MAX_TOKEN_FILE_BYTES:
        raise ValueError(f"is larger than any token: at most {MAX_TOKEN_FILE_BYTES:,} bytes")
    return data
