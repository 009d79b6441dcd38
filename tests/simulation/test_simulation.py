"""The whole tap through random histories; and proof that the histories would notice a mistake."""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tap_audit_events.errors.exceptions import CursorRefusedError, RetryableError
from tap_audit_events.events import page as events
from tap_audit_events.events import window as windows
from tap_audit_events.events.instants import LATEST, Instant, later
from tap_audit_events.events.page import Envelope, Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction import plan as export
from tap_audit_events.extraction import window_reader as reading
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.plan import Export
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.extraction.window_reader import Exported, Reading
from tap_audit_events.service.client import Client
from tap_audit_events.singer import state
from tap_audit_events.singer import stream as streams
from tap_audit_events.singer.stream import AuditEventsStream
from tests.simulation.play import play
from tests.simulation.world import SimulatedTap

HISTORIES = 250
GROUPS = 8
HISTORIES_FOR_A_MUTATION = 1500

Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def play_many(histories: int, first: int = 0) -> None:
    for seed in range(first, first + histories):
        play(seed)


@pytest.mark.parametrize("group", range(GROUPS))
def test_whatever_happens_every_event_arrives_once(group: int) -> None:
    """Ties, late and future events, any precision, faults, kills: complete, once, in order."""
    play_many(HISTORIES, first=group * HISTORIES)


