"""Events in the order of the interface, and the page of them that a request selects."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, TypeAlias

from tap_audit_events.sandbox.data.instants import Instant
from tap_audit_events.sandbox.data.window import Move, Window, placed, source

Key: TypeAlias = str
"""An event's instant, NUL and its id: keys compare as interface.md 4.1, `order`, sorts events."""

Head: TypeAlias = bytes
"""The bytes that distinguish events with the same body; only the body can read them."""


class Body(Protocol):
    """An event without its head. Many generated events share one body."""

    @property
    def action_type(self) -> str: ...

    def key(self, head: Head) -> Key:
        """The key of the event with that head."""

    def render(self, head: Head) -> bytes:
        """The event with that head as JSON."""


class Literal(NamedTuple):
    """An event's own JSON; its head is the key."""

    action_type: str
    text: bytes

    def key(self, head: Head) -> Key:
        return head.decode("utf-8", "surrogatepass")

    def render(self, _: Head) -> bytes:
        return self.text


Row: TypeAlias = tuple[Head, Body]


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


def literal_row(key: Key, action_type: str, text: bytes) -> Row:
    return key.encode("utf-8", "surrogatepass"), Literal(action_type, text)


def key_of_row(row: Row) -> Key:
    head, body = row
    return body.key(head)


class Rows:
    """Events sorted by key, in two lists side by side, as a million of them must fit in memory."""

    def __init__(self) -> None:
        self.heads: list[Head] = []
        self.bodies: list[Body] = []

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Self:
        """The rows of these events, which may be given in any order.

        Raises ValueError for two events with the same instant and id.
        """
        ordered = cls()
        before = None
        for row in sorted(rows, key=key_of_row):
            key = key_of_row(row)
            _check_differ(before, key)
            ordered.append(row)
            before = key
        return ordered

    def __len__(self) -> int:
        return len(self.heads)

    def __getitem__(self, index: int) -> Row:
        return self.heads[index], self.bodies[index]

    def append(self, row: Row) -> None:
        """Add an event after all others."""
        self.heads.append(row[0])
        self.bodies.append(row[1])

    def replace(self, start: int, rows: Sequence[Row]) -> None:
        """Replace as many events, from an index on."""
        self.heads[start : start + len(rows)] = [head for head, _ in rows]
        self.bodies[start : start + len(rows)] = [body for _, body in rows]

    def merge(self, other: "Rows") -> None:
        """Insert other events; fast for many after the newest and for a few anywhere.

        Raises ValueError for an event that has the instant and the id of another.
        """
        if not len(other):
            return
        if not len(self) or key_of_row(self[-1]) < key_of_row(other[0]):
            self.heads += other.heads
            self.bodies += other.bodies
            return
        for row in other:
            key = key_of_row(row)
            index = self._first_from(key)
            if index < len(self):
                _check_differ(self._key(index), key)
            self.heads.insert(index, row[0])
            self.bodies.insert(index, row[1])

    def of_types(self, types: frozenset[str]) -> "Rows":
        """A copy with the events of these action types."""
        selected = Rows()
        for row in self:
            if row[1].action_type in types:
                selected.append(row)
        return selected

    def __iter__(self) -> Iterator[Row]:
        return zip(self.heads, self.bodies, strict=True)

    def page(
        self,
        selection: Selection,
        after: Key | None,
        size: int,
        displacements: Sequence[Displacement],
    ) -> tuple[list[Row], bool]:
        """The first `size` selected events after a key, in order, and whether more remain.

        The action types of the selection are ignored.
        """
        window = self._window(selection)
        moves: list[Move] = []
        for key, places in displacements:
            rank = self._rank(window, key)
            if rank is not None:
                origin = placed(moves, rank)
                moves.append(Move(origin, min(origin + places, window.count - 1)))
        begin = self._rank_after(window, moves, after) if after is not None else 0
        ranks = range(begin, min(begin + size, window.count))
        shown = [source(moves, rank) for rank in ranks] if moves else ranks
        rows = [self[window.index(rank)] for rank in shown]
        return rows, begin + len(rows) < window.count

    def _window(self, selection: Selection) -> Window:
        first, stop = 0, len(self)
        if selection.start is not None:
            first = self._first_from(key_of(selection.start, ""))
        if selection.end is not None:
            # U+0001 lies between the NUL of this instant and the period of any later one.
            stop = self._first_from(f"{selection.end}\1")
        return Window(first, max(first, stop), selection.descending)

    def _rank(self, window: Window, key: Key) -> int | None:
        """The place of a key in the order of the window, if it is there."""
        index = self._first_from(key)
        if window.first <= index < window.stop and self._key(index) == key:
            return window.rank(index)
        return None

    def _rank_after(self, window: Window, moves: Sequence[Move], key: Key) -> int:
        rank = self._rank(window, key)
        if rank is not None:
            return placed(moves, rank) + 1
        index = self._first_from(key)
        rank = window.stop - index if window.descending else index - window.first
        return min(max(rank, 0), window.count)

    def _first_from(self, key: Key) -> int:
        """The index of the first event with this key or a larger one."""
        return bisect_left(range(len(self)), key, key=self._key)

    def _key(self, index: int) -> Key:
        return self.bodies[index].key(self.heads[index])


def _check_differ(one: Key | None, other: Key) -> None:
    if one == other:
        raise ValueError(f"two events of one instant have the id {other.partition(chr(0))[2]!r}")
