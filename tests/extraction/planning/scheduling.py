"""A plan played without threads: a service, a clock, and what was requested and taken."""

import heapq
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tap_audit_events.events.instants import Instant, next_whole_second, whole_second
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.plan import Plan
from tap_audit_events.extraction.planning.window_reader import WindowPage, WindowRequest

START = datetime(2026, 1, 1)  # noqa: DTZ001 - an instant has no offset
RANGE_SECONDS = 30 * 86400


def instant(seconds: float) -> Instant:
    """So many seconds after the start, to the microsecond."""
    text = (START + timedelta(microseconds=round(seconds * 1e6))).isoformat()
    return Instant(text.rstrip("0") if "." in text else text)


Arranged = Callable[[Sequence[int]], Sequence[int]]
EVER = Window(None, instant(RANGE_SECONDS))
ALL_PAY = 10**6
"""So many requests gain time, however many pages are in flight or ready."""


@dataclass(frozen=True)
class Sent:
    """One request: its window, and where in it its page starts.

    Attributes:
        start: ``startTime`` of the window, None for the oldest event.
        end: ``endTime`` of the window.
        offset: events of the window before the page; all but the first page have a cursor.
        position: the first event of the page, as its place among all events.
    """

    start: Instant | None
    end: Instant
    offset: int
    position: int


@dataclass
class Played:
    """What a run requested and took.

    Attributes:
        requests: in the order of their responses.
        in_flight: for each request, how many were in flight when it was sent, with itself.
        delivered: the events taken, each as its place among all; repeated events are
            left out, as the watermark drops them.
        repeats: how many repeated events were left out.
        disordered: pages taken as out of order.
        seconds: how long the run took.
        most_held: pages in flight or not taken yet, at most.
        restarts: how often a window was restarted.
        error: the error that ended the run, None if it was complete.
    """

    requests: list[Sent] = field(default_factory=list)
    in_flight: list[int] = field(default_factory=list)
    delivered: list[int] = field(default_factory=list)
    repeats: int = 0
    disordered: int = 0
    seconds: float = 0.0
    most_held: int = 0
    restarts: int = 0
    error: Exception | None = None

    @property
    def windows(self) -> set[tuple[Instant | None, Instant]]:
        """The windows that were requested."""
        return {(request.start, request.end) for request in self.requests}


@dataclass
class Play:
    """One run against one service, with as many requests in flight as it may have.

    Attributes:
        instants: those of all events, in order.
        page_bytes: the size of each page.
        text: that of an event, by its place among all.
        fails: the error with which a request fails, None if it succeeds.
        arranged: all events of a window in the order in which the service sends them.
        ignores: the bounds of a window that the service ignores, of "start" and "end".
        response_seconds: how long the next response takes.
        takes: whether the main thread takes a page now.
    """

    instants: Sequence[Instant]
    page_size: int = 50
    concurrency: int = 8
    window: Window = EVER
    page_bytes: int = 690_000
    text: Callable[[int], bytes] = lambda _: b""
    fails: Callable[[Sent], Exception | None] = lambda _: None
    arranged: Arranged = lambda positions: positions
    ignores: str = ""
    response_seconds: Callable[[], float] = lambda: 1.0
    takes: Callable[[], bool] = lambda: True

    def __post_init__(self) -> None:
        self.played = Played()
        self._in_flight: list[tuple[float, int, WindowRequest]] = []
        self._seen: set[int] = set()
        self.plan = Plan(self.window, page_size=self.page_size)

    def run(self) -> Played:
        """Play the run to its end."""
        try:
            while not self.plan.is_done:
                self.step()
        except Exception as error:  # noqa: BLE001 - judged by the test
            self.played.error = error
        self.played.restarts = len(self.plan.restarted)
        return self.played

    def step(self) -> None:
        """Send what is due, take pages if it is time to, and wait for the next response."""
        self._send()
        while self.takes() or not self._in_flight:
            page = self.plan.next_page()
            if page is None:
                break
            self._take(page)
            self._send()
        self._receive()

    def _send(self) -> None:
        played = self.played
        while (request := self._due()) is not None:
            ends_at = played.seconds + self.response_seconds()
            heapq.heappush(self._in_flight, (ends_at, len(played.in_flight), request))
            played.in_flight.append(len(self._in_flight))
        pages = pages_needed(len(self.instants), self.page_size)
        assert len(played.in_flight) <= 100 * (pages + 10), "the run does not end"
        held = len(self._in_flight) + self._ready_pages
        played.most_held = max(played.most_held, held)

    def _due(self) -> WindowRequest | None:
        """The next request, if it may be sent: the plan does not limit how many are in flight."""
        if len(self._in_flight) >= self.concurrency:
            return None
        return self.plan.next_request(self.concurrency if self.concurrency > 1 else 0)

    @property
    def _ready_pages(self) -> int:
        return sum(reader.pages_held for reader in self.plan._readers)

    def _receive(self) -> None:
        if not self._in_flight:
            assert self.plan.is_done, "nothing is requested, and nothing arrives"
            return
        self.played.seconds, _, request = heapq.heappop(self._in_flight)
        sent, page = self._respond(request)
        self.played.requests.append(sent)
        error = self.fails(sent)
        if error is not None:
            self.plan.fail(request, error)
            return
        self.plan.accept(request, page)

    def _take(self, read: WindowPage) -> None:
        self.played.disordered += not read.in_order
        page = read.page
        for text, moment in zip(page.ids, page.instants, strict=True):
            position = int(text)
            if not read.window.holds(moment):
                continue
            if position in self._seen:
                self.played.repeats += 1
            else:
                self._seen.add(position)
                self.played.delivered.append(position)

    def _respond(self, request: WindowRequest) -> tuple[Sent, Page]:
        start, end = request.window.start, request.window.limit
        has_start = start is not None and "start" not in self.ignores
        first = bisect_left(self.instants, whole_second(start)) if start and has_start else 0
        has_end = "end" not in self.ignores
        stop = (
            bisect_right(self.instants, next_whole_second(end)) if has_end else len(self.instants)
        )
        offset = int(request.cursor or 0)
        events = self.arranged(range(first, stop))[offset : offset + self.page_size]
        sent = Sent(start, end, offset, min(events, default=stop))
        following = offset + self.page_size
        cursor = str(following) if first + following < stop else None
        return sent, self.a_page(events, cursor)

    def a_page(self, positions: Sequence[int], cursor: str | None) -> Page:
        ids = [str(position) for position in positions]
        moments = [self.instants[position] for position in positions]
        texts = list(map(self.text, positions))
        return Page(ids, moments, texts, next_cursor=cursor, size=self.page_bytes)


def pages_needed(count: int, page_size: int) -> int:
    """The requests of a sequential run."""
    return max(1, -(-count // page_size))


def evenly(count: int) -> list[Instant]:
    """The instants of so many events at equal distances."""
    return [instant((number + 0.5) * RANGE_SECONDS / count) for number in range(count)]


def with_any_timing(play: Play, seed: int) -> Play:
    """The play with responses that take any time and pages that are taken soon or late."""
    rng = random.Random(seed)
    slowness = rng.choice([0.0, 0.5, 0.95])
    play.response_seconds = lambda: rng.choice([0.01, 0.5, 1.0, 1.0, 7.0])
    play.takes = lambda: rng.random() >= slowness
    return play
