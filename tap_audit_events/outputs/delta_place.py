"""Where a Delta table is: what `delta:` is followed by."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.outputs.durable import resolved

PREFIX: Final = "delta:"

_PATH: Final = r"[^\x00-\x1f\x7f#?\[\]\\^|%]*"
_STORE: Final = re.compile(
    rf"(s3a?|gs|az)://[^/?#%:@]+(/{_PATH})?|abfss?://[^/?#%:@]+@[^/?#%:@]+/{_PATH}"
)
"""The URLs of object stores, without anything that could be a secret."""

_UNUSABLE: Final = re.compile(r"[\x00-\x1f\x7f#?\[\]\\^|]|%[0-9A-Fa-f]{2}")
"""What the library reads as another path, or does not accept."""


class Place(NamedTuple):
    """A folder or the URL of an object store, without a slash at its end.

    Attributes:
        uri: what the library opens.
        options: what it must be told in addition to the environment.
    """

    uri: str
    options: dict[str, str]


def place_of(text: str) -> Place:
    """The place that a text names, which begins with `PREFIX`.

    Raises:
        ValueError: it names none, or one that cannot be used.
        OutputError: the working directory is gone.
    """
    place = text[len(PREFIX) :]
    if "://" in place or place.startswith("//") or not place:
        if not _STORE.fullmatch(place):  # not shown: a password may be in it
            raise ValueError(
                f"{PREFIX} must be followed by a folder, or by s3://, gs://, az:// or abfss://, a"
                " bucket and a path, without a password, parameters or any of % | ^ [ ]"
            )
        # Without it, an S3 store would accept the same commit from two runs.
        options = {"aws_conditional_put": "etag"} if place.startswith("s3") else {}
        return Place(place.rstrip("/"), options)
    path = str(resolved(Path(place)))
    if _UNUSABLE.search(path):
        raise ValueError(
            f"a Delta table cannot be in {sanitize(path)}: choose a path without any of % # ? | ^"
            r" [ ] \ and without control characters"
        )
    return Place(path, {})
