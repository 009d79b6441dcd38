"""Evidence of what was read: a chain of records, each of which begins where the last one ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.events.exact_json import JsonText
from tap_audit_events.events.instants import EARLIEST, Instant, parse_instant, text_of

_DIGEST_BYTES: Final = 32
_MODULUS: Final = 1 << 8 * _DIGEST_BYTES


class Coverage:
    """Counts what one organization's runs have delivered since the last record of the chain.

    Args:
        covered_from: where the next record begins: everything before it is covered by the record
            before, or was never requested.
        action_types: which events are requested, empty for all.
        previous_digest: the digest of the record before, None for the first one.
    """

    def __init__(
        self,
        covered_from: Instant,
        action_types: Iterable[str],
        *,
        previous_digest: str | None = None,
    ) -> None:
        self.covered_from = covered_from
        self._action_types = list(action_types)
        self._previous_digest = previous_digest
        self._events = self._late_events = 0
        self._first: Instant | None = None
        self._last: Instant | None = None
        self._sum = 0

    def add(
        self, ids: Sequence[str], instants: Sequence[Instant], texts: Sequence[JsonText]
    ) -> None:
        """Count events that have been written; the order does not matter."""
        if not ids:
            return
        self._events += len(ids)
        self._late_events += sum(instant < self.covered_from for instant in instants)
        self._first = min(*instants, self._first or instants[0])
        self._last = max(*instants, self._last or instants[0])
        for event_id, text in zip(ids, texts, strict=True):
            self._sum = (self._sum + digest_number(event_id, text)) % _MODULUS

    def record(
        self, organization_id: str, covered_until: Instant, read_at: Instant
    ) -> dict[str, Any]:
        """The record of a range that was read to its end, which lies after its start.

        `read_at` is when the run began to read, before its first request.
        """
        return {
            "organization_id": organization_id,
            "covered_until": text_of(covered_until),
            "read_at": text_of(read_at),
            **self.to_json(),
        }

    @property
    def digest(self) -> str:
        """The digest of the events counted so far, in hexadecimal digits."""
        return f"{self._sum:0{2 * _DIGEST_BYTES}x}"

    def following(self, covered_until: Instant) -> Coverage:
        """The coverage that follows a record."""
        return Coverage(covered_until, self._action_types, previous_digest=self.digest)

    # STATE

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` understands."""
        return {
            "covered_from": text_of(self.covered_from),
            "action_types": self._action_types,
            "previous_digest": self._previous_digest,
            "events": self._events,
            "late_events": self._late_events,
            "first_event_at": self._first and text_of(self._first),
            "last_event_at": self._last and text_of(self._last),
            "digest": self.digest,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Coverage:
        """The coverage that `to_json` returned as an object.

        Raises:
            ValueError: it is something else.
        """
        try:
            coverage = cls(
                parse_instant(value["covered_from"]),
                value["action_types"],
                previous_digest=value["previous_digest"],
            )
            coverage._events = int(value["events"])
            coverage._late_events = int(value["late_events"])
            coverage._first = _instant(value["first_event_at"])
            coverage._last = _instant(value["last_event_at"])
            coverage._sum = int(value["digest"], 16) % _MODULUS
            if value["previous_digest"] is not None:
                int(value["previous_digest"], 16)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            reason = f"{type(error).__name__}: {sanitize(str(error), 60)}"
            raise ValueError(f"its coverage is not as this tap writes it: {reason}") from None
        changed = [name for name, each in coverage.to_json().items() if value[name] != each]
        if changed:
            raise ValueError(f"its coverage is not as this tap writes it: {', '.join(changed)}")
        return coverage

    def has_types(self, action_types: Iterable[str]) -> bool:
        """Whether the same events are requested."""
        return self._action_types == list(action_types)


def digest_number(event_id: str, text: JsonText) -> int:
    """The number of one event: the SHA-256 of its id, a NUL, and its JSON text as delivered.

    A digest is the sum of these numbers, modulo 2 to the power of 256. So it does not depend on the
    order, and an event that is missing, added or changed changes it.
    """
    return int.from_bytes(sha256(event_id.encode() + b"\0" + bytes(text)).digest())


def start_of_chain(
    bookmark: Instant | None, range_start: Instant | None, action_types: Iterable[str]
) -> Coverage:
    """A chain without a record yet: it starts at the bookmark, or at the start of the range."""
    return Coverage(max(bookmark or EARLIEST, range_start or EARLIEST), action_types)


def _instant(text: str | None) -> Instant | None:
    return None if text is None else parse_instant(text)
