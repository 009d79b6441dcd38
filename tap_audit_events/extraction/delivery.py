"""Chooses the events of each page to deliver, and tracks which of them have been written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from tap_audit_events.errors.exceptions import sanitize, service_error
from tap_audit_events.events.exact_json import JsonText, read_record
from tap_audit_events.events.instants import EARLIEST, LATEST, NEVER, Instant, seconds_between
from tap_audit_events.events.page import Page
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.coverage import Coverage
from tap_audit_events.extraction.planning.window_reader import ReadPage
from tap_audit_events.extraction.watermark import Watermark

MAX_EXPECTED: Final = 10_000
"""Maximum number of events that are noted until their own window shows them; usually there are only
a few."""

_Item = TypeVar("_Item")
_NO_PAGE = ReadPage(Window(None, LATEST), Page(), in_order=True, completes_window=False)
_AS_SENT = RecordShape()


class Delivery:
    """Drops the events of each page that were delivered before, and tracks those written.

    A page is started, its events are written, and `commit` counts written events as delivered.
    So the watermark never contains an event that was not written.

    Attributes:
        watermark: what this run and earlier runs delivered.
        coverage: counts the delivered events, None if they are not counted.
        was_in_order: whether the events of all pages so far were in ascending order.
        had_empty_cursor: whether a page had an empty ``nextCursor``.
        delivered: events delivered by this run.
        repeats: events dropped because they were delivered before.
        outside: events dropped because they lie outside of the requested range.
        late: events delivered that lie before the bookmark at the start of the run.
        latest_seconds: how far the earliest late event lies before this bookmark.
    """

    def __init__(self, watermark: Watermark, shape: RecordShape = _AS_SENT) -> None:
        self.watermark = watermark
        self._shape = shape
        self.coverage: Coverage | None = None
        self.was_in_order = True
        self.had_empty_cursor = False
        self.delivered = self.repeats = self.outside = self.late = 0
        self.latest_seconds = 0.0
        self._bookmark_before = watermark.bookmark or NEVER
        self._read = _NO_PAGE
        self._range_start = LATEST
        self._positions: Sequence[int] = ()
        self._expected: dict[str, Instant] = {}
        self._written = self._committed = 0

    def start(self, read: ReadPage) -> None:
        """Start a page: choose the events of its window that were not delivered before.

        `ContractError` if the window lacks one of its events that an earlier window showed.
        """
        self.was_in_order = self.was_in_order and read.in_order
        self.had_empty_cursor = self.had_empty_cursor or read.page.has_empty_cursor
        self._range_start = min(self._range_start, read.window.start or EARLIEST)
        if self._expected:
            self._check_expected(read)
        self._read = read
        self._written = self._committed = 0
        self._positions = self._to_deliver(read)

    def records(self) -> Iterator[dict[str, Any]]:
        """The page's records; each counts as written when the next one is requested.

        `ContractError` if an event is nested too deeply, as in `record_texts`.
        """
        for position in self._positions:
            yield read_record(self._shape.apply(self._read.page.texts[position]))
            self._written += 1

    def record_texts(self) -> Sequence[JsonText]:
        """The page's records as JSON; `all_written` counts them as written."""
        texts = self.texts()
        return texts if self._shape.is_plain else list(map(self._shape.apply, texts))

    def texts(self) -> Sequence[JsonText]:
        """The JSON text of each event that is delivered."""
        return _pick(self._read.page.texts, self._positions)

    def instants(self) -> Sequence[Instant]:
        """The time of each event that is delivered."""
        return _pick(self._read.page.instants, self._positions)

    def all_written(self) -> None:
        """Count every event of the page as written."""
        self._written = len(self._positions)

    def commit(self) -> None:
        """Count the events written since the last call as delivered.

        If events of a window are out of order, older ones may follow: the bookmark does not move
        until the window is complete, that is, until all of its last page has been written.
        """
        read, page = self._read, self._read.page
        positions = self._positions[self._committed : self._written]
        self._committed = self._written
        ids, instants = _pick(page.ids, positions), _pick(page.instants, positions)
        self.watermark.deliver(ids, instants, moves_bookmark=read.in_order)
        if self.coverage is not None:
            self.coverage.add(ids, instants, _pick(page.texts, positions))
        self.delivered += len(ids)
        self._count_late(instants)
        if read.completes_window and self._committed == len(self._positions):
            self.watermark.settle(read.window.limit)

    def let_go(self) -> None:
        """Release the page: it is large, and the next page may follow much later."""
        self._read, self._positions = _NO_PAGE, ()

    def _to_deliver(self, read: ReadPage) -> Sequence[int]:
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

    def _is_due(self, instant: Instant, window: Window) -> bool:
        """Whether an event that was not delivered is delivered with a window.

        An event at the instant at which two windows meet is delivered with the first that shows it:
        the second may have been read before it appeared. An event of an earlier window, which did
        not show it, is delivered too, unless its id may have been dropped: then it may be a repeat.
        """
        if instant >= (window.start or NEVER):
            return window.holds(instant) or instant == window.until
        return instant > self.watermark.dropped_until and instant >= self._range_start

    def _note_expected(self, positions: Sequence[int], read: ReadPage) -> None:
        """Note the events that belong to later windows, which must show them again."""
        page, window = read.page, read.window
        if window.until is None:
            return
        for position in positions:
            instant = page.instants[position]
            if window.until < instant <= window.end and len(self._expected) < MAX_EXPECTED:
                self._expected[page.ids[position]] = instant

    def _check_expected(self, read: ReadPage) -> None:
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


def _pick(column: Sequence[_Item], positions: Sequence[int]) -> Sequence[_Item]:
    """The items at ascending positions, in one step if the positions are a range."""
    if isinstance(positions, range):
        return column[positions.start : positions.stop]
    return [column[position] for position in positions]
