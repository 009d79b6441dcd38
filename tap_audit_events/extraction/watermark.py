"""Remembers what was delivered, so that a run can start before its bookmark and repeat nothing.

Three things always hold:

- Every event before the bookmark was delivered, except for those that become visible late.
- The id of every delivered event that is dated at or after `ids_from` is known.
- `ids_from` is not after the bookmark. A run that starts there misses nothing and repeats nothing.

"Before the bookmark" means: from `covered_from` on. Older events were never requested. Events that
the settings exclude are not delivered and have no ids: they are excluded again each time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from copy import copy
from operator import itemgetter
from typing import Final

from tap_audit_events.events.instants import (
    EARLIEST,
    LATEST,
    NEVER,
    Instant,
    later,
    seconds_between,
    whole_second,
)
from tap_audit_events.extraction.id_groups import Group, Known, digest_of, grouped

MAX_REMEMBERED_IDS: Final = 100_000
"""Maximum number of ids kept for the next run, about 1 MB. Beyond it, the oldest are forgotten, but
none of the bookmark's own instant: the next run reads those events again in any case."""

IDS_HELD_BEFORE_LOOKBACK: Final = 5_000
"""At least this many ids are held during a run, even of events before the lookback, as a service
may repeat a page."""

MIN_LOOKBACK_SECONDS: Final = 1
"""A run starts at a whole second, so the ids of one second are always held."""

_GROUPS: Final = 256
"""STATE contains about this many groups, at most twice as many."""


