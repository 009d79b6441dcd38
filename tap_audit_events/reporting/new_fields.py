"""Finds new fields and actor types in events, and action types that were not requested."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from logging import INFO, WARNING, Logger
from typing import Any, Final

from tap_audit_events.errors.exceptions import ServiceError, sanitize
from tap_audit_events.events.exact_json import JsonText, read_record
from tap_audit_events.events.schema import SCHEMA

MAX_NAMES: Final = 20
"""Maximum number of names in one log line."""

SAMPLES_PER_PAGE: Final = 2
"""Minimum number of events that are inspected of each page after the first: to inspect all of them
would take too long."""

MAX_EVENT_BYTES: Final = 1_000_000
"""A larger event is not inspected: as a dictionary it may take thirty times as much memory."""

_MAX_NAME_LENGTH: Final = 80
_ACTOR_TYPES: Final = frozenset({"user", "anonymous", "system", "unknown"})  # interface.md 2.3
_FIELDS: Final[dict[str, frozenset[str]]] = {
    name: frozenset(field.get("properties", ())) for name, field in SCHEMA["properties"].items()
}


_NOT_REQUESTED: Final = (
    "The service sends events of action types that action_types does not name; they are delivered"
    " too: %s"
)
_MESSAGES: Final = {
    "action type": (WARNING, _NOT_REQUESTED),
    "actor type": (
        INFO,
        "Actor types that this version does not know, delivered like any other: %s",
    ),
    "field": (
        INFO,
        "Fields that are not in the schema, delivered too; a target may leave them out: %s",
    ),
}


class NewFields:
    """Collects new fields and actor types, and action types that were not requested.

    It inspects every event of the first page that has events, and samples the later pages. So it
    misses nothing in a run that reads at most one page.
    """

    def __init__(self) -> None:
        self._is_sampling = False
        self._found: dict[str, dict[str, None]] = {kind: {} for kind in _MESSAGES}

    def inspect(self, texts: Sequence[JsonText], requested_types: Collection[str] = ()) -> None:
        """Look for new names in the events of a page; no `requested_types` stands for all."""
        step = max(1, len(texts) // SAMPLES_PER_PAGE) if self._is_sampling else 1
        self._is_sampling = self._is_sampling or bool(texts)
        for text in texts[::step]:
            if len(text) <= MAX_EVENT_BYTES:
                with suppress(ServiceError):  # nested too deeply to inspect; it is delivered
                    event = read_record(text)
                    for kind, name in _new_names(event, requested_types):
                        names = self._found[kind]
                        if len(names) <= MAX_NAMES:
                            names[name] = None

    def log(self, logger: Logger) -> None:
        """Log a line for each kind of new name."""
        for kind, (level, message) in _MESSAGES.items():
            names = [sanitize(name, _MAX_NAME_LENGTH) for name in self._found[kind]]
            if names:
                more = ["and more"] if len(names) > MAX_NAMES else []
                logger.log(level, message, ", ".join(names[:MAX_NAMES] + more))


def _new_names(
    event: Mapping[str, Any], requested_types: Collection[str]
) -> Iterator[tuple[str, str]]:
    """The kinds and names of what is new in an event, and in the objects in it."""
    for name, value in event.items():
        if name not in _FIELDS:
            yield "field", name
        elif isinstance(value, dict):
            yield from (("field", f"{name}.{inner}") for inner in value.keys() - _FIELDS[name])
            given = value.get("type")
            if not isinstance(given, str) or not given:
                continue
            if name == "action" and requested_types and given not in requested_types:
                yield "action type", given
            if name == "actor" and given not in _ACTOR_TYPES:
                yield "actor type", given
