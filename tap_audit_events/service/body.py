"""Reads the body of a response within a bound that no header can change."""

from __future__ import annotations

import io
from typing import Final

from requests import Response

from tap_audit_events.errors.exceptions import service_error

MAX_ERROR_BYTES: Final = 64 * 1024
"""Most bytes read of an error response."""

_CHUNK_BYTES: Final = 64 * 1024
"""Read at a time. For each member of a gzip stream, urllib3 copies the rest of what it has read,
and a body may consist of empty members."""


def read_body(response: Response, most_bytes: int) -> bytes:
    """The whole body, decompressed.

    Raises:
        ContractError: it is larger than `most_bytes`.
    """
    body = read_start(response, most_bytes + 1)
    if len(body) <= most_bytes:
        return body
    response.raw.close()  # the connection cannot be used again: the rest is not read
    raise service_error("AE-TOO-LARGE", details=f"more than {most_bytes:,} bytes")


def read_start(response: Response, most_bytes: int) -> bytes:
    """The first bytes of the body, decompressed, at most `most_bytes`."""
    body = io.BytesIO()  # it gives its bytes away without a copy
    while (left := most_bytes - body.tell()) > 0:
        chunk = response.raw.read(min(_CHUNK_BYTES, left), decode_content=True)
        if not chunk:
            break
        body.write(chunk)
    return body.getvalue()
