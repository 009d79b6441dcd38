"""Generates events with realistic content, and bodies that many events share."""

import json
from random import Random
from typing import Any, Final, TypeAlias

from tap_audit_events.sandbox.data.content import ACTIONS, CHANNELS, PEOPLE, WORKSPACES, Action
from tap_audit_events.sandbox.data.store import Key

Event: TypeAlias = dict[str, Any]
"""An AuditEvent of interface.md 2.1."""

_WEIGHTS: Final = [action.weight for action in ACTIONS]
_ACTOR_TYPES: Final = ("user",) * 17 + ("system", "system", "anonymous", "unknown")
_SUFFIX: Final = b"~" * 12
"""Stands for the last part of the event's id in the request id of a body."""

_WHOLE_SECONDS: Final = 19
"""The length of an instant without a fraction."""


class GeneratedBody:
    """The body of many events, which differ in id, time and request id."""

    __slots__ = ("_after", "_before", "_time_length", "action_type")

    def __init__(self, event: Event, digits: int) -> None:
        """Create the body of an event without id and time.

        The fractions of its times have at least that many digits.
        """
        self.action_type: str = event["action"]["type"]
        text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))[1:].encode()
        self._before, _, self._after = text.partition(_SUFFIX)
        self._time_length = _WHOLE_SECONDS + 1 + digits

    def render(self, key: Key) -> bytes:
        """The event with that key as JSON."""
        time, event_id = key.split("\0")
        if len(time) > _WHOLE_SECONDS:
            time = time.ljust(self._time_length, "0")
        head = f'{{"id":"{event_id}","occurredAt":"{time}Z",'.encode()
        if not self._after:
            return head + self._before
        return b"".join((head, self._before, event_id[-12:].encode(), self._after))


class EventGenerator:
    """Generates events of one organization, with the same people and workspaces in all of them."""

    def __init__(self, random: Random, organization_id: str) -> None:
        self._random = random
        self._organization_id = organization_id
        self._people = [
            {"id": self._short_id("usr"), "name": PEOPLE[number % len(PEOPLE)],
             "email": f"user{number}@example.com"} for number in range(60)
        ]  # fmt: skip
        self._workspaces = [
            {"workspaceId": self._short_id("wsp"), "workspaceName": name} for name in WORKSPACES
        ]

    def body(self, digits: int) -> GeneratedBody:
        """A new body; the fractions of its times have at least that many digits."""
        action = self._random.choices(ACTIONS, _WEIGHTS)[0]
        event = {
            "action": {"type": action.type, "details": action.details(self._random)},
            "actor": self._actor(),
            "context": self._context(),
            "scope": self._scope(action),
            "entity": self._entity(action),
        }
        return GeneratedBody(event, digits)

    def event_id(self) -> str:
        """A new UUID."""
        text = f"{self._random.getrandbits(120):030x}"
        return f"{text[:8]}-{text[8:12]}-4{text[12:15]}-a{text[15:18]}-{text[18:]}"

    def _short_id(self, prefix: str) -> str:
        return f"{prefix}_{self._random.getrandbits(40):010x}"

    def _actor(self) -> dict[str, str]:
        kind = self._random.choice(_ACTOR_TYPES)
        if kind == "user":
            person = self._random.choice(self._people)
            return {"type": kind, **self._mostly(person), "id": person["id"]}
        if kind == "system":
            return {"type": kind, "id": "system", "name": "Scheduler"}
        return {"type": kind, "id": self._short_id("ext")}

    def _context(self) -> dict[str, str]:
        random = self._random
        ip = f"203.0.113.{random.randrange(256)}" if random.random() < 0.8 else "2001:db8::7f"
        request_id = self.event_id()[:-12] + _SUFFIX.decode()
        return self._mostly(
            {"requestId": request_id, "sessionId": self.event_id(), "requestIp": ip}
        )

    def _scope(self, action: Action) -> dict[str, str]:
        scope = {"organizationId": self._organization_id}
        if action.entity_type != "organization":
            scope |= self._mostly(self._random.choice(self._workspaces))
        if action.entity_type == "channel":
            scope["channelId"] = self._short_id("chn")
        return scope

    def _entity(self, action: Action) -> dict[str, str]:
        random = self._random
        entity = {"type": action.entity_type, "id": self._short_id("ent")}
        if action.entity_type == "user":
            entity |= random.choice(self._people)
        elif action.entity_type == "channel":
            entity["subtype"] = random.choice(("public", "private"))
            entity["name"] = random.choice(CHANNELS)
        elif action.entity_type == "workspace":
            entity["name"] = random.choice(WORKSPACES)
        return self._mostly(entity)

    def _mostly(self, fields: dict[str, str]) -> dict[str, str]:
        """The fields, of which one in ten events lacks some."""
        if self._random.random() < 0.9:
            return fields
        return {name: value for name, value in fields.items() if self._random.random() < 0.5}
