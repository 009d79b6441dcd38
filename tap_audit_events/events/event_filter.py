"""Chooses events by actor, by entity, and by the action types to leave out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Self

import msgspec

from tap_audit_events.events.action_types import has_action_type
from tap_audit_events.events.exact_json import JsonText, decode_with

_ABSENT = msgspec.Raw(b"null")


class EventFilter(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Matches events by id or e-mail address; without any values, it matches every event.

    Ids are compared exactly, e-mail addresses without regard to case. A field that is not a text
    never matches.

    Attributes:
        actor: the actor has one of these ids or addresses.
        entity: the same for the entity; if both are given, both must match.
        exclude_action_types: the event has none of these action types.
    """

    actor: tuple[str, ...] = ()
    entity: tuple[str, ...] = ()
    exclude_action_types: tuple[str, ...] = ()

    @classmethod
    def of(cls, actor: Iterable[str], entity: Iterable[str]) -> Self:
        """A filter that equals every other one with the same values, in whatever order."""
        return cls(tuple(sorted({*actor})), tuple(sorted({*entity})))

    def __bool__(self) -> bool:
        return bool(self.actor or self.entity or self.exclude_action_types)

    def positions(self, texts: Sequence[JsonText]) -> Sequence[int]:
        """Which of some events match.

        Raises:
            ContractError: an event is nested too deeply to be read.
        """
        if not self:
            return range(len(texts))
        tests = [
            (part, frozenset(values), frozenset(each.casefold() for each in values))
            for part, values in (("actor", self.actor), ("entity", self.entity))
            if values
        ]

        def matches(text: JsonText) -> bool:
            if self.exclude_action_types and has_action_type(text, self.exclude_action_types):
                return False
            event = decode_with(_decode_event, text)
            for part, ids, emails in tests:
                try:
                    named = decode_with(_decode_named, getattr(event, part))
                except msgspec.ValidationError:  # it is not an object
                    return False
                if _text(named.id) not in ids and _text(named.email).casefold() not in emails:
                    return False
            return True

        return [position for position, text in enumerate(texts) if matches(text)]


EVERY_EVENT: Final = EventFilter()


class _Event(msgspec.Struct, gc=False):
    actor: msgspec.Raw = _ABSENT
    entity: msgspec.Raw = _ABSENT


class _Named(msgspec.Struct, gc=False):
    id: msgspec.Raw = _ABSENT
    email: msgspec.Raw = _ABSENT


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_named = msgspec.json.Decoder(_Named).decode
_decode_text = msgspec.json.Decoder(str).decode


def _text(value: msgspec.Raw) -> str:
    """The text of a field, empty if it is not a text: no filter has an empty value."""
    return _decode_text(value) if bytes(value).startswith(b'"') else ""
