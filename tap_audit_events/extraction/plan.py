"""The pages of a run in order, while requests for later ones are sent ahead."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import floor, sqrt
from operator import itemgetter
from typing import Final, TypeAlias

from tap_audit_events.errors.exceptions import CursorRefusedError
from tap_audit_events.events.instants import Instant, later, whole_second
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import AsksAhead, Window
from tap_audit_events.extraction.forecast import Level, Rhythm, Stretch
from tap_audit_events.extraction.window_reader import Exported, Pages, Reading, read_window

PagesAheadOf: TypeAlias = Callable[[AsksAhead, Window], Pages]
"""The same; a page after which the next was asked for ahead says so, and has to be advanced again
at once."""

SPARE_SHARE: Final = 0.25
SPARE_REQUESTS: Final = 3
"""Requests beyond those of one after the other: at most this share of them, and so many."""

WINDOW_PAGES: Final = 7
"""Pages that a window is cut for: few, so that the one in front is soon read to its end."""

TWO_REQUESTS: Final = 1.05
"""Pages that will hardly be read with one request; with two at a time, if one is free for it."""

FAR_WINDOWS, FAR_PAGES = 3, 24
"""The first few are cut for more: what comes from far away tells hours that nothing else does."""

PAGES_AHEAD: Final = 12
BYTES_AHEAD: Final = 48 * 1024 * 1024
"""What may have been read and not be taken yet: pages for each request in flight; bytes."""

PAGES_LATELY: Final = 5
"""Pages of a window that tell whether more or less comes there than usual."""


class Export:
    """Which request to send next, and which page comes next: no thread, no clock, no network.

    The first request asks for the whole range. Where it has more than one page, a window is cut
    off behind the next few pages, by how many events are foreseen, and asked for at the same time;
    behind that another, and so on. Each window is asked to the end of the range and read only as
    far as the next one starts: so none is empty but behind the last event, wherever the cut lies,
    and a window that turns out large is cut again.

    Requests stay within `SPARE_SHARE` and `SPARE_REQUESTS` of what one after the other needs: each
    cut costs at most one request, and is made only where all that are open may cost it.

    Args:
        window: the range of the run.
        pages_of: reads a window.
        page_size: the most events of a page.
        concurrency: the most requests at a time; with 1 nothing is cut.
        pages_ahead: the most pages that may wait to be taken.
        restarting: is told from where a window is started again.

    Attributes:
        windows: how many there have been.
    """

    def __init__(
        self,
        window: Window,
        pages_of: PagesAheadOf,
        *,
        page_size: int,
        concurrency: int = 1,
        pages_ahead: int | None = None,
        restarting: Callable[[Window], object],
    ) -> None:
        self._window = window
        self._pages_of = pages_of
        self._page_size = page_size
        self._concurrency = concurrency
        self._pages_ahead = pages_ahead or PAGES_AHEAD * concurrency
        self._restarting = restarting
        self._rhythm = Rhythm()
        self.windows = 0
        self._readings = deque([self._reading(window.start)])
        self._useful = self._wasted = 0.0
        self._under_way = self._held_pages = self._held_bytes = self._newest_bytes = 0
        self._may_cut = concurrency > 1
        self._newest_is_told = True  # by the last event of a page, before that is looked at

    @property
    def is_done(self) -> bool:
        """Whether every page has been taken."""
        return not self._readings

    def next_request(self) -> Reading | None:
        """The window to read the next page of; None where nothing should be asked for now.

        Whoever takes it advances its `pages` once, and tells `came` or `failed`.
        """
        reading = self._to_go_on() or self._cut_off()
        if reading is not None:
            if not self._may_cut and not reading.is_alone:
                self._begin_again(reading)
                reading.is_alone = True
            self._ask(reading)
        return reading

    def came(self, reading: Reading, exported: Exported) -> bool:
        """Take in the page that was asked for.

        Returns:
            Whether the next page of the same window is asked for as well: where it was asked for
            ahead, and is still wanted. Then `pages` are to be advanced again; where it is not
            wanted, they are to be closed, as they were before.
        """
        reading.is_asked = False
        self._under_way -= 1
        page = exported.page
        if reading not in self._readings:
            self._held_pages -= 1  # what it holds was read by another meanwhile
            self._wasted += page.is_next_asked
            return False
        self._take_in(reading, exported)
        if not page.is_next_asked:
            return False
        is_in_reach = any(each is reading for each in self._in_reach())
        if not is_in_reach or not (self._may_cut or reading.is_alone):
            self._wasted += 1
            self._begin_again(reading)
            return False
        self._ask(reading)
        return True

    def _take_in(self, reading: Reading, exported: Exported) -> None:
        page = exported.page
        self._count(reading, page)
        reading.waiting.append(exported)
        self._held_bytes += page.size
        self._newest_bytes = page.size
        reading.error = page.malformed
        if page.oldest is not None and page.newest is not None:
            self._learn(reading, page.instants, page.oldest, page.newest)
        if not exported.in_order:
            reading.is_alone = True
            self._end_with(reading)
        if page.is_last:
            reading.is_at_end = True
            self._drop_after(reading)
        if page.malformed:
            self._tell_who_asks_ahead()

    def failed(self, reading: Reading, error: Exception) -> None:
        """Take in what kept the page from coming: it is raised when its turn has come.

        Cursors that are refused while several windows are read may be so because of it, as where
        a service keeps only the newest: then the rest is read one request after the other.
        """
        reading.is_asked = False
        self._under_way -= 1
        self._held_pages -= 1
        if reading not in self._readings:
            return
        if isinstance(error, CursorRefusedError) and self._concurrency > 1 and not reading.is_alone:
            self._may_cut = False
        else:
            reading.error = error
        self._tell_who_asks_ahead()

    def next_page(self) -> Exported | None:
        """The next page in order; None where it has not come, or all were taken.

        Raises:
            Exception: what came instead of it.
        """
        while self._readings:
            first = self._readings[0]
            if first.waiting:
                _, page, in_order = first.waiting.popleft()
                self._held_pages -= 1
                self._held_bytes -= page.size
                window = Window(first.start, self._window.end, first.until)
                return Exported(window, page, in_order)
            if first.error is not None:
                raise first.error
            if not first.is_read:
                return None
            self._readings.popleft()
        return None

    # What to ask for

    def _in_reach(self) -> Iterator[Reading]:
        """The windows to be read further, in order, up to one that ends the run."""
        for reading in self._readings:
            if reading.error is not None:
                return
            if not reading.is_read:
                yield reading

    def _ask(self, reading: Reading) -> None:
        reading.is_asked = True
        self._under_way += 1
        self._held_pages += 1
        self._tell_who_asks_ahead()

    def _tell_who_asks_ahead(self) -> None:
        """Tell each window whether its next page but one will be asked for before any other."""
        pages = self._held_pages + self._under_way
        size = self._held_bytes + self._under_way * self._newest_bytes
        is_next = pages <= self._pages_ahead and size < BYTES_AHEAD
        for reading in self._readings:
            reading.asks_ahead.is_given = False
        for reading, before in self._in_places():
            is_next = is_next and reading.is_asked and self._has_room(before)
            is_told = reading.until is None or self._newest_is_told
            may_go_on = self._may_cut or reading.is_alone
            reading.asks_ahead.is_given = is_next and is_told and may_go_on
            reading.asks_ahead.until = reading.until

    def _to_go_on(self) -> Reading | None:
        """The first window whose next page may be asked for."""
        if self._under_way and not self._may_cut:
            return None
        for reading, pages_before in self._in_places():
            if not reading.is_asked and (
                self._has_room(pages_before) or self._is_waited_for(reading)
            ):
                return reading
        return None

    def _in_places(self) -> Iterator[tuple[Reading, float]]:
        """The windows in reach, with how many pages will be read before."""
        before, last = 0.0, None
        for reading in self._in_reach():
            if last is not None:
                before += max(1.0, self._pages_left(last))
            yield reading, before
            last = reading

    def _has_room(self, pages_before: float) -> bool:
        """Whether a page may be held until so many that come before have been read too.

        Else it would take the room of those that are waited for first. At most half of the room is
        kept for them: how many they are is only foreseen.
        """
        waiting = self._held_pages - self._under_way
        is_full = self._held_pages >= self._pages_ahead or self._held_bytes >= BYTES_AHEAD
        return not is_full and waiting + min(pages_before, self._room / 2) < self._room

    @property
    def _room(self) -> float:
        """How many pages may be held, if they are as large as the newest."""
        return min(self._pages_ahead, BYTES_AHEAD / max(1, self._newest_bytes))

    def _is_waited_for(self, reading: Reading) -> bool:
        return reading is self._readings[0] and not reading.waiting

    def _cut_off(self) -> Reading | None:
        """A new window behind the next pages of one that is large; None where none should be."""
        if not self._may_cut or not self._can_spare_one:
            return None
        most = WINDOW_PAGES if self.windows > FAR_WINDOWS else FAR_PAGES
        places = [(each, before, self._pages_left(each)) for each, before in self._in_places()]
        largest = min(most, sum(left for _, _, left in places) / self._concurrency, self._room / 4)
        for pages in (max(1.0, largest / share) for share in (1, 2)):
            for reading, before, left in places:
                if left > 1.5 * pages + 0.5 and self._has_room(before + pages):
                    return self._cut(reading, pages)
        for reading, before, left in sorted(places, key=itemgetter(2), reverse=True):
            if left > TWO_REQUESTS and self._has_room(before + left / 2):
                return self._cut(reading, left / 2)
        return None

    @property
    def _can_spare_one(self) -> bool:
        """Whether one more window may cost a request, where each that is open does so too."""
        is_open = not self._readings[-1].is_at_end
        needed = floor(self._useful) + 1 if is_open else self._useful  # it brings one page more
        allowed = needed * (1 + SPARE_SHARE) + SPARE_REQUESTS
        windows = sum(not reading.is_read for reading in self._readings)
        return self._useful + self._wasted + windows + 1 <= allowed

    def _pages_left(self, reading: Reading) -> float:
        """How many pages a window may still have."""
        until = reading.until or self._window.end
        if reading.position is None or until <= reading.position:
            return 0.0
        usual = self._rhythm.expected(reading.position, until)
        return self._level(reading).to_come(usual) / self._page_size

    def _level(self, reading: Reading) -> Level:
        if reading.level is None:
            reading.level = Level.of(reading.lately, self._rhythm)
        return reading.level

    def _cut(self, reading: Reading, pages: float) -> Reading | None:
        if reading.position is None:
            return None
        events = pages * self._page_size
        events -= min(2 * sqrt(events), events / 2)  # by chance there will hardly be more then
        usual = self._level(reading).usual_for(events)
        seconds = self._rhythm.seconds_for(reading.position, usual)
        start = later(whole_second(reading.position), seconds=2 + int(seconds))
        if not reading.position < start < (reading.until or self._window.end):
            return None
        behind = self._reading(start, reading.lately)
        behind.until, reading.until = reading.until, start
        self._readings.insert(self._readings.index(reading) + 1, behind)
        return behind

    def _reading(self, start: Instant | None, lately: Iterable[Stretch] = ()) -> Reading:
        self.windows += 1
        reading = Reading(start, deque(lately, PAGES_LATELY))
        self._begin_again(reading)
        return reading

    def _begin_again(self, reading: Reading) -> None:
        """Have the pages that are still to be asked for asked for from where it has come to."""
        asked = Window(reading.position, self._window.end)
        pages_of = partial(self._pages_of, reading.asks_ahead)
        reading.pages = read_window(asked, pages_of, self._restarting)

    # What came

    def _count(self, reading: Reading, page: Page) -> None:
        """How much of a request one after the other would have needed too."""
        useful = 0.0 if page.is_last else 1.0
        if page.instants:
            until, count = reading.until, len(page.instants)
            inside = bisect_left(page.instants, until) if until else count
            useful = inside / (self._page_size if page.is_last else count)
        self._useful += useful
        self._wasted += 1 - useful

    def _learn(
        self, reading: Reading, instants: Sequence[Instant], oldest: Instant, newest: Instant
    ) -> None:
        if self._may_cut:
            stretch = Stretch(reading.position or oldest, newest, len(instants))
            self._rhythm.learn(stretch, instants)
            reading.lately.append(stretch)
            reading.level = None
        reading.reached = max(reading.reached or newest, newest)
        self._newest_is_told &= (reading.asks_ahead.newest or newest) >= newest

    def _end_with(self, reading: Reading) -> None:
        """Read on from here one page after the other: what comes out of order may come late."""
        self._may_cut = False
        while self._readings[-1] is not reading:
            self._drop(self._readings.pop())
        reading.until = None

    def _drop_after(self, reading: Reading) -> None:
        """Forget windows behind the last event that have not answered yet."""
        while (last := self._readings[-1]) is not reading and not (last.waiting or last.is_read):
            self._drop(self._readings.pop())
        self._readings[-1].until = None

    def _drop(self, reading: Reading) -> None:
        self._wasted += reading.is_asked
        reading.asks_ahead.is_given = False
        self._held_pages -= len(reading.waiting)
        self._held_bytes -= sum(exported.page.size for exported in reading.waiting)
