"""What was delivered, so that a run can start before its bookmark and repeat nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tap_audit_events.timestamps import EARLIEST, Instant, later, whole_second

LONGEST_MEMORY: Final = 10_000
"""Ids held at most. Beyond it the oldest are forgotten: a repeat is possible then, a loss never."""

SHORTEST_LOOKBACK_SECONDS: Final = 1
"""A run starts at a whole second, so the ids of one second are always held."""


class _Chunk(NamedTuple):
    """Events delivered together, in the order of time."""

    instants: Sequence[Instant]
    ids: Sequence[str]


class Watermark:
    """The bookmark, and the ids delivered within the lookback before it.

    Work is done a page at a time: a page that repeats nothing costs no step of Python per event.

    Args:
        bookmark: the newest instant delivered, None where nothing was.
        ids: ids delivered within the lookback before the bookmark, or after it.
        ids_until: the newest instant that one of them may have, the bookmark where None; all are
            held until the bookmark has left it behind.
        lookback_seconds: how far before the bookmark the next run starts.
        longest_memory: ids held at most.

    Attributes:
        bookmark: the newest instant up to which everything was delivered.
        forgot: whether ids had to be forgotten to stay within `longest_memory`.
    """

    def __init__(
        self,
        bookmark: Instant | None = None,
        ids: Iterable[str] = (),
        *,
        ids_until: Instant | None = None,
        lookback_seconds: int = 0,
        longest_memory: int = LONGEST_MEMORY,
    ) -> None:
        self._lookback_seconds = max(lookback_seconds, SHORTEST_LOOKBACK_SECONDS)
        self._longest_memory = longest_memory
        self._chunks: deque[_Chunk] = deque()
        self._held: set[str] = set()
        self.bookmark = bookmark
        self.forgot = False
        self._newest = bookmark
        if bookmark is not None:
            distinct = list(dict.fromkeys(ids))
            self._hold(distinct, [ids_until or bookmark] * len(distinct))

    @property
    def ids(self) -> list[str]:
        """The ids that are held, oldest first."""
        return [event_id for chunk in self._chunks for event_id in chunk.ids]

    @property
    def ids_until(self) -> Instant | None:
        """The newest instant of an id that is held; after the bookmark where that had to stay."""
        return max((chunk.instants[-1] for chunk in self._chunks), default=self.bookmark)

    def fresh(self, ids: Sequence[str]) -> Sequence[int]:
        """The positions of the ids that are not held, each id once, in order."""
        distinct = set(ids)
        if len(distinct) == len(ids) and self._held.isdisjoint(distinct):
            return range(len(ids))
        first: dict[str, int] = {}
        for position, event_id in enumerate(ids):
            first.setdefault(event_id, position)
        return [position for event_id, position in first.items() if event_id not in self._held]

    def deliver(
        self, ids: Sequence[str], instants: Sequence[Instant], *, moves_bookmark: bool = True
    ) -> None:
        """Take in events that have been written, all of them fresh.

        The bookmark moves to the newest of them, and never back. It stays where `moves_bookmark`
        is off, until `settle`: older events may still come.
        """
        if not ids:
            return
        self._newest = max(self._newest or EARLIEST, *instants)
        if moves_bookmark:
            self.bookmark = self._newest
        self._hold(ids, instants)

    def _hold(self, ids: Sequence[str], instants: Sequence[Instant]) -> None:
        if ids:
            self._chunks.append(_in_order(instants, ids))
            self._held.update(ids)
            self._drop_expired()
            self._forget_oldest()

    def settle(self) -> None:
        """Everything up to the newest event is delivered: move a bookmark that had to stay."""
        self.bookmark = self._newest
        self._drop_expired()

    def _drop_expired(self) -> None:
        """Drop what the next run will not read again."""
        newest = self.bookmark or EARLIEST
        floor = whole_second(later(newest, seconds=-self._lookback_seconds))
        while self._chunks and self._chunks[0].instants[0] < floor:
            self._drop_first(bisect_left(self._chunks[0].instants, floor))

    def _forget_oldest(self) -> None:
        while (excess := len(self._held) - self._longest_memory) > 0:
            self.forgot = True
            self._drop_first(min(excess, len(self._chunks[0].ids)))

    def _drop_first(self, count: int) -> None:
        """Drop the first ids of the first chunk."""
        chunk = self._chunks.popleft()
        self._held.difference_update(chunk.ids[:count])
        if rest := chunk.ids[count:]:
            self._chunks.appendleft(_Chunk(chunk.instants[count:], rest))


def _in_order(instants: Sequence[Instant], ids: Sequence[str]) -> _Chunk:
    in_order = sorted(instants)
    if in_order == instants:
        return _Chunk(instants, ids)
    pairs = sorted(zip(instants, ids, strict=True))
    return _Chunk([at for at, _ in pairs], [event_id for _, event_id in pairs])
