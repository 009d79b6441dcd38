"""The schema of the stream of coverage records."""

from __future__ import annotations

from typing import Any, Final


def _time(description: str) -> dict[str, Any]:
    return {"type": ["string", "null"], "format": "date-time", "description": description}


def _text(description: str) -> dict[str, Any]:
    return {"type": ["string", "null"], "description": description}


def _count(description: str) -> dict[str, Any]:
    return {"type": ["integer", "null"], "description": description}


COVERAGE_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "organization_id": _text("UUID of the organization."),
        "covered_from": _time(
            "Start of the covered range, inclusive: covered_until of the record before."
        ),
        "covered_until": _time(
            "End of the covered range, exclusive. Every event in the range that the service showed"
            " at read_at is delivered; of what a failed run had read before, every event that the"
            " service showed to that run."
        ),
        "read_at": _time("When the run began to read the organization, before its first request."),
        "action_types": {
            "type": ["array", "null"],
            "items": {"type": ["string"]},
            "description": "The setting action_types; empty for all events.",
        },
        "events": _count("Events delivered since the record before."),
        "late_events": _count("How many of them are dated before covered_from."),
        "first_event_at": _time("Time of the oldest of them."),
        "last_event_at": _time("Time of the newest of them."),
        "digest": _text(
            "Sum of the SHA-256 of each of them, in hexadecimal digits: see docs/proof.md."
        ),
        "previous_digest": _text("digest of the record before; null in the first record."),
    },
}