def replaced(patch: Patch, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Put something made from what is there in its place."""
    patch.setattr(owner, name, make(getattr(owner, name)))


# Each mutation breaks one promise in the way that connectors are known to break it.


def a_bookmark_plus_a_millisecond(patch: Patch) -> None:
    """A strict `>`: ties of the bookmark are never asked for."""

    def run_window(*, bookmark: Instant | None, **more: Any) -> Window | None:
        window = windows.run_window(bookmark=bookmark, **more)
        if window is None or bookmark is None:
            return window
        return Window(
            Instant(f"{bookmark}001" if "." in bookmark else f"{bookmark}.001"), window.end
        )

    patch.setattr(streams, "run_window", run_window)


def no_lookback(patch: Patch) -> None:
    """Late events are behind the bookmark, and never asked for."""
    replaced(
        patch,
        streams,
        "run_window",
        lambda real: lambda **given: real(**given | {"lookback_seconds": 0}),
    )


def no_memory(patch: Patch) -> None:
    """What comes back at the inclusive bound is emitted again."""
    patch.setattr(Watermark, "fresh", lambda _, ids, instants: range(len(ids)))


def ids_of_the_bookmark_only(patch: Patch) -> None:
    """The ids of the lookback are not remembered in STATE."""
    replaced(patch, state, "to_json", lambda real: lambda watermark: real(watermark) | {"ids": []})


def state_before_records(patch: Patch) -> None:
    """A page counts as delivered when it has come, not when it is written."""

    def begin(self: Any, page: Page, window: Window, *, in_order: bool) -> None:
        real(self, page, window, in_order=in_order)
        self.all_written()
        self.take_in()

    real = Delivery.begin
    patch.setattr(Delivery, "begin", begin)


def ends_where(patch: Patch, is_end: Callable[[Page], bool]) -> None:
    """Takes other pages than those without a cursor for the last one, too."""

    def read_page(envelope: Envelope) -> Page:
        page = real(envelope)
        return replace(page, is_last=page.is_last or is_end(page))

    real = events.read_page
    patch.setattr(streams, "read_page", read_page)


def an_empty_page_is_the_end(patch: Patch) -> None:
    """What many connectors do."""
    ends_where(patch, lambda page: not page.ids)


def a_short_page_is_the_end(patch: Patch) -> None:
    """A page that is not full is taken for the last one."""
    ends_where(patch, lambda page: len(page.ids) < 2)


def the_future_is_read_too(patch: Patch) -> None:
    """An event dated in the future carries the bookmark past real ones."""
    replaced(
        patch, streams, "run_window", lambda real: lambda **given: real(**given | {"now": LATEST})
    )


def the_end_is_read_again_for_each_page(patch: Patch) -> None:
    """`endTime` moves while pages are read (against interface.md 4.1, rule 4)."""

    def query(self: Any, window: Window, cursor: str | None) -> str:
        moves = 0 if cursor is None else 1
        return real(self, Window(window.start, later(window.end, seconds=moves)), cursor)

    real = Client._query
    patch.setattr(Client, "_query", query)


def a_failed_page_is_skipped(patch: Patch) -> None:
    """A request whose retries are used up is passed over."""

    def fetch(*given: Any) -> Envelope:
        try:
            return real(*given)
        except RetryableError:
            return Envelope(b'{"auditEvents":[]}', [], None)

    real = Client._fetch
    patch.setattr(Client, "_fetch", fetch)


def a_refused_cursor_is_the_end(patch: Patch) -> None:
    """An expired cursor is taken for the end of the pages."""

    def to_its_end(window: Window, pages_of: Any, restarting: Any) -> Iterator[Any]:
        del restarting
        position = reading._Position()
        try:
            for page in pages_of(window):
                yield Exported(window, page, position.advance(page))
        except CursorRefusedError:
            yield Exported(window, Page((), (), ()), in_order=True)

    patch.setattr(export, "read_window", to_its_end)


def a_refused_cursor_starts_after_the_newest(patch: Patch) -> None:
    """The ties of the newest instant are skipped when a window is started again."""

    def rest(*given: Any) -> Window:
        window = real(*given)
        assert window.start is not None
        return Window(later(window.start, seconds=1), window.end)

    real = reading._rest
    patch.setattr(reading, "_rest", rest)


def the_bookmark_follows_any_order(patch: Patch) -> None:
    """Pages out of order carry the bookmark past events that are still to come."""
    patch.setattr(reading._Position, "advance", lambda *_: True)


def the_bookmark_is_the_last_event(patch: Patch) -> None:
    """The bookmark moves back with a late event."""

    def deliver(self: Watermark, ids: Sequence[str], instants: Any, **more: Any) -> None:
        real(self, ids, instants, **more)
        if ids:
            self.bookmark = instants[-1]

    real = Watermark.deliver
    patch.setattr(Watermark, "deliver", deliver)


def windows_share_no_instant(patch: Patch) -> None:
    """A window is read up to a second before the next one starts."""

    def holds(self: Window, instant: Instant) -> bool:
        until = later(self.until, seconds=-1) if self.until else None
        return real(Window(self.start, self.end, until), instant)

    real = Window.holds
    patch.setattr(Window, "holds", holds)


def windows_overlap(patch: Patch) -> None:
    """What a window reads beyond its end is delivered too, ahead of its time."""

    def holds(self: Window, instant: Instant) -> bool:
        return real(Window(self.start, self.end), instant)

    real = Window.holds
    patch.setattr(Window, "holds", holds)
    no_memory(patch)


def pages_are_taken_as_they_come(patch: Patch) -> None:
    """A window that is read ahead overtakes the one before it, with its STATE."""

    def next_page(self: Export) -> Exported | None:
        self._readings = deque(sorted(self._readings, key=lambda each: not each.waiting))
        return real(self)

    real = Export.next_page
    patch.setattr(Export, "next_page", next_page)


def a_fault_ahead_is_passed_over(patch: Patch) -> None:
    """A window that could not be read is left out."""

    def failed(self: Export, reading: Reading, error: Exception) -> None:
        real(self, reading, error)
        reading.is_at_end, reading.error = True, None

    real = Export.failed
    patch.setattr(Export, "failed", failed)


def the_first_to_end_ends_all(patch: Patch) -> None:
    """Windows behind one that has no more pages are forgotten, also where they hold events."""

    def drop_after(self: Export, reading: Reading) -> None:
        while self._readings[-1] is not reading:
            self._drop(self._readings.pop())

    patch.setattr(Export, "_drop_after", drop_after)


def no_state_at_the_end(patch: Patch) -> None:
    """What an interrupted run wrote last is not in STATE."""
    patch.setattr(AuditEventsStream, "_write_checkpoint", lambda _: None)


def stopping_without_looking(patch: Patch) -> None:
    """A signal drops what is in hand and leaves no STATE behind it."""

    def sync_records(self: Any, context: Any = None, *, write_messages: bool = True) -> Any:
        yield from super(AuditEventsStream, self)._sync_records(
            context, write_messages=write_messages
        )

    patch.setattr(AuditEventsStream, "_sync_records", sync_records)


MUTATIONS = [
    a_bookmark_plus_a_millisecond,
    no_lookback,
    no_memory,
    ids_of_the_bookmark_only,
    state_before_records,
    an_empty_page_is_the_end,
    a_short_page_is_the_end,
    the_future_is_read_too,
    the_end_is_read_again_for_each_page,
    a_failed_page_is_skipped,
    a_refused_cursor_is_the_end,
    a_refused_cursor_starts_after_the_newest,
    the_bookmark_follows_any_order,
    the_bookmark_is_the_last_event,
    windows_share_no_instant,
    windows_overlap,
    pages_are_taken_as_they_come,
    a_fault_ahead_is_passed_over,
    the_first_to_end_ends_all,
    no_state_at_the_end,
    stopping_without_looking,
]


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_a_broken_promise_is_caught(
    mutate: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulation fails for a tap that breaks a promise, and names the seed."""
    mutate(monkeypatch)
    with pytest.raises(AssertionError, match=r"^seed \d+: "):
        play_many(HISTORIES_FOR_A_MUTATION)


def requests_of(seed: int, patch: Patch) -> list[Any]:
    """The requests of a history, with the times and what was answered."""
    services = set()

    def new_session(tap: SimulatedTap) -> Any:
        services.add(tap.world.service)
        return real(tap)

    real = SimulatedTap.new_session
    patch.setattr(SimulatedTap, "new_session", new_session)
    play(seed)
    (service,) = services
    return [(request.params, request.seconds, request.status) for request in service.requests]


def test_a_history_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed gives the same history, request by request."""
    first = requests_of(7, monkeypatch)
    assert len(first) > 1
    assert requests_of(7, monkeypatch) == first
