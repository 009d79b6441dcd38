"""Realistic events, always the same ones for the same arguments."""

from collections.abc import Iterator
from datetime import datetime
from itertools import accumulate
from random import Random
from typing import Any, Final, TypeAlias

from tap_audit_events.sandbox.actions import ACTIONS, Action
from tap_audit_events.sandbox.identity import ORGANIZATION_ID
from tap_audit_events.sandbox.timeline import timeline
from tap_audit_events.sandbox.vocabulary import CHANNELS, PEOPLE, WORKSPACES

Event: TypeAlias = dict[str, Any]
"""An AuditEvent as interface.md 2.1 has it."""

MAXIMUM_DAYS: Final = 36_500

_WEIGHTS: Final = tuple(accumulate(action.weight for action in ACTIONS))
_ACTOR_TYPES: Final = ("user",) * 17 + ("system", "system", "anonymous", "unknown")


def generate(
    count: int,
    days: float,
    seed: int | str,
    until: datetime,
    organization_id: str = ORGANIZATION_ID,
) -> list[Event]:
    """So many events of the days before `until`, oldest first; see `each_event`."""
    return list(each_event(count, days, seed, until, organization_id))


def each_event(
    count: int,
    days: float,
    seed: int | str,
    until: datetime,
    organization_id: str = ORGANIZATION_ID,
) -> Iterator[Event]:
    """The events of `generate` one by one, for more of them than memory should hold.

    The newest lies less than two milliseconds before `until`, which needs a time zone. Ids are
    unique.

    Raises ValueError for a negative `count`, and for `days` out of their bounds.
    """
    if count < 0:
        raise ValueError("the number of events is negative")
    if not 0 < days <= MAXIMUM_DAYS:
        raise ValueError(f"the days are not above 0 and at most {MAXIMUM_DAYS}")
    random = Random(seed)
    maker = EventMaker(random, organization_id)
    for moment in timeline(count, days, until, random):
        yield maker.event(moment.text())


class EventMaker:
    """Makes events of one organization, with the same people and places in all of them."""

    def __init__(self, random: Random, organization_id: str) -> None:
        self._random = random
        self._organization_id = organization_id
        self._people = [self._person(number) for number in range(60)]
        self._workspaces = [
            {"workspaceId": self._short_id("wsp"), "workspaceName": name} for name in WORKSPACES
        ]

    def event(self, occurred_at: str) -> Event:
        """An event of that time."""
        random = self._random
        action = random.choices(ACTIONS, cum_weights=_WEIGHTS)[0]
        return {
            "id": self._id(),
            "occurredAt": occurred_at,
            "action": {"type": action.type, "details": action.details(random)},
            "actor": self._actor(),
            "context": self._context(),
            "scope": self._scope(action),
            "entity": self._entity(action),
        }

    def _id(self) -> str:
        digits = f"{self._random.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

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
        fields = {"requestId": self._id(), "sessionId": self._id(), "requestIp": address}
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
        """The fields, of which one in ten events misses some."""
        if self._random.random() < 0.9:
            return dict(fields)
        return {
            name: value
            for name, value in fields.items()
            if name in always or self._random.random() < 0.5
        }
