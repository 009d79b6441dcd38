"""Generates events with realistic content, and templates that many events share."""

import json
from collections.abc import Iterator
from itertools import accumulate
from random import Random
from typing import Any, Final, TypeAlias

from tap_audit_events.sandbox.data.content import ACTIONS, CHANNELS, PEOPLE, WORKSPACES, Action
from tap_audit_events.sandbox.data.instants import instant_of
from tap_audit_events.sandbox.data.rows import Head, Key, Row, key_of

Event: TypeAlias = dict[str, Any]
"""An AuditEvent of interface.md 2.1."""

_WEIGHTS: Final = tuple(accumulate(action.weight for action in ACTIONS))
_ACTOR_TYPES: Final = ("user",) * 17 + ("system", "system", "anonymous", "unknown")
_ID_PLACE: Final = slice(7, 43)
_TIME_PLACE: Final = slice(59, -2)
_SUFFIX_PLACE: Final = slice(31, 43)
"""Where the head of a generated event has its id, its time, and the last part of the id."""

_SUFFIX: Final = "\0" * 12
_ESCAPED_SUFFIX: Final = json.dumps(_SUFFIX)[1:-1].encode()


class EventTemplate:
    """The body of many events, which differ in id, time and request id."""

    __slots__ = ("_after", "_before", "action_type")

    def __init__(self, event: Event) -> None:
        """Create the template from an event without id and time."""
        self.action_type: str = event["action"]["type"]
        text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        self._before, _, self._after = text[1:].encode().partition(_ESCAPED_SUFFIX)

    def row(self, time: str, event_id: str) -> Row:
        """The event with that time, as it is written, and that id."""
        return f'{{"id":"{event_id}","occurredAt":"{time}",'.encode(), self

    def key(self, head: Head) -> Key:
        """The key of the event with that head."""
        text = head.decode()
        return key_of(instant_of(text[_TIME_PLACE]), text[_ID_PLACE])

    def render(self, head: Head) -> bytes:
        """The event with that head as JSON."""
        if not self._after:
            return head + self._before
        return b"".join((head, self._before, head[_SUFFIX_PLACE], self._after))


class EventGenerator:
    """Generates events of one organization, with the same people and workspaces in all of them."""

    def __init__(self, random: Random, organization_id: str) -> None:
        self._random = random
        self._ids = _uuids(random)
        self._organization_id = organization_id
        self._people = [self._person(number) for number in range(60)]
        self._workspaces = [
            {"workspaceId": self._short_id("wsp"), "workspaceName": name} for name in WORKSPACES
        ]

    def template(self) -> EventTemplate:
        """A new template."""
        return EventTemplate(self._event())

    def event_id(self) -> str:
        """A new UUID."""
        return next(self._ids)

    def _event(self) -> Event:
        """An event without id and time."""
        action = self._random.choices(ACTIONS, cum_weights=_WEIGHTS)[0]
        return {
            "action": {"type": action.type, "details": action.details(self._random)},
            "actor": self._actor(),
            "context": self._context(),
            "scope": self._scope(action),
            "entity": self._entity(action),
        }

    def _short_id(self, prefix: str) -> str:
        return f"{prefix}_{self._random.getrandbits(40):010x}"

    def _person(self, number: int) -> dict[str, str]:
        name = PEOPLE[number % len(PEOPLE)]
        email = f"user{number}@example.com"
        return {"id": self._short_id("usr"), "name": name, "email": email}

    def _actor(self) -> dict[str, str]:
        kind = self._random.choice(_ACTOR_TYPES)
        if kind == "user":
            person = self._random.choice(self._people)
            return {"type": kind, **self._mostly(person, always=("id",))}
        if kind == "system":
            return {"type": kind, "id": "system", "name": "Scheduler"}
        return {"type": kind, "id": self._short_id("ext")}

    def _context(self) -> dict[str, str]:
        random = self._random
        address = f"203.0.113.{random.randrange(256)}" if random.random() < 0.8 else "2001:db8::7f"
        request_id = self.event_id()[: -len(_SUFFIX)] + _SUFFIX
        fields = {"requestId": request_id, "sessionId": self.event_id(), "requestIp": address}
        return self._mostly(fields)

    def _scope(self, action: Action) -> dict[str, str]:
        scope = {"organizationId": self._organization_id}
        if action.entity_type != "organization":
            scope |= self._mostly(self._random.choice(self._workspaces))
        if action.entity_type == "channel":
            scope["channelId"] = self._short_id("chn")
        return scope

    def _entity(self, action: Action) -> dict[str, str]:
        random = self._random
        kind = action.entity_type
        entity = {"type": kind, "id": self._short_id("ent")}
        if kind == "user":
            entity |= random.choice(self._people)
        elif kind == "channel":
            entity["subtype"] = random.choice(("public", "private"))
            entity["name"] = random.choice(CHANNELS)
        elif kind == "workspace":
            entity["name"] = random.choice(WORKSPACES)
        return self._mostly(entity)

    def _mostly(self, fields: dict[str, str], always: tuple[str, ...] = ()) -> dict[str, str]:
        """The fields, of which one in ten events lacks some."""
        if self._random.random() < 0.9:
            return dict(fields)
        return {
            name: value
            for name, value in fields.items()
            if name in always or self._random.random() < 0.5
        }


def _uuids(random: Random) -> Iterator[str]:
    """Random UUIDs; drawing the digits of many at once saves a third of the time."""
    while True:
        digits = random.randbytes(15 * 256).hex()
        for i in range(0, len(digits), 30):
            yield (
                f"{digits[i : i + 8]}-{digits[i + 8 : i + 12]}-4{digits[i + 12 : i + 15]}"
                f"-a{digits[i + 15 : i + 18]}-{digits[i + 18 : i + 30]}"
            )
