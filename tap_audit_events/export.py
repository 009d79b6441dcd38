"""The ordered pages of a run's windows, each window read to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tap_audit_events.errors import CursorRefusedError
from tap_audit_events.events import Page
from tap_audit_events.timestamps import Instant
from tap_audit_events.windows import Window

PagesOf = Callable[[Window], Iterator[Page]]
"""Reads the pages of one window in order, and raises CursorRefusedError where it cannot go on."""


class Exported(NamedTuple):
    """A page on its way.

    Attributes:
        window: the window it belongs to.
        page: the page.
        in_order: whether its events and those before it in the window came in ascending order.
    """

    window: Window
    page: Page
    in_order: bool


def export(
    windows: Iterable[Window], pages_of: PagesOf, *, restarting: Callable[[Window], object]
) -> Iterator[Exported]:
    """Each page: windows in the order of time, a window's pages in the service's.

    One window after the other; a page is asked for only when the one before it has been used.

    Args:
        windows: what to read.
        pages_of: reads a window.
        restarting: is told from where a window is started again.

    Raises:
        CursorRefusedError: a cursor was refused, and starting the window again at the newest
            instant it had reached brought nothing new, or could pass over events because the
            window came out of order.
    """
    for window in windows:
        yield from _to_its_end(window, pages_of, restarting)


def _to_its_end(
    window: Window, pages_of: PagesOf, restarting: Callable[[Window], object]
) -> Iterator[Exported]:
    asked, reached = window, _Position()
    while True:
        position = _Position()
        try:
            for page in pages_of(asked):
                yield Exported(window, page, position.advance(page.instants))
        except CursorRefusedError as error:
            asked = _rest(window, position, reached, error)
            reached = position
            restarting(asked)
        else:
            return


class _Position:
    """How far a window was read: its newest instant, and how many events of that instant.

    Attributes:
        newest: the newest instant so far.
        safe: the newest instant before the first page out of order.
        in_order: whether all pages came in ascending order.
    """

    def __init__(self) -> None:
        self.newest: Instant | None = None
        self.safe: Instant | None = None
        self.in_order = True
        self._ties = 0

    def advance(self, instants: Sequence[Instant]) -> bool:
        """Take in a page; say whether it goes on in ascending order."""
        if not instants:
            return True
        in_order = sorted(instants) == list(instants)
        in_order = in_order and (self.newest is None or self.newest <= instants[0])
        self.in_order = self.in_order and in_order
        newest = max(instants)
        if self.in_order:
            self.safe = newest
        if self.newest is None or newest > self.newest:
            self.newest, self._ties = newest, 0
        self._ties += instants.count(self.newest)
        return in_order

    def is_beyond(self, other: _Position) -> bool:
        if self.newest is None:
            return False
        return other.newest is None or (self.newest, self._ties) > (other.newest, other._ties)


def _rest(
    window: Window, position: _Position, reached: _Position, error: CursorRefusedError
) -> Window:
    """The window from the newest instant on, where that is farther than ever before."""
    if position.newest is None or not position.in_order or not position.is_beyond(reached):
        start = position.safe or reached.newest or window.start
        error.where = f"in {Window(start, window.end)}"
        raise error
    return Window(position.newest, window.end)
