"""What was delivered, so that a run can start before its bookmark and repeat nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

from tap_audit_events.events.instants import EARLIEST, Instant, later, whole_second

LONGEST_MEMORY: Final = 10_000
"""Ids held at most. Beyond it the oldest are forgotten: a repeat is possible then, a loss never."""

LONGEST_MEMORY_BEFORE: Final = 2_000
"""With more ids than these, those from before the lookback are forgotten: no run reads them again,
and few fit into a processor's cache beside a page."""

SHORTEST_LOOKBACK_SECONDS: Final = 1
"""A run starts at a whole second, so the ids of one second are always held."""


_CHUNK: Final = 1000


class _Chunk(NamedTuple):
    """Events in the order of time; their ids once more, to be looked up."""

    instants: list[Instant]
    ids: list[str]
    known: set[str]


class Watermark:
    """The bookmark, and the ids delivered within the lookback before it.

    Some ids from before the lookback are held too, for a service that repeats a page; they do not
    go into STATE. Work is done a page at a time: a page that repeats nothing
    costs no step of Python per event.

    Args:
        bookmark: the newest instant delivered, None where nothing was.
        ids: ids delivered within the lookback before the bookmark, or after it.
        ids_from: the instant from which on the ids are complete: those of older events may have
            been delivered too.
        ids_until: the newest instant that one of them may have, the bookmark where None; each is
            held until the bookmark has left it behind, or `recognize` tells its own instant.
        lookback_seconds: how far before the bookmark the next run starts.
        longest_memory: ids held at most.

    Attributes:
        bookmark: the newest instant up to which everything was delivered.
        forgot: whether ids that the next run may read again had to be forgotten.
    """

    def __init__(
        self,
        bookmark: Instant | None = None,
        ids: Iterable[str] = (),
        *,
        ids_from: Instant = EARLIEST,
        ids_until: Instant | None = None,
        lookback_seconds: int = 0,
        longest_memory: int = LONGEST_MEMORY,
    ) -> None:
        self._lookback_seconds = max(lookback_seconds, SHORTEST_LOOKBACK_SECONDS)
        self._longest_memory = longest_memory
        self._chunks: deque[_Chunk] = deque()
        self._held = 0
        self.bookmark = bookmark
        self.forgot = False
        self._newest = bookmark
        self._ids_from = ids_from
        self._read = dict.fromkeys(ids if bookmark is not None else ())
        self._read_until = ids_until or bookmark or EARLIEST

    @property
    def ids(self) -> list[str]:
        """The ids that the next run may read again, oldest first."""
        floor = self.ids_from
        read = self._read if self._read_until >= floor else ()
        held = (chunk.ids[bisect_left(chunk.instants, floor) :] for chunk in self._chunks)
        return [*read, *chain.from_iterable(held)][-self._longest_memory :]

    @property
    def ids_until(self) -> Instant | None:
        """The newest instant of an id that is held; after the bookmark where that had to stay."""
        newest = [chunk.instants[-1] for chunk in self._chunks]
        if self._read:
            newest.append(self._read_until)
        return max(newest, default=self.bookmark)

    @property
    def ids_from(self) -> Instant:
        """The instant from which on ids are held: no run that goes on from here starts before."""
        newest = self.bookmark or EARLIEST
        floor = whole_second(later(newest, seconds=-self._lookback_seconds))
        return max(floor, self._ids_from)

    def fresh(self, ids: Sequence[str]) -> Sequence[int]:
        """The positions of the ids that are not held, each id once, in order."""
        distinct, known = set(ids), [chunk.known for chunk in self._chunks]
        if (
            len(distinct) == len(ids)
            and self._read.keys().isdisjoint(distinct)
            and all(map(distinct.isdisjoint, known))
        ):
            return range(len(ids))
        held = set(self._read).union(*known)
        first: dict[str, int] = {}
        for position, event_id in enumerate(ids):
            first.setdefault(event_id, position)
        return [position for event_id, position in first.items() if event_id not in held]

    def recognize(self, ids: Sequence[str], instants: Sequence[Instant]) -> None:
        """Learn the instants of ids that were read from STATE, which holds no times."""
        known = {
            event_id: at
            for event_id, at in zip(ids, instants, strict=True)
            if event_id in self._read
        }
        for event_id in known:
            del self._read[event_id]
        if known:
            self._hold(list(known), list(known.values()))
            self._forget_oldest()

    def deliver(
        self, ids: Sequence[str], instants: Sequence[Instant], *, moves_bookmark: bool = True
    ) -> None:
        """Take in events that have been written, all of them fresh.

        The bookmark moves to the newest of them, and never back. It stays where `moves_bookmark`
        is off, until `settle`: older events may still come.
        """
        if not ids:
            return
        newest = self._hold(ids, instants)
        self._newest = max(self._newest or newest, newest)
        if moves_bookmark:
            self.bookmark = self._newest
        self._forget_oldest()

    def settle(self) -> None:
        """Everything up to the newest event is delivered: move a bookmark that had to stay."""
        self.bookmark = self._newest

    def _hold(self, ids: Sequence[str], instants: Sequence[Instant]) -> Instant:
        """Hold some ids, at least one; say which instant is the newest of theirs."""
        chunk, last = _in_order(instants, ids), self._chunks[-1] if self._chunks else None
        if last and len(last.ids) < _CHUNK and last.instants[-1] <= chunk.instants[0]:
            last.instants.extend(chunk.instants)
            last.ids.extend(chunk.ids)
            last.known.update(chunk.known)
        else:
            self._chunks.append(chunk)
        self._held += len(ids)
        return chunk.instants[-1]

    def _forget_oldest(self) -> None:
        floor = self.ids_from
        if len(self._read) + self._held > self._longest_memory and self._read_until < floor:
            self._read.clear()
        while self._chunks:
            chunk = self._chunks[0]
            most = self._longest_memory
            if chunk.instants[-1] < floor:
                most = min(most, LONGEST_MEMORY_BEFORE)
            excess = len(self._read) + self._held - most
            if excess <= 0:
                return
            self._chunks.popleft()
            forgotten = chunk.instants[:excess]
            self._held -= len(forgotten)
            self.forgot = self.forgot or forgotten[-1] >= floor
            if rest := chunk.ids[excess:]:
                self._chunks.appendleft(_Chunk(chunk.instants[excess:], rest, set(rest)))


def _in_order(instants: Sequence[Instant], ids: Sequence[str]) -> _Chunk:
    in_order = sorted(instants)
    if in_order == instants:
        return _Chunk(in_order, list(ids), set(ids))
    pairs = sorted(zip(instants, ids, strict=True))
    return _Chunk([at for at, _ in pairs], [event_id for _, event_id in pairs], set(ids))