class Watermark:
    """The bookmark, and the ids delivered within the lookback before it.

    A page after the lookback that repeats nothing is recognized without a Python step per event.

    Args:
        bookmark: the instant before which everything was delivered, None if nothing was delivered.
        groups: ids that earlier runs delivered, from `groups`, in ascending order of instants.
        ids_from: the instant from which on `groups` are complete.
        covered_from: the instant from which on everything up to the bookmark was read, None if that
            is not known.
        lookback_seconds: how far before the bookmark the next run starts.

    Attributes:
        bookmark: the time of the newest event delivered; earlier if older events may still follow.
        dropped_until: the newest instant of which this run dropped ids, `NEVER` if it dropped none.
    """

    def __init__(
        self,
        bookmark: Instant | None = None,
        groups: Iterable[Group] = (),
        *,
        ids_from: Instant = EARLIEST,
        covered_from: Instant | None = None,
        lookback_seconds: int = 0,
    ) -> None:
        self.bookmark = bookmark
        self._ids_from = ids_from
        self._covered_from = covered_from
        self._start_after_gap: Instant | None = None
        self._lookback_seconds = max(lookback_seconds, MIN_LOOKBACK_SECONDS)
        self._max_remembered_ids = MAX_REMEMBERED_IDS
        self.dropped_until = NEVER
        self._passed_until = NEVER
        self._held: list[Known] = [
            (group.until, digest) for group in groups for digest in group.split()
        ]
        self._ids: set[str] = set()
        self._earlier = {digest for _, digest in self._held}
        # A service may show an event again with a time that is rounded in another way.
        self._earlier_until = later(self._held[-1][0], seconds=1) if self._held else EARLIEST

    @property
    def lookback_start(self) -> Instant:
        """The start of the next run, if all ids from then on are held and its lookback is the same.

        With a lookback of 0 the next run starts up to a second later.
        """
        return whole_second(later(self.bookmark or EARLIEST, seconds=-self._lookback_seconds))

    @property
    def ids_from(self) -> Instant:
        """The instant from which on all ids are held: the next run must not start before it."""
        return min(self._complete_from(), self.bookmark or EARLIEST)

    def start_at(self, start_date: Instant | None) -> None:
        """Begin a run that reads nothing before `start_date`.

        If `start_date` is after the bookmark, the events between the two are never read.
        """
        start = start_date or EARLIEST
        if self.bookmark in (None, EARLIEST) or start > self.bookmark:
            self._start_after_gap = start

    @property
    def covered_from(self) -> Instant | None:
        """The instant from which on everything up to the bookmark was read, None if not known."""
        start = self._start_after_gap
        is_passed = start is not None and start <= (self.bookmark or NEVER)
        return start if is_passed else self._covered_from

    @property
    def forgot(self) -> bool:
        """Whether this run had to forget ids within the lookback before the bookmark."""
        return self._lost_until() >= max(self.lookback_start, self._ids_from)

    @property
    def reach_seconds(self) -> float:
        """How far before the bookmark the next run starts, if its lookback is the same."""
        return seconds_between(self.ids_from, self.bookmark or EARLIEST)

    @property
    def groups(self) -> list[Group]:
        """The ids that the next run may read again, in ascending order of the groups' instants."""
        start = self._complete_from()
        held = self._held[self._position(self.ids_from) :]
        known = [each for each in held if each[0] >= start or each[0] == self.bookmark]
        size = -(-min(len(self._held), self._max_remembered_ids) // _GROUPS)
        return grouped(known, bookmark=self.bookmark or EARLIEST, size=size)

    def snapshot(self) -> Watermark:
        """A copy of this watermark to write as JSON later; do not call `deliver` on the copy."""
        now = copy(self)
        now._held = list(self._held)  # noqa: SLF001 - its own
        return now

    def fresh(self, ids: Sequence[str], instants: Sequence[Instant]) -> Sequence[int]:
        """The positions of the events that were not delivered before, each id once, in order."""
        distinct = set(ids)
        if (
            len(distinct) == len(ids)
            and self._ids.isdisjoint(distinct)
            and min(instants, default=LATEST) > self._earlier_until
        ):
            return range(len(ids))
        first: dict[str, int] = {}
        for position, event_id in enumerate(ids):
            first.setdefault(event_id, position)
        return [
            position
            for event_id, position in first.items()
            if event_id not in self._ids
            and (
                instants[position] > self._earlier_until or digest_of(event_id) not in self._earlier
            )
        ]

    def deliver(
        self, ids: Sequence[str], instants: Sequence[Instant], *, moves_bookmark: bool = True
    ) -> None:
        """Remember events that have been written, all of them fresh.

        The bookmark moves to the newest of them, and never back. If `moves_bookmark` is False,
        because older events may still follow, it stays until `settle`; if there is no bookmark yet,
        it becomes `EARLIEST`.
        """
        if not ids:
            return
        added = sorted(zip(instants, ids, strict=True), key=_instant_of)
        (oldest, _), (newest, _) = added[0], added[-1]
        moved = newest if moves_bookmark else EARLIEST
        self.bookmark = max(self.bookmark or moved, moved)
        is_next = not self._held or self._held[-1][0] <= oldest
        self._held += added
        if not is_next:
            self._held.sort(key=_instant_of)
        self._ids.update(ids)
        self._trim()

    def pass_over(self, instants: Sequence[Instant], *, moves_bookmark: bool) -> None:
        """Move the bookmark over events that are not to be delivered, as `deliver` does."""
        if not instants:
            return
        newest = max(instants)
        moved = newest if moves_bookmark else EARLIEST
        self.bookmark = max(self.bookmark or moved, moved)
        self._passed_until = max(self._passed_until, newest)

    def settle(self, until: Instant) -> None:
        """Move the bookmark to the newest event delivered or passed up to an instant, never back.

        To be called when every event before `until` has been delivered or passed.
        """
        count = bisect_right(self._held, until, key=_instant_of)
        newest = self._held[count - 1][0] if count else NEVER
        if self._passed_until <= until:
            newest = max(newest, self._passed_until)
        if newest > NEVER:
            self.bookmark = max(self.bookmark or newest, newest)

    def _trim(self) -> None:
        """Drop the oldest ids if more are held than necessary, but no id of the bookmark's instant.

        Ids of the newest instant are kept too: `settle` may move the bookmark there.
        """
        in_lookback = len(self._held) - self._position(self.lookback_start)
        most = max(IDS_HELD_BEFORE_LOOKBACK, min(in_lookback, self._max_remembered_ids))
        surplus = max(0, len(self._held) - most)
        bookmark = self.bookmark or EARLIEST
        first, end = self._position(bookmark), bisect_right(self._held, bookmark, key=_instant_of)
        until_newest = self._position(self._held[-1][0])
        dropped = [*self._held[: min(first, surplus)], *self._held[end:until_newest]][:surplus]
        if dropped:
            del self._held[end : end + len(dropped) - first]  # none if all are before the bookmark
            del self._held[: min(first, len(dropped))]
            self._ids.difference_update([event_id for _, event_id in dropped])
            self.dropped_until = max(self.dropped_until, dropped[-1][0])

    def _complete_from(self) -> Instant:
        """The instant from which on the next run has all ids; it may be after the bookmark."""
        return max(self.lookback_start, self._ids_from, _just_after(self._lost_until()))

    def _lost_until(self) -> Instant:
        """The newest instant of which ids were dropped, or do not fit into STATE."""
        surplus = len(self._held) - self._max_remembered_ids
        newest = self._held[surplus - 1][0] if surplus > 0 else NEVER
        return max(self.dropped_until, newest)

    def _position(self, instant: Instant) -> int:
        """The position of the first id of an instant, or of a later one."""
        return bisect_left(self._held, instant, key=_instant_of)


_instant_of = itemgetter(0)


def _just_after(instant: Instant) -> Instant:
    """An instant that is later by a billionth of a second, or by less."""
    return Instant(f"{instant}{'' if '.' in instant else '.'}000000001")
