"""Events in the order of the interface, and the page of them that a request selects."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeAlias

from tap_audit_events.sandbox.instants import Instant

Key: TypeAlias = str
"""An event's instant, NUL and its id: keys compare as interface.md 4.1, `order`, sorts events."""


class Body(Protocol):
    """What an event consists of besides its key; generated events share theirs with others."""

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
    """Which events a request selects; both bounds are inclusive, None stands for no bound."""

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

    def merge(self, rows: Sequence[Row]) -> None:
        """Insert sorted rows; fast for many after the newest and for a few anywhere.

        Raises ValueError for an event that has the instant and the id of another.
        """
        for (one, _), (other, _) in pairwise(rows):
            _check_differ(one, other)
        if not self.keys or (rows and self.keys[-1] < rows[0][0]):
            self.keys.extend(key for key, _ in rows)
            self.bodies.extend(body for _, body in rows)
            return
        for key, body in rows:
            index = bisect_left(self.keys, key)
            if index < len(self.keys):
                _check_differ(self.keys[index], key)
            self.keys.insert(index, key)
            self.bodies.insert(index, body)

    def of_types(self, types: frozenset[str]) -> "Rows":
        """A copy with the events of these action types."""
        every = zip(self.keys, self.bodies, strict=True)
        selected = Rows()
        selected.merge([row for row in every if row[1].action_type in types])
        return selected

    def page(
        self,
        selection: Selection,
        after: Key | None,
        size: int,
        displacements: Sequence[Displacement],
    ) -> tuple[list[Row], bool]:
        """The first `size` selected events after a key, in order, and whether more remain.

        The action types of the selection are not looked at.
        """
        window = self._window(selection)
        moves: list[_Move] = []
        for key, places in displacements:
            rank = self._rank(window, key)
            if rank is not None:
                origin = _placed(moves, rank)
                moves.append(_Move(origin, min(origin + places, window.count - 1)))
        begin = self._rank_after(window, moves, after) if after is not None else 0
        ranks = range(begin, min(begin + size, window.count))
        indices = [window.index(_source(moves, rank)) for rank in ranks]
        rows = [(self.keys[index], self.bodies[index]) for index in indices]
        return rows, begin + len(rows) < window.count

    def _window(self, selection: Selection) -> "_Window":
        first, stop = 0, len(self.keys)
        if selection.start is not None:
            first = bisect_left(self.keys, key_of(selection.start, ""))
        if selection.end is not None:
            # U+0001 lies between the NUL of this instant and the period of any later one.
            stop = bisect_left(self.keys, f"{selection.end}\1")
        return _Window(first, max(first, stop), selection.descending)

    def _rank(self, window: "_Window", key: Key) -> int | None:
        """The place of a key in the order of the window, if it is there."""
        index = bisect_left(self.keys, key)
        if window.first <= index < window.stop and self.keys[index] == key:
            return window.rank(index)
        return None

    def _rank_after(self, window: "_Window", moves: Sequence["_Move"], key: Key) -> int:
        rank = self._rank(window, key)
        if rank is not None:
            return _placed(moves, rank) + 1
        if window.descending:
            rank = window.stop - bisect_left(self.keys, key)
        else:
            rank = bisect_right(self.keys, key) - window.first
        return min(max(rank, 0), window.count)


@dataclass(frozen=True)
class _Window:
    """The indices from `first` to before `stop`."""

    first: int
    stop: int
    descending: bool

    @property
    def count(self) -> int:
        return self.stop - self.first

    def rank(self, index: int) -> int:
        """The place of an index in the requested order, from 0."""
        return self.stop - 1 - index if self.descending else index - self.first

    def index(self, rank: int) -> int:
        return self.stop - 1 - rank if self.descending else self.first + rank


class _Move(NamedTuple):
    """The row at rank `origin` is shown at rank `target`, and those between one earlier."""

    origin: int
    target: int


def _placed(moves: Sequence[_Move], rank: int) -> int:
    """Where the row of a rank is shown after the moves."""
    for origin, target in moves:
        if rank == origin:
            rank = target
        elif origin < rank <= target:
            rank -= 1
    return rank


def _source(moves: Sequence[_Move], rank: int) -> int:
    """The rank of the row that is shown at a rank; the inverse of `_placed`."""
    for origin, target in reversed(moves):
        if rank == target:
            rank = origin
        elif origin <= rank < target:
            rank += 1
    return rank


def _check_differ(one: Key, other: Key) -> None:
    if one == other:
        raise ValueError(f"two events of one instant have the id {one.partition(chr(0))[2]!r}")
