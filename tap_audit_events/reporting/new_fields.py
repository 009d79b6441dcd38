"""Finds new fields and actor types in events, and action types that were not requested."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from logging import Logger
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


class NewFields:
    """Collects new fields and actor types, and action types that were not requested.

    It inspects every event of the first page that has events, and samples the later pages. So it
    misses nothing in a run that reads at most one page.
    """

    def __init__(self) -> None:
        self._is_sampling = False
        self._action_types: dict[str, None] = {}
        self._actor_types: dict[str, None] = {}
        self._fields: dict[str, None] = {}

    def inspect(self, texts: Sequence[JsonText], requested_types: Collection[str] = ()) -> None:
        """Look for new names in the events of a page; no `requested_types` stands for all."""
        step = max(1, len(texts) // SAMPLES_PER_PAGE) if self._is_sampling else 1
        self._is_sampling = self._is_sampling or bool(texts)
        for text in texts[::step]:
            if len(text) > MAX_EVENT_BYTES:
                continue
            try:
                event = read_record(text)
            except ServiceError:  # nested too deeply to inspect; it is delivered all the same
                continue
            action_type, actor_type = _type_of(event, "action"), _type_of(event, "actor")
            if action_type and requested_types and action_type not in requested_types:
                _add(self._action_types, action_type)
            if actor_type and actor_type not in _ACTOR_TYPES:
                _add(self._actor_types, actor_type)
            for name in _new_fields(event):
                _add(self._fields, name)

    def log(self, logger: Logger) -> None:
        """Log a line for each kind of new name."""
        if self._action_types:
            logger.warning(
                "The service sends events of action types that action_types does not name; they are"
                " delivered too: %s",
                _listed(self._action_types),
            )
        if self._actor_types:
            logger.info(
                "Actor types that this version does not know, delivered like any other: %s",
                _listed(self._actor_types),
            )
        if self._fields:
            logger.info(
                "Fields that are not in the schema, delivered too; a target may leave them out: %s",
                _listed(self._fields),
            )


def _add(names: dict[str, None], name: str) -> None:
    if len(names) <= MAX_NAMES:
        names[name] = None


def _listed(names: Mapping[str, None]) -> str:
    listed = [sanitize(name, _MAX_NAME_LENGTH) for name in names][:MAX_NAMES]
    more = ", and more" if len(names) > MAX_NAMES else ""
    return f"{', '.join(listed)}{more}"


def _type_of(event: Mapping[str, Any], name: str) -> str:
    """The type of an event's action or actor, empty if it has none."""
    value = event.get(name)
    found = value.get("type") if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _new_fields(event: Mapping[str, Any]) -> Iterator[str]:
    """The fields of an event, and of the objects in it, that are not in the schema."""
    for name, value in event.items():
        if name not in _FIELDS:
            yield name
        elif isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in value.keys() - _FIELDS[name])
