"""What was delivered, so that a run can start before its bookmark and repeat nothing.

Three things always hold:

- Every event before the bookmark was delivered, except for those that become visible late.
- The id of every delivered event that is dated at or after `ids_from` is known.
- `ids_from` is not after the bookmark. A run that starts there misses nothing and repeats nothing.

"Before the bookmark" means: from `covered_from` on. What lies before that was never requested.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from tap_audit_events.events.instants import (
    EARLIEST,
    LATEST,
    Instant,
    later,
    seconds_between,
    whole_second,
)
from tap_audit_events.extraction.id_chunk import Chunk, Piece
from tap_audit_events.extraction.id_groups import Group, digest_of, merge_groups, split_digests

LONGEST_MEMORY: Final = 100_000
"""Ids kept for the next run at most, about 1 MB. If there are more, the oldest are forgotten."""

LONGEST_MEMORY_BEFORE: Final = 5_000
"""At least so many ids of a run's own are held during it, even if they are older than the lookback:
a service may repeat a page, and a window that is given up is requested again from its start."""

SHORTEST_LOOKBACK_SECONDS: Final = 1
"""A run starts at a whole second, so the ids of one second are always held."""

_GROUPS: Final = 256
"""About so many groups go into STATE, at most twice as many."""


class Watermark:
    """The bookmark, and the ids delivered within the lookback before it.

    A page that repeats nothing costs no Python step per event.

    Args:
        bookmark: the instant before which everything was delivered, None if nothing was delivered.
        groups: ids that earlier runs delivered, as `groups` gave them.
        ids_from: the instant from which on `groups` are complete.
        covered_from: the instant from which on everything up to the bookmark was read, None if that
            is not known.
        lookback_seconds: how far before the bookmark the next run starts.
        longest_memory: ids kept for the next run at most. Those of the bookmark's own instant are
            kept even if there are more: the next run reads them again in any case.

    Attributes:
        bookmark: as above. It is the instant of the newest event delivered, or an earlier instant
            while older events may still come.
    """

    def __init__(
        self,
        bookmark: Instant | None = None,
        groups: Iterable[Group] = (),
        *,
        ids_from: Instant = EARLIEST,
        covered_from: Instant | None = None,
        lookback_seconds: int = 0,
        longest_memory: int = LONGEST_MEMORY,
    ) -> None:
        earlier = tuple(groups)
        self.bookmark = bookmark
        self._ids_from = ids_from
        self._covered_from = covered_from
        self._starts_anew_at: Instant | None = None
        self._lookback_seconds = max(lookback_seconds, SHORTEST_LOOKBACK_SECONDS)
        self._longest_memory = longest_memory
        self._forgotten_until: Instant | None = None
        self._chunks = sorted(map(Chunk.of_group, earlier), key=_newest)
        self._held = sum(map(len, self._chunks))
        self._ids: set[str] = set()
        self._earlier = {each for group in earlier for each in split_digests(group.digests)}
        self._earlier_until = max((group.until for group in earlier), default=None)

    @property
    def lookback_start(self) -> Instant:
        """The start of the next run if its lookback is the same and all ids in it are held."""
        return whole_second(later(self.bookmark or EARLIEST, seconds=-self._lookback_seconds))

    @property
    def ids_from(self) -> Instant:
        """The instant from which on all ids are held: the next run must not start before it."""
        self._forget_surplus()
        return min(self._complete_from(), self.bookmark or EARLIEST)

    def start_at(self, start_date: Instant | None) -> None:
        """Begin a run that reads nothing before `start_date`, which may lie after the bookmark."""
        start = start_date or EARLIEST
        if self.bookmark in (None, EARLIEST) or start > self.bookmark:
            self._starts_anew_at = start

    @property
    def covered_from(self) -> Instant | None:
        """The instant from which on everything up to the bookmark was read, None if not known."""
        anew = self._starts_anew_at
        if anew is not None and self.bookmark is not None and anew <= self.bookmark:
            return anew
        return self._covered_from

    @property
    def forgot(self) -> bool:
        """Whether this run had to forget ids within the lookback before the bookmark."""
        self._forget_surplus()
        return self._forgotten_until is not None and self._forgotten_until >= self.lookback_start

    @property
    def short_reach_seconds(self) -> float | None:
        """How far back late events are still delivered, None if over the whole lookback."""
        if self.bookmark is None or self.ids_from <= self.lookback_start:
            return None
        return seconds_between(self.ids_from, self.bookmark)

    def is_ahead_of(self, now: Instant) -> bool:
        """Whether the bookmark is future-dated: until then, a run has nothing to read."""
        return self.bookmark is not None and self.bookmark > now

    @property
    def groups(self) -> list[Group]:
        """The ids that the next run may read again, in ascending order of the groups' instants."""
        if self.bookmark is None:
            return []
        self._forget_surplus()
        pieces = [piece.group() for piece in self._pieces()]
        return merge_groups(pieces, bookmark=self.bookmark, size=self._group_size)

    def fresh(self, ids: Sequence[str], instants: Sequence[Instant]) -> Sequence[int]:
        """The positions of the events that were not delivered before, each id once, in order."""
        distinct = set(ids)
        if (
            len(distinct) == len(ids)
            and self._ids.isdisjoint(distinct)
            and not (self._earlier and self._may_be_earlier(min(instants, default=LATEST)))
        ):
            return range(len(ids))
        first: dict[str, int] = {}
        for position, event_id in enumerate(ids):
            first.setdefault(event_id, position)
        positions = [
            position
            for event_id, position in first.items()
            if event_id not in self._ids
            and not (
                self._may_be_earlier(instants[position]) and digest_of(event_id) in self._earlier
            )
        ]
        return positions if len(positions) < len(ids) else range(len(ids))

    def deliver(
        self, ids: Sequence[str], instants: Sequence[Instant], *, moves_bookmark: bool = True
    ) -> None:
        """Remember events that have been written, all of them fresh.

        The bookmark moves to the newest of them, and never back. If `moves_bookmark` is False,
        because older events may still come, it stays until `settle`; if there is none, it becomes
        `EARLIEST`.
        """
        if not ids:
            return
        chunk = Chunk.of_events(ids, instants)
        moved = chunk.newest if moves_bookmark else EARLIEST
        self.bookmark = max(self.bookmark or moved, moved)
        self._hold(chunk)
        self._drop_old_chunks()

    def settle(self, until: Instant) -> None:
        """Move the bookmark to the newest event delivered up to an instant, and never back.

        To be called when every event before `until` has been delivered.
        """
        newest = [chunk.newest_until(until) for chunk in self._chunks]
        self.bookmark = max(filter(None, [*newest, self.bookmark]), default=None)

    def _may_be_earlier(self, instant: Instant) -> bool:
        """Whether an earlier run may have delivered an event of this instant."""
        return self._earlier_until is not None and instant <= self._earlier_until

    def _hold(self, chunk: Chunk) -> None:
        self._ids.update(chunk.ids)
        self._held += len(chunk)
        if not self._chunks or not self._chunks[-1].extend(chunk):
            insort(self._chunks, chunk, key=_newest)

    def _drop_old_chunks(self) -> None:
        """Bound what is held. `_forget_surplus` bounds exactly what goes into STATE."""
        start, bookmark = self.lookback_start, self.bookmark or EARLIEST
        index = 0
        while index < len(self._chunks):
            chunk = self._chunks[index]
            in_lookback = chunk.newest >= start
            enough = max(LONGEST_MEMORY_BEFORE, self._longest_memory if in_lookback else 0)
            own_left = len(self._ids) - len(chunk.ids)
            if self._held - len(chunk) < enough or (chunk.ids and own_left < LONGEST_MEMORY_BEFORE):
                return
            if chunk.spans(bookmark):
                index += 1
                continue
            del self._chunks[index]
            self._held -= len(chunk)
            self._ids.difference_update(chunk.ids)
            if in_lookback:
                self._forget_until(chunk.newest)

    def _forget_surplus(self) -> None:
        """Forget the oldest ids beyond the memory. `_pieces` keeps those of the bookmark anyway."""
        if self._held <= self._longest_memory:
            return
        pieces = self._pieces()
        surplus = sum(piece.length for piece in pieces) - self._longest_memory
        for piece in pieces:
            if surplus <= 0:
                return
            surplus -= piece.length
            self._forget_until(piece.until)

    def _forget_until(self, instant: Instant) -> None:
        self._forgotten_until = max(self._forgotten_until or instant, instant)

    def _complete_from(self) -> Instant:
        """As `ids_from`, but after the bookmark if ids after it were forgotten."""
        known_from = max(self.lookback_start, self._ids_from)
        if self._forgotten_until is None:
            return known_from
        return max(known_from, _just_after(self._forgotten_until))

    def _pieces(self) -> list[Piece]:
        """The ids for the next run, oldest first."""
        start, bookmark = self._complete_from(), self.bookmark or EARLIEST
        pieces = [
            piece
            for chunk in self._chunks
            if chunk.newest >= min(start, bookmark)
            for piece in chunk.pieces(start, bookmark, self._group_size)
        ]
        return sorted(pieces, key=attrgetter("until"))

    @property
    def _group_size(self) -> int:
        return -(-min(self._held, self._longest_memory) // _GROUPS)


_newest = attrgetter("newest")


def _just_after(instant: Instant) -> Instant:
    """An instant that is later by a billionth of a second, or by less."""
    return Instant(f"{instant}{'' if '.' in instant else '.'}000000001")
