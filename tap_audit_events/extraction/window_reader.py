"""One window on its way: what was read of it, and its pages, asked for again where need be."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias

from tap_audit_events.errors.exceptions import CursorRefusedError
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.forecast import Level, Stretch

Pages: TypeAlias = Generator[Page, None, None]

PagesOf: TypeAlias = Callable[[Window], Pages]
"""Reads the pages of one window in order, and raises CursorRefusedError where it cannot go on."""


class Exported(NamedTuple):
    """A page on its way.

    Attributes:
        window: the window it belongs to: events outside of it belong to another.
        page: the page.
        in_order: whether its events and those before it in the window came in ascending order.
    """

    window: Window
    page: Page
    in_order: bool


@dataclass(slots=True)
class Permission:
    """Whether a page may be asked for before the one before it was looked at.

    Attributes:
        is_given: whether that page, if it is wanted, is the next to be asked for.
        until: where the next window starts: behind it nothing is wanted.
        newest: what seemed to be the newest instant of the page that came last.
    """

    is_given: bool = False
    until: Instant | None = None
    newest: Instant | None = None

    def __call__(self, newest: Instant | None) -> bool:
        """Whether it may be asked for, where this seems to be the newest instant before it."""
        self.newest = newest
        is_wanted = self.until is None or (newest is not None and newest < self.until)
        return self.is_given and is_wanted


@dataclass(eq=False, slots=True)
class Reading:
    """A window on its way: what was read of it, and what is still to be asked for.

    Attributes:
        start: where it was asked from, None for the oldest event.
        lately: what the newest pages here held, or those before where it was cut off.
        level: what that says about more to come, None where nobody has asked yet.
        pages: asks for the next page each time it is advanced, by one thread at a time.
        until: where the next window starts, None where this one goes on to the end.
        reached: the newest instant read.
        waiting: pages that were read and not taken.
        is_asked: whether a request is on its way.
        asks_ahead: whether the next may be sent before its answer is looked at. What asks for the
            pages is given this and not the window: the two would keep each other, with a page.
        is_at_end: whether its last page has come.
        is_alone: whether it is read on while no other is, and from where it had come to.
        error: what ended it early.
    """

    start: Instant | None
    lately: deque[Stretch]
    pages: Generator[Exported, None, None] = field(init=False)
    level: Level | None = None
    until: Instant | None = None
    reached: Instant | None = None
    waiting: deque[Exported] = field(default_factory=deque)
    is_asked: bool = False
    asks_ahead: Permission = field(default_factory=Permission)
    is_at_end: bool = False
    is_alone: bool = False
    error: Exception | None = None

    @property
    def is_read(self) -> bool:
        """Whether nothing is left to ask for."""
        is_through = self.until is not None and (self.reached or "") >= self.until
        return self.is_at_end or is_through or self.error is not None

    @property
    def position(self) -> Instant | None:
        """How far it has come."""
        return self.reached or self.start


def read_window(
    window: Window, pages_of: PagesOf, restarting: Callable[[Window], object]
) -> Generator[Exported, None, None]:
    """Read a window, which is started again behind what was read where a cursor is refused.

    A page is not kept once it was handed out.
    """
    asked, reached = window, _Position()
    while True:
        position = _Position()
        exported = partial(_exported, window, position)
        try:
            with closing(pages_of(asked)) as pages:
                yield from map(exported, pages)
        except CursorRefusedError as error:
            asked = _rest(window, position, reached, error)
            reached = position
            restarting(asked)
        else:
            return


def _exported(window: Window, position: _Position, page: Page) -> Exported:
    return Exported(window, page, position.advance(page))


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

    def advance(self, page: Page) -> bool:
        """Take in a page; say whether it goes on in ascending order."""
        if page.oldest is None or page.newest is None:
            return True
        newest = page.newest
        in_order = page.is_ascending and (self.newest is None or self.newest <= page.oldest)
        self.in_order = self.in_order and in_order
        if self.in_order:
            self.safe = newest
        if self.newest is None or newest > self.newest:
            self.newest, self._ties = newest, 0
        self._ties += len(page.ascending) - bisect_left(page.ascending, self.newest)
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
        error.window = str(Window(start, window.end))
        raise error
    return Window(position.newest, window.end)
