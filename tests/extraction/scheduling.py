"""An export played without threads: a service, a clock, and what was asked and handed out."""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tap_audit_events.events.instants import Instant, next_whole_second, whole_second
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import AsksAhead, Window
from tap_audit_events.extraction.plan import Export
from tap_audit_events.extraction.window_reader import Exported, Pages, Reading

START = datetime(2026, 1, 1)  # noqa: DTZ001 - an instant has no offset
RANGE_SECONDS = 30 * 86400


def instant(seconds: float) -> Instant:
    """So many seconds after the start, to the microsecond."""
    text = (START + timedelta(microseconds=round(seconds * 1e6))).isoformat()
    return Instant(text.rstrip("0") if "." in text else text)


Arranged = Callable[[range], Sequence[int]]
EVER = Window(None, instant(RANGE_SECONDS))


@dataclass(frozen=True)
class Request:
    """One request: where its window starts, and where among all events its page does.

    Attributes:
        start: of the window that is asked for, None for the oldest event.
        position: the first event of the page, as its place among all.
        number: of the page in its window, from 0; all but the first have a cursor.
    """

    start: Instant | None
    position: int
    number: int


@dataclass
class Played:
    """What a run asked for and handed out.

    Attributes:
        requests: as they were answered.
        under_way: how many there were when each was sent, itself included.
        delivered: the events handed out, each as its place among all; what comes again where a
            window was started again is left out, as the watermark does.
        repeats: how many were left out.
        disordered: pages handed out as out of order.
        seconds: how long it took.
        most_held: pages under way or not taken yet, at most.
        most_bytes: bytes of pages not taken yet, at most.
        restarts: how often a window was started again inside of itself.
        error: what it ended with.
    """

    requests: list[Request] = field(default_factory=list)
    under_way: list[int] = field(default_factory=list)
    delivered: list[int] = field(default_factory=list)
    repeats: int = 0
    disordered: int = 0
    seconds: float = 0.0
    most_held: int = 0
    most_bytes: int = 0
    restarts: int = 0
    error: Exception | None = None


@dataclass
class Play:
    """One run against one service, with as many requests at a time as it may have.

    Attributes:
        instants: of all events, in order.
        page_bytes: the size of each page.
        fails: what a request fails with, None where it is answered.
        arranged: a page's events in the order in which the service sends them.
        reply_seconds: how long the next reply takes.
        takes: whether whoever uses the pages takes one now.
        can_ask_ahead: whether a page can be asked for before the one before it is looked at.
    """

    instants: Sequence[Instant]
    page_size: int = 50
    concurrency: int = 8
    window: Window = EVER
    page_bytes: int = 690_000
    fails: Callable[[Request], Exception | None] = lambda _: None
    arranged: Arranged = lambda positions: positions
    reply_seconds: Callable[[], float] = lambda: 1.0
    takes: Callable[[], bool] = lambda: True
    can_ask_ahead: Callable[[], bool] = lambda: True
    told: Callable[[Instant], Instant | None] = lambda newest: newest

    def __post_init__(self) -> None:
        self.played = Played()
        self._under_way: list[tuple[float, int, Reading]] = []
        self._seen: set[int] = set()
        self._export = Export(
            self.window,
            self._pages_of,
            page_size=self.page_size,
            concurrency=self.concurrency,
            restarting=self._restarting,
        )

    def run(self) -> Played:
        """Play it to its end."""
        try:
            while not self._export.is_done:
                self._send()
                while self.takes() or not self._under_way:
                    exported = self._export.next_page()
                    if exported is None:
                        break
                    self._take(exported)
                    self._send()
                self._receive()
        except Exception as error:  # noqa: BLE001 - judged by the test
            self.played.error = error
        return self.played

    def _send(self) -> None:
        played = self.played
        while len(self._under_way) < self.concurrency:
            reading = self._export.next_request()
            if reading is None:
                break
            self._start(reading)
        held = len(self._under_way) + self._waiting_pages
        played.most_held = max(played.most_held, held)

    def _start(self, reading: Reading) -> None:
        played = self.played
        ends_at = played.seconds + self.reply_seconds()
        heapq.heappush(self._under_way, (ends_at, len(played.under_way), reading))
        played.under_way.append(len(self._under_way))

    @property
    def _waiting_pages(self) -> int:
        return sum(len(reading.waiting) for reading in self._export._readings)

    def _receive(self) -> None:
        """Let time go by until the next reply has come."""
        if not self._under_way:
            assert self._export.is_done, "nothing is asked for, and nothing comes"
            return
        self.played.seconds, _, reading = heapq.heappop(self._under_way)
        pages = reading.pages
        try:
            exported = next(pages)
        except Exception as error:  # noqa: BLE001 - it is the export's to raise
            self._export.failed(reading, error)
            return
        if self._export.came(reading, exported):
            self._start(reading)
        elif exported.page.is_next_asked:
            pages.close()
        bytes_held = self._waiting_pages * self.page_bytes
        self.played.most_bytes = max(self.played.most_bytes, bytes_held)

    def _take(self, exported: Exported) -> None:
        page = exported.page
        self.played.disordered += not exported.in_order
        for text, moment in zip(page.ids, page.instants, strict=True):
            position = int(text)
            if not exported.window.holds(moment):
                continue
            if position in self._seen:
                self.played.repeats += 1
            else:
                self._seen.add(position)
                self.played.delivered.append(position)

    def _restarting(self, window: Window) -> None:
        del window
        self.played.restarts += 1

    def _pages_of(self, asks_ahead: AsksAhead, window: Window) -> Pages:
        start = whole_second(window.start) if window.start else instant(0)
        position = bisect_left(self.instants, start)
        end = bisect_right(self.instants, next_whole_second(window.end))
        number, is_last = 0, False
        while not is_last:
            request = Request(window.start, position, number)
            self.played.requests.append(request)
            error = self.fails(request)
            if error is not None:
                raise error
            positions = range(position, min(position + self.page_size, end))
            position, number = positions.stop, number + 1
            is_last = position >= end
            newest = self.told(self.instants[positions[-1]]) if positions else None
            is_next_asked = asks_ahead(newest) and not is_last and self.can_ask_ahead()
            try:
                yield self._page(self.arranged(positions), is_last, is_next_asked)
            except GeneratorExit:
                if is_next_asked:
                    self.played.requests.append(Request(window.start, position, number))
                raise

    def _page(self, positions: Sequence[int], is_last: bool, is_next_asked: bool) -> Page:
        moments = [self.instants[position] for position in positions]
        ids = [str(position) for position in positions]
        return Page(
            ids,
            moments,
            [b""] * len(ids),
            is_last=is_last,
            size=self.page_bytes,
            is_next_asked=is_next_asked,
        )


def pages_needed(count: int, page_size: int) -> int:
    """The requests of one after the other."""
    return max(1, -(-count // page_size))
