"""What a run delivers: which events of each page, and which of them are written already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from tap_audit_events.events.instants import EARLIEST, Instant, seconds_between
from tap_audit_events.events.page import Page, Text, read_record
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.watermark import Watermark

_Item = TypeVar("_Item")


class Delivery:
    """The way of a run's pages past the watermark, with what there is to tell about it.

    A page is taken in hand, its events are written, and what is written counts as delivered when
    `take_in` is called. So the watermark never knows more than what is written.

    Attributes:
        watermark: what was delivered, by this run and those before it.
        in_order: whether every page came in ascending order so far. From the first that does not,
            the bookmark stays where it is until the range is complete.
        delivered: events delivered by this run.
        repeats: events left out because they were delivered before.
        outside: events left out because they lie outside of what was asked for.
        late: events delivered that lie before the bookmark the run began with.
        latest_seconds: how far before it the latest of them lies.
    """

    def __init__(self, watermark: Watermark) -> None:
        self.watermark = watermark
        self.in_order = True
        self.delivered = self.repeats = self.outside = self.late = 0
        self.latest_seconds = 0.0
        self._bookmark_before = watermark.bookmark
        self._page = Page((), (), ())
        self._positions: Sequence[int] = ()
        self._written = self._taken = 0

    def begin(self, page: Page, window: Window, *, in_order: bool) -> None:
        """Take a page in hand: its events that lie in the window and were not delivered before."""
        self.in_order = self.in_order and in_order
        if not self.in_order and self.watermark.bookmark is None:
            self.watermark.bookmark = window.start or EARLIEST  # safe, and ids are kept beside it
        self._page, self._positions = page, self._to_deliver(page, window)
        self._written = self._taken = 0

    def records(self) -> Iterator[dict[str, Any]]:
        """The records of the page in hand; each counts as written when the next is asked for."""
        for position in self._positions:
            yield read_record(self._page.texts[position])
            self._written += 1

    def texts(self) -> Sequence[Text]:
        """The same as JSON; all count as written when `all_written` is called."""
        return _pick(self._page.texts, self._positions)

    def all_written(self) -> None:
        """Every event of the page in hand is written."""
        self._written = len(self._positions)

    def take_in(self) -> None:
        """Count as delivered what has been written since this was called last."""
        positions = self._positions[self._taken : self._written]
        self._taken = self._written
        ids, instants = _pick(self._page.ids, positions), _pick(self._page.instants, positions)
        self.watermark.deliver(ids, instants, moves_bookmark=self.in_order)
        self.delivered += len(ids)
        self._count_late(instants)

    def let_go(self) -> None:
        """Keep nothing of the page in hand, whose events were taken in."""
        self._page, self._positions = Page((), (), ()), ()
        self._written = self._taken = 0

    def _to_deliver(self, page: Page, window: Window) -> Sequence[int]:
        fresh = self.watermark.fresh(page.ids, page.instants)
        if len(fresh) < len(page.ids):
            self.repeats += len(page.ids) - len(fresh)
        if page.oldest is None or page.newest is None:
            return fresh
        if window.holds(page.oldest) and window.holds(page.newest):
            return fresh
        self.outside += sum(not window.asks(page.instants[position]) for position in fresh)
        return [position for position in fresh if window.holds(page.instants[position])]

    def _count_late(self, instants: Sequence[Instant]) -> None:
        before = self._bookmark_before
        if before is None or not instants or min(instants) >= before:
            return
        self.late += sum(instant < before for instant in instants)
        lateness = seconds_between(min(instants), before)
        self.latest_seconds = max(self.latest_seconds, lateness)


def _pick(column: Sequence[_Item], positions: Sequence[int]) -> Sequence[_Item]:
    """The items at ascending positions; those of a range in one step, all of them as they are."""
    if isinstance(positions, range):
        is_all = len(positions) == len(column)
        return column if is_all else column[positions.start : positions.stop]
    return [column[position] for position in positions]
