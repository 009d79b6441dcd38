"""A chunk of the ids that the watermark holds, and the pieces of it that go into STATE."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tap_audit_events.events.instants import Instant
from tap_audit_events.extraction.id_groups import DIGEST_BYTES, Group, digests_of

_FULL: Final = 1000
"""Ids from which on a chunk is not extended: about a page."""


class Chunk:
    """Ids with their instants, in ascending order of the instants.

    Attributes:
        instants: one for each id, at least one.
        ids: empty if the ids came from STATE; then only their digests are known.
    """

    def __init__(self, instants: list[Instant], ids: list[str], digests: bytes = b"") -> None:
        self.instants = instants
        self.ids = ids
        self._digests = bytearray(digests)

    @classmethod
    def of_events(cls, ids: Sequence[str], instants: Sequence[Instant]) -> Chunk:
        """The ids of events in any order."""
        in_order = sorted(instants)
        if in_order == instants:
            return cls(in_order, list(ids))
        pairs = sorted(zip(instants, ids, strict=True))
        return cls([instant for instant, _ in pairs], [event_id for _, event_id in pairs])

    @classmethod
    def of_group(cls, group: Group) -> Chunk:
        """The ids of a group from STATE. Each counts as one of the group's instant."""
        return cls([group.until] * group.count, [], group.digests)

    def __len__(self) -> int:
        return len(self.instants)

    @property
    def newest(self) -> Instant:
        """The newest instant."""
        return self.instants[-1]

    def spans(self, instant: Instant) -> bool:
        """Whether an instant lies between the oldest and the newest."""
        return self.instants[0] <= instant <= self.newest

    def newest_until(self, end: Instant) -> Instant | None:
        """The newest instant that is not after `end`."""
        count = bisect_right(self.instants, end)
        return self.instants[count - 1] if count else None

    def extend(self, other: Chunk) -> bool:
        """Append another chunk if this one is small and comes before it; say whether it did."""
        if not 0 < len(self.ids) < _FULL or self.newest > other.instants[0]:
            return False
        self.instants += other.instants
        self.ids += other.ids
        return True

    def pieces(self, start: Instant, bookmark: Instant, size: int) -> Iterator[Piece]:
        """The ids from `start` on, and those of the bookmark's instant, in pieces.

        A piece has at most `size` ids. Those of the bookmark's instant are a piece of their own,
        however many.
        """
        first = bisect_left(self.instants, start)
        tie, after = bisect_left(self.instants, bookmark), bisect_right(self.instants, bookmark)
        parts = (
            (first, tie, size),
            (tie, after, len(self)),
            (max(first, after), len(self), size),
        )
        for begin, end, step in parts:
            for position in range(begin, end, step):
                yield Piece(self, position, min(position + step, end))

    def digests(self, first: int, end: int) -> bytes:
        """The joined digests of the ids at some positions. Each is computed once."""
        computed = len(self._digests) // DIGEST_BYTES
        self._digests += digests_of(self.ids[computed:end])
        return bytes(self._digests[first * DIGEST_BYTES : end * DIGEST_BYTES])


class Piece(NamedTuple):
    """The ids of a chunk from position `first` to before position `end`."""

    chunk: Chunk
    first: int
    end: int

    @property
    def until(self) -> Instant:
        """The newest instant of the ids."""
        return self.chunk.instants[self.end - 1]

    @property
    def length(self) -> int:
        """How many ids there are."""
        return self.end - self.first

    def group(self) -> Group:
        """The ids in the form of STATE."""
        return Group(self.until, self.chunk.digests(self.first, self.end))
