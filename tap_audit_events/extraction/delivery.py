"""Chooses the events of each page to deliver, and tracks which of them have been written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, TypeVar

from tap_audit_events.errors.exceptions import sanitize, service_error
from tap_audit_events.events.action_types import has_action_type
from tap_audit_events.events.instants import EARLIEST, LATEST, NEVER, Instant, seconds_between
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.coverage import Coverage
from tap_audit_events.extraction.planning.window_reader import WindowPage
from tap_audit_events.extraction.watermark import Watermark

MAX_EXPECTED: Final = 10_000
"""Maximum number of events that are noted until their own window shows them; usually there are only
a few."""

_Item = TypeVar("_Item")


class Delivery:
    """Drops the events of each page that were delivered before, and counts those delivered.

    The events of a page are chosen, written, and then committed. So the watermark never contains an
    event that was not written. Events of `exclude_action_types` are not chosen; they move the
    bookmark when the rest of their page is written.

    Attributes:
        watermark: what this run and earlier runs delivered.
        coverage: counts the delivered events, None if they are not counted.
        was_in_order: whether the events of all pages so far were in ascending order.
        had_empty_cursor: whether a page had an empty ``nextCursor``.
        delivered: events delivered by this run.
        repeats: events dropped because they were delivered before.
        outside: events dropped because they lie outside of the requested range.
        excluded: new events left out because of their action type.
        late: events delivered that lie before the bookmark at the start of the run.
        latest_seconds: how far the earliest late event lies before this bookmark.
    """

    def __init__(self, watermark: Watermark, exclude_action_types: Collection[str] = ()) -> None:
        self.watermark = watermark
        self.coverage: Coverage | None = None
        self.was_in_order = True
        self.had_empty_cursor = False
        self.delivered = self.repeats = self.outside = self.excluded = self.late = 0
        self.latest_seconds = 0.0
        self._bookmark_before = watermark.bookmark or NEVER
        self._range_start = LATEST
        self._expected: dict[str, Instant] = {}
        self._exclude_action_types = frozenset(exclude_action_types)
        self._excluded_instants: Sequence[Instant] = ()  # of the page that was chosen from last

    def choose(self, read: WindowPage) -> Sequence[int]:
        """The positions of the events to deliver: those of the window that no run has delivered.

        `ContractError` if the window lacks one of its events that an earlier window showed.
        """
        self.was_in_order = self.was_in_order and read.in_order
        self.had_empty_cursor = self.had_empty_cursor or read.page.has_empty_cursor
        self._range_start = min(self._range_start, read.window.start or EARLIEST)
        if self._expected:
            self._check_expected(read)
        return self._without_excluded(self._to_deliver(read), read.page)

    def commit(self, read: WindowPage, chosen: Sequence[int], written: int) -> None:
        """Count the first `written` of the chosen events as delivered.

        If the window has been out of order so far, older events may follow: the bookmark stays
        until the last page of the window is written completely.
        """
        page, positions = read.page, chosen[:written]
        ids, instants = pick(page.ids, positions), pick(page.instants, positions)
        self.watermark.deliver(ids, instants, moves_bookmark=read.in_order)
        if self.coverage is not None:
            self.coverage.add(ids, instants, pick(page.texts, positions))
        self.delivered += len(ids)
        self._count_late(instants)
        if written < len(chosen):
            return
        self.excluded += sum(each > self._bookmark_before for each in self._excluded_instants)
        self.watermark.pass_over(self._excluded_instants, moves_bookmark=read.in_order)
        if read.completes_window:
            self.watermark.settle(read.window.limit)

    def _to_deliver(self, read: WindowPage) -> Sequence[int]:
        page, window = read.page, read.window
        fresh = self.watermark.fresh(page.ids, page.instants)
        if read.restarted_at is not None:
            fresh = self._without_possible_repeats(fresh, page, up_to=read.restarted_at)
        self.repeats += len(page.ids) - len(fresh)
        if len(window.held(page.sorted_instants)) == len(page.ids):
            return fresh
        self._note_expected(fresh, read)
        due = [each for each in fresh if self._is_due(page.instants[each], window)]
        requested, left_out = window.rounded, set(fresh).difference(due)
        self.outside += sum(not requested.holds(page.instants[each]) for each in left_out)
        return due

    def _without_excluded(self, positions: Sequence[int], page: Page) -> Sequence[int]:
        if not self._exclude_action_types:
            return positions
        kept = [
            each
            for each in positions
            if not has_action_type(page.texts[each], self._exclude_action_types)
        ]
        excluded = set(positions).difference(kept)
        self._excluded_instants = [page.instants[each] for each in excluded]
        return kept

    def _is_due(self, instant: Instant, window: Window) -> bool:
        """Whether an event that was not delivered yet is delivered with this window.

        Two windows show the events of the instant at which they meet. The first delivers them, as
        the second may have been read before they appeared. An event before the window is delivered
        too, if its own window did not show it. But if its id may have been dropped, it is left out,
        as it may be a repeat.
        """
        if instant >= (window.start or NEVER):
            return window.holds(instant) or instant == window.until
        return instant > self.watermark.dropped_until and instant >= self._range_start

    def _note_expected(self, positions: Sequence[int], read: WindowPage) -> None:
        """Note the events that belong to later windows, which must show them again."""
        page, window = read.page, read.window
        if window.until is None:
            return
        for position in positions:
            instant = page.instants[position]
            if window.until < instant <= window.end and len(self._expected) < MAX_EXPECTED:
                self._expected[page.ids[position]] = instant

    def _check_expected(self, read: WindowPage) -> None:
        """Check that the window shows its noted events before the bookmark passes them."""
        page, window = read.page, read.window
        for event_id in page.ids:
            self._expected.pop(event_id, None)
        until = page.newest if page.instants and read.in_order else EARLIEST
        missing = [
            event_id
            for event_id, instant in self._expected.items()
            if window.holds(instant) and (instant < until or read.completes_window)
        ]
        if missing:
            details = f"{len(missing):,} in all, for example {sanitize(missing[0])}"
            error = service_error("AE-WINDOW", details=details)
            error.window = str(window)
            raise error

    def _without_possible_repeats(
        self, positions: Sequence[int], page: Page, *, up_to: Instant
    ) -> Sequence[int]:
        """Leave out events up to a restart whose ids may have been dropped: they may be repeats.

        The ids of the restart's own instant are dropped only if later events were delivered, so all
        events of that instant were delivered too.
        """
        last = min(self.watermark.dropped_until, up_to)
        return [each for each in positions if page.instants[each] > last]

    def _count_late(self, instants: Sequence[Instant]) -> None:
        before, oldest = self._bookmark_before, min(instants, default=LATEST)
        if oldest < before:
            self.late += sum(instant < before for instant in instants)
            self.latest_seconds = max(self.latest_seconds, seconds_between(oldest, before))


def pick(column: Sequence[_Item], positions: Sequence[int]) -> Sequence[_Item]:
    """The items at ascending positions, in one step if the positions are a range."""
    if isinstance(positions, range):
        return column[positions.start : positions.stop]
    return [column[position] for position in positions]
