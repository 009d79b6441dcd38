"""The events the sandbox holds, in the order of the interface, as the bytes it serves."""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from tap_audit_events.sandbox.instants import Instant, instant_of

Key: TypeAlias = tuple[int, str, str]
"""The place of an event in the order: its instant, then its id (interface.md 4.1, `order`)."""

_key = itemgetter(0)


class Row(NamedTuple):
    """An event as the store holds it."""

    key: Key
    action_type: str
    body: bytes


@dataclass(frozen=True)
class Selection:
    """Which events a request asks for; both bounds are inclusive, None stands for no bound."""

    action_types: frozenset[str] | None = None
    start: Instant | None = None
    end: Instant | None = None
    descending: bool = True


class Store:
    """Events sorted by instant, then id, and found in logarithmic time."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._of_types: dict[frozenset[str], list[Row]] = {}
        self._hidden: dict[int, list[Row]] = {}
        self._late: list[Row] = []

    def __len__(self) -> int:
        """How many events are visible."""
        return len(self._rows)

    @property
    def newest(self) -> Key | None:
        """The place of the newest visible event."""
        return self._rows[-1].key if self._rows else None

    def add(self, events: Iterable[dict[str, Any]], visible_from_request: int = 0) -> None:
        """Take events; those with `visible_from_request` wait until `reveal` is told that number.

        Raises ValueError for an event whose `occurredAt` is no instant, and for one that has the
        instant and the id of another.
        """
        self._hold((_row(event, _serialised(event)) for event in events), visible_from_request)

    def add_raw(self, texts: Iterable[bytes], visible_from_request: int = 0) -> None:
        """Take events as JSON texts, which are served byte for byte; else as `add`."""
        # Numbers are left as text: Python refuses to read integers of more than 4,300 digits.
        rows = (_row(json.loads(text, parse_int=str, parse_float=str), text) for text in texts)
        self._hold(rows, visible_from_request)

    def add_late(self, events: Iterable[dict[str, Any]]) -> None:
        """Take events that wait until `reveal_late` tells them for what."""
        self._late.extend(_row(event, _serialised(event)) for event in events)

    def reveal_late(self, request_number: int) -> None:
        """Let the late events become visible with that request."""
        self._hold(self._late, request_number)
        self._late = []

    def reveal(self, request_number: int) -> None:
        """Make the events visible that wait for this request or an earlier one."""
        for number in [number for number in self._hidden if number <= request_number]:
            self._show(self._hidden.pop(number))

    def page(
        self, selection: Selection, after: Key | None, size: int
    ) -> tuple[Sequence[Row], bool]:
        """The first `size` selected events after a place, in order, and whether more remain."""
        rows = self._selected(selection.action_types)
        first = _first_at(rows, selection.start) if selection.start else 0
        stop = _first_after(rows, selection.end) if selection.end else len(rows)
        if selection.descending:
            stop = min(stop, bisect_left(rows, after, key=_key)) if after else stop
            found = rows[max(first, stop - size) : stop][::-1]
        else:
            first = max(first, bisect_right(rows, after, key=_key)) if after else first
            found = rows[first : min(first + size, stop)]
        return found, stop - first > len(found)

    def _hold(self, rows: Iterable[Row], visible_from_request: int) -> None:
        if visible_from_request:
            self._hidden.setdefault(visible_from_request, []).extend(rows)
        else:
            self._show(rows)

    def _show(self, rows: Iterable[Row]) -> None:
        ordered = sorted(rows, key=_key)
        _merge(self._rows, ordered)
        for types, selected in self._of_types.items():
            _merge(selected, [row for row in ordered if row.action_type in types])

    def _selected(self, types: frozenset[str] | None) -> list[Row]:
        if types is None:
            return self._rows
        if types not in self._of_types:
            self._of_types[types] = [row for row in self._rows if row.action_type in types]
        return self._of_types[types]


def _row(event: dict[str, Any], body: bytes) -> Row:
    seconds, fraction = instant_of(event["occurredAt"])
    return Row((seconds, fraction, event["id"]), event["action"]["type"], body)


def _serialised(event: dict[str, Any]) -> bytes:
    try:
        return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # A lone surrogate has no UTF-8; JSON writes it as an escape.
        return json.dumps(event, separators=(",", ":")).encode()


def _merge(rows: list[Row], new: list[Row]) -> None:
    """Put sorted rows into sorted rows; cheap for many at the end and for a few anywhere."""
    if not rows or (new and rows[-1].key < new[0].key):
        for one, other in pairwise(new):
            _differ(one, other)
        rows.extend(new)
        return
    for row in new:
        place = bisect_left(rows, row.key, key=_key)
        if place < len(rows):
            _differ(rows[place], row)
        rows.insert(place, row)


def _differ(one: Row, other: Row) -> None:
    if one.key == other.key:
        raise ValueError(f"two events of one instant have the id {one.key[2]!r}")


def _first_at(rows: list[Row], instant: Instant) -> int:
    return bisect_left(rows, (*instant, ""), key=_key)


def _first_after(rows: list[Row], instant: Instant) -> int:
    seconds, fraction = instant
    # NUL sorts before every digit, so this lies between the instant and any later one.
    return bisect_left(rows, (seconds, fraction + "\0", ""), key=_key)
