"""A page that has to wait for earlier ones, compressed to about a quarter of its memory."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Final

import msgspec

from tap_audit_events.events.exact_json import encode
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.page import Page

_FASTEST: Final = 1

_decode_keys = msgspec.json.Decoder(tuple[list[str], list[Instant]]).decode


def compress(page: Page) -> Page:
    """The same page with its columns compressed, for `decompress`.

    It takes twice as long as parsing the page, and other threads work meanwhile.
    """
    if not page.ids:
        return page
    keys = encode((page.ids, page.instants))
    compressed = zlib.compress(b"\n".join([keys, *page.texts]), _FASTEST)  # each is on one line
    size = len(compressed)
    return replace(page, ids=(), instants=(), texts=(), size=size, compressed=compressed)


def decompress(page: Page) -> Page:
    """The page with its columns; a page that is not compressed, unchanged."""
    if page.compressed is None:
        return page
    keys, *texts = zlib.decompress(page.compressed).split(b"\n")
    ids, instants = _decode_keys(keys)
    return replace(page, ids=ids, instants=instants, texts=texts, compressed=None)
