"""Events that the interface allows and that are difficult for loaders; each shows one thing."""

import json
from collections.abc import Sequence
from typing import Any, Final

from tests.builders import an_event

PLAIN: Final = "plain"
"""The event that shows how a loader treats every event."""

LONG_TEXT: Final = "x" * 1_000_000
DEPTH: Final = 150

_SHOWS: Final = {
    PLAIN: "every field that loaders usually see",
    "unknown fields": "fields that the schema does not name, at the top",
    "unknown nested fields": "fields that the schema does not name, in `actor` and `context`",
    "missing fields": "no optional field",
    "null fields": "null in each optional field",
    "2^70": "an integer that has more than 64 bits",
    "1e308": "a number near the largest double",
    "exact decimal": "a number with 37 digits",
    "NUL": "a NUL character; the tap writes U+FFFD",
    "lone surrogate": "half of a surrogate pair; the tap writes U+FFFD",
    "emoji": "characters beyond U+FFFF, also in `id`",
    "quotes": "quotes, commas, line breaks, backslashes, an empty text, the texts `null` and `007`",
    "1 MB": "a text of 1 MB in `details`",
    "150 levels": "150 levels of nesting in `details`",
    "tie 1": "two events of the same instant",
    "tie 2": "two events of the same instant",
    "offset": "`occurredAt` with an offset; the tap writes UTC",
    "nine digits": "`occurredAt` with nine digits of a second",
}
"""What each event shows, by its id."""

NAMES: Final = tuple(_SHOWS)


def shows(name: str) -> str:
    """The special contents of an event."""
    return _SHOWS[name]


def texts(names: Sequence[str] = NAMES) -> list[bytes]:
    """The events as JSON texts, as the service sends them."""
    return [_text(name) for name in names]


def event_id(name: str) -> str:
    """The id of an event."""
    return f"{name} 🦉" if name == "emoji" else name


def _text(name: str) -> bytes:
    at = {
        "tie 1": "2026-01-05T07:30:00Z",
        "tie 2": "2026-01-05T07:30:00Z",
        "offset": "2026-01-05T09:31:00.5+02:00",
        "nine digits": "2026-01-05T07:32:00.123456789Z",
    }.get(name, f"2026-01-05T07:08:{NAMES.index(name):02d}.123Z")
    text = json.dumps(an_event(id=event_id(name), at=at, **_fields(name)))
    # Python has no number with so many digits.
    return text.replace('"DIGITS"', "0.1000000000000000000000000000000000001").encode()


def _fields(name: str) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for _ in range(DEPTH - 1):
        nested = {"a": nested}
    fields: dict[str, dict[str, Any]] = {
        "unknown fields": {"severity": {"level": 3}, "tags": ["a", {"b": None}]},
        "unknown nested fields": {
            "actor": {"type": "robot", "id": "u-2", "name": "R", "email": "r@x", "serial": 7},
            "context": {"requestId": "request-2", "geo": {"city": "Zürich"}},
        },
        "missing fields": {
            "actor": {"type": "system", "id": "s"},
            "context": {},
            "scope": {"organizationId": "o"},
            "entity": {},
        },
        "null fields": {
            "actor": {"type": "system", "id": "s", "name": None, "email": None},
            "context": dict.fromkeys(("requestId", "sessionId", "requestIp")),
            "entity": dict.fromkeys(("type", "subtype", "id", "name", "email")),
        },
        "2^70": _with_details(count=2**70),
        "1e308": _with_details(ratio=1e308),
        "exact decimal": _with_details(ratio="DIGITS"),
        "NUL": {"actor": {"type": "user", "id": "u", "name": "a\0b"}}
        | _with_details(**{"a\0": ""}),
        "lone surrogate": {"actor": {"type": "user", "id": "u", "name": "a\ud800b"}},
        "emoji": {"actor": {"type": "user", "id": "u", "name": "🦉 漢 é"}},
        "quotes": {
            "actor": {"type": "user", "id": "u", "name": "a,\"b\";'c'\r\n\t\\ =1+1", "email": ""},
            "entity": {"name": "null", "id": "007"},
        },
        "1 MB": _with_details(text=LONG_TEXT),
        "150 levels": _with_details(**nested),
    }
    return fields.get(name, {})


def _with_details(**details: Any) -> dict[str, Any]:
    return {"action": {"type": "workspace_create", "details": details}}
