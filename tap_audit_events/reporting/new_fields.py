"""What a run meets that the interface does not name: action types, actor types, fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tap_audit_events.errors.exceptions import ServiceError, shown
from tap_audit_events.events.exact_json import JsonText, read_record
from tap_audit_events.events.schema import SCHEMA

MOST_NAMES: Final = 20
"""Names of a kind that are said; of more, that there are more."""

SAMPLES: Final = 2
"""Events of a page that are looked into, after the first page: to look into all costs too much."""

_NAME_LENGTH: Final = 80
_ACTION_TYPES: Final = frozenset({"workspace_create"})  # interface.md 2.2
_ACTOR_TYPES: Final = frozenset({"user", "anonymous", "system", "unknown"})  # interface.md 2.3


class Unknown:
    """Gathers what is new to this version, a name once, and says it in a line for each kind.

    Every event of the first page with events is looked into, so all of a run that brings no more
    than a page; of later pages a few are.

    Args:
        action_types: those that were asked for: they are no news.
    """

    def __init__(self, action_types: Iterable[str] = ()) -> None:
        self._known_types = _ACTION_TYPES.union(action_types)
        self._looked = False
        self._names: dict[str, dict[str, None]] = {
            "Action types that this version does not know, delivered like any other": {},
            "Actor types that this version does not know, delivered like any other": {},
            "Fields that the schema lacks, delivered too; a target may leave them out": {},
        }

    def look_at(self, texts: Sequence[JsonText]) -> None:
        """Take in a page."""
        action_types, actor_types, fields = self._names.values()
        step = max(1, len(texts) // SAMPLES) if self._looked else 1
        self._looked = self._looked or bool(texts)
        for text in texts[::step]:
            try:
                event = read_record(text)
            except ServiceError:  # nested too deep: it may leave, but is not looked into
                continue
            _note(action_types, _type_of(event, "action"), self._known_types)
            _note(actor_types, _type_of(event, "actor"), _ACTOR_TYPES)
            for field in _new_fields(event):
                _note(fields, field)

    def lines(self) -> Iterator[str]:
        """What there is to say; nothing where all is known."""
        for what, names in self._names.items():
            if names:
                said = [shown(name, _NAME_LENGTH) for name in names][:MOST_NAMES]
                more = ", and more" if len(names) > MOST_NAMES else ""
                yield f"{what}: {', '.join(said)}{more}"


def _note(names: dict[str, None], name: object, known: frozenset[str] = frozenset()) -> None:
    if isinstance(name, str) and name not in known and len(names) <= MOST_NAMES:
        names[name] = None


def _type_of(event: Mapping[str, Any], group: str) -> object:
    inner = event.get(group)
    return inner.get("type") if isinstance(inner, dict) else None


def _new_fields(event: Mapping[str, Any]) -> Iterator[str]:
    """The fields of an event, and of the objects in it, that the schema lacks."""
    for name, value in event.items():
        if name not in _FIELDS:
            yield name
        elif isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in value.keys() - _FIELDS[name])


_FIELDS: Final[dict[str, frozenset[str]]] = {
    name: frozenset(field.get("properties", ())) for name, field in SCHEMA["properties"].items()
}
