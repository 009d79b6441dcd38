"""The events that the sandbox holds, in order, and when each of them becomes visible."""

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

from tap_audit_events.sandbox.data.instants import Instant, instant_of

Key: TypeAlias = str
"""An event's instant, NUL and its id: keys compare as interface.md 4.1, `order`, sorts events."""


class Body(Protocol):
    """What an event consists of besides its key. Many generated events share one body."""

    @property
    def action_type(self) -> str: ...

    def render(self, key: Key) -> bytes:
        """The event with that key as JSON."""


class Literal(NamedTuple):
    """An event's own JSON."""

    action_type: str
    text: bytes

    def render(self, _: Key) -> bytes:
        return self.text


Row: TypeAlias = tuple[Key, Body]


@dataclass(frozen=True)
class Selection:
    """The events that a request selects; both bounds are inclusive, None is no bound."""

    action_types: frozenset[str] | None = None
    start: Instant | None = None
    end: Instant | None = None
    descending: bool = True


class Displacement(NamedTuple):
    """The event with that key is shown that many places later than the order says."""

    key: Key
    places: int


def key_of(instant: Instant, event_id: str) -> Key:
    return f"{instant}\0{event_id}"


class Rows:
    """Events sorted by key, in two lists side by side, as a million of them must fit in memory."""

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.bodies: list[Body] = []

    def add(self, keys: Sequence[Key], bodies: Sequence[Body]) -> None:
        """Add events that are sorted; fast for many after the newest and for a few anywhere.

        Raises ValueError for an event that has the instant and the id of another.
        """
        if not self.keys or (keys and self.keys[-1] < keys[0]):
            self.keys += keys
            self.bodies += bodies
            return
        for key, body in zip(keys, bodies, strict=True):
            index = bisect_left(self.keys, key)
            _check_differ(key, *self.keys[index : index + 1])
            self.keys.insert(index, key)
            self.bodies.insert(index, body)

    def of_types(self, types: frozenset[str]) -> "Rows":
        """A copy with the events of these action types."""
        selected = Rows()
        for key, body in zip(self.keys, self.bodies, strict=True):
            if body.action_type in types:
                selected.keys.append(key)
                selected.bodies.append(body)
        return selected

    def page(
        self,
        selection: Selection,
        after: Key | None,
        size: int,
        displacement: Displacement | None = None,
    ) -> tuple[list[Row], bool]:
        """The first `size` selected events after a key, in order, and whether more remain.

        The action types of the selection are ignored.
        """
        first = bisect_left(self.keys, selection.start or "")
        # U+0001 lies between the NUL of this instant and the period of any later one.
        stop = bisect_left(self.keys, f"{selection.end}\1") if selection.end else len(self.keys)
        order: Sequence[int] = range(first, max(first, stop))
        if selection.descending:
            order = order[::-1]
        if displacement is not None:
            key, places = displacement
            index = bisect_left(self.keys, key)
            if self.keys[index : index + 1] == [key] and index in order:
                shown = list(order)
                place = shown.index(index)
                shown.insert(place + places, shown.pop(place))
                order = shown
        begin = 0 if after is None else self._place_after(after, order, selection.descending)
        indices = order[begin : begin + size]
        rows = [(self.keys[index], self.bodies[index]) for index in indices]
        return rows, begin + len(rows) < len(order)

    def _place_after(self, key: Key, order: Sequence[int], descending: bool) -> int:
        """The first place of the order after the event with a key, which may be outside of it."""
        index = bisect_left(self.keys, key)
        if self.keys[index : index + 1] == [key] and index in order:
            return order.index(index) + 1
        return sum(1 for other in order if (other >= index if descending else other < index))


class Store:
    """The visible events, and those that are hidden until some request."""

    def __init__(self) -> None:
        self._all = Rows()
        self._of_types: dict[frozenset[str], Rows] = {}
        self._hidden: dict[int, list[Row]] = {}
        self._late: list[Row] = []

    def __len__(self) -> int:
        """How many events are visible."""
        return len(self._all.keys)

    def key_at(self, index: int) -> Key | None:
        """The key of the visible event at an index in ascending order, if there is one."""
        return self._all.keys[index] if -len(self) <= index < len(self) else None

    def add(self, rows: Iterable[Row], visible_from_request: int = 0) -> None:
        """Add events, given in any order, or hide them until `reveal` is called for that request.

        Raises ValueError for an event that has the instant and the id of another.
        """
        if visible_from_request:
            self._hidden.setdefault(visible_from_request, []).extend(rows)
        elif ordered := sorted(rows, key=lambda row: row[0]):
            for (one, _), (other, _) in pairwise(ordered):
                _check_differ(one, other)
            keys, bodies = zip(*ordered, strict=True)
            self.add_sorted(keys, bodies)

    def add_sorted(self, keys: Sequence[Key], bodies: Sequence[Body]) -> None:
        """Add events that are sorted already."""
        self._all.add(keys, bodies)
        self._of_types.clear()

    def add_late(self, rows: Iterable[Row]) -> None:
        """Add events that are hidden until the request that `reveal_late` names."""
        self._late.extend(rows)

    def reveal_late(self, request_number: int) -> None:
        """Make the late events visible from that request."""
        self.add(self._late, request_number)
        self._late = []

    def reveal(self, request_number: int) -> None:
        """Make the events visible that are hidden until this request or an earlier one."""
        for number in [number for number in self._hidden if number <= request_number]:
            self.add(self._hidden.pop(number))

    def rows_of(self, types: frozenset[str] | None) -> Rows:
        """The visible events of these action types; without types, all."""
        if types is None:
            return self._all
        if types not in self._of_types:
            self._of_types[types] = self._all.of_types(types)
        return self._of_types[types]


def row_of(event: dict[str, Any]) -> Row:
    """The row of an event; raises ValueError if its `occurredAt` is not an instant."""
    try:
        text = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # A lone surrogate has no UTF-8; JSON writes it as an escape.
        text = json.dumps(event, separators=(",", ":")).encode()
    return _literal(event, text)


def row_of_text(text: bytes) -> Row:
    """The row of an event in JSON, which is served byte for byte; else as `row_of`."""
    # Numbers are left as text: Python refuses to read integers of more than 4,300 digits.
    return _literal(json.loads(text, parse_int=str, parse_float=str), text)


def _literal(event: dict[str, Any], text: bytes) -> Row:
    key = key_of(instant_of(event["occurredAt"]), event["id"])
    return key, Literal(event["action"]["type"], text)


def _check_differ(key: Key, *others: Key) -> None:
    if key in others:
        raise ValueError(f"two events of one instant have the id {key.partition(chr(0))[2]!r}")
