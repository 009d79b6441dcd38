"""Bodies of responses, and the record of a body with one event."""

import json
from typing import Any

from tap_audit_events.events.exact_json import read_record
from tap_audit_events.events.page import parse_page


def an_envelope(*texts: bytes, cursor: str | None = None) -> bytes:
    end = b"" if cursor is None else b', "nextCursor": ' + json.dumps(cursor).encode()
    return b'{"auditEvents": [' + b", ".join(texts) + b"]" + end + b"}"


def only_record(body: bytes) -> dict[str, Any]:
    page = parse_page(body)
    assert page.malformed is None
    (text,) = page.texts
    return read_record(text)
