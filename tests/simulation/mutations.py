"""Mistakes that a tap could make: each breaks one promise. The simulation must notice them all."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from tap_audit_events.errors.exceptions import CursorRefusedError, RetryableError
from tap_audit_events.events.instants import (
    EARLIEST,
    LATEST,
    Instant,
    later,
)
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.planning.pagination import Paginator
from tap_audit_events.extraction.planning.window_reader import WindowPage, WindowReader
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.run import organization as organization_run
from tap_audit_events.run import start_warnings
from tap_audit_events.service import client
from tap_audit_events.service.client import Client
from tap_audit_events.service.rate_limiter import RateLimiter
from tap_audit_events.singer.messages import MessageWriter

Patch: TypeAlias = pytest.MonkeyPatch
Mutation: TypeAlias = Callable[[Patch], None]


def replaced(patch: Patch, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace an attribute by the result of `make` for it."""
    patch.setattr(owner, name, make(getattr(owner, name)))


# The range of a run


def run_window_with(patch: Patch, **changed: Any) -> None:
    def changed_window(real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda **given: real(**given | changed)

    replaced(patch, organization_run, "run_window", changed_window)


def no_lookback(patch: Patch) -> None:
    """Late events lie before the bookmark and are never requested."""
    run_window_with(patch, lookback_seconds=0)


def ids_from_is_not_respected(patch: Patch) -> None:
    """A run reads events whose ids were forgotten or never known."""
    run_window_with(patch, ids_from=EARLIEST)


# Delivered events


def no_memory(patch: Patch) -> None:
    """An event that is sent again, as at an inclusive bound, is delivered again."""
    patch.setattr(Watermark, "fresh", lambda _, ids, instants: range(len(ids)))


def ids_are_forgotten_without_a_word(patch: Patch) -> None:
    """`ids_from` stays at the start of the lookback, although older ids were forgotten."""

    def ids_from(self: Watermark) -> Instant:
        return min(self.lookback_start, self.bookmark or EARLIEST)

    patch.setattr(Watermark, "ids_from", property(ids_from))


def all_ids_are_kept(patch: Patch) -> None:
    """The memory has no bound."""
    patch.setattr(Watermark, "_lost_until", lambda self: self.dropped_until)


def a_gap_is_not_noted(patch: Patch) -> None:
    """STATE says that events were read that a later start date skipped."""

    def start_at(self: Watermark, start_date: Instant | None) -> None:
        if self.bookmark is None:
            real(self, start_date)

    real = Watermark.start_at
    patch.setattr(Watermark, "start_at", start_at)


def a_short_reach_is_not_warned_about(patch: Patch) -> None:
    """Late events before the ids in STATE are not delivered, and no warning says so."""
    patch.setattr(start_warnings, "_is_new_reach", lambda *_: False)


def added_types_are_not_warned_about(patch: Patch) -> None:
    """Older events of added types are not delivered, and no warning says so."""
    patch.setattr(start_warnings, "types_never_requested", lambda *_: None)


def types_no_longer_excluded_are_not_warned_about(patch: Patch) -> None:
    """Older events of types that were excluded are not delivered, and no warning says so."""
    patch.setattr(start_warnings, "types_no_longer_excluded", lambda *_: [])


def excluded_events_are_read_for_ever(patch: Patch) -> None:
    """The bookmark stays before events of excluded types."""
    patch.setattr(Watermark, "pass_over", lambda *_, **__: None)


def the_bookmark_follows_any_order(patch: Patch) -> None:
    """Pages out of order move the bookmark past events that still follow."""
    replaced(
        patch,
        WindowReader,
        "take_page",
        lambda real: lambda self: real(self)._replace(in_order=True),
    )


def settling_passes_windows_that_are_not_read(patch: Patch) -> None:
    """The bookmark moves to the newest known event, past windows that are not complete."""
    replaced(patch, Watermark, "settle", lambda real: lambda self, until: real(self, LATEST))


def state_before_records(patch: Patch) -> None:
    """A page counts as delivered when it arrives, not when it is written."""

    def choose(self: Delivery, read: WindowPage) -> Sequence[int]:
        chosen: Sequence[int] = real(self, read)
        self.commit(read, chosen, len(chosen))
        return chosen

    real = Delivery.choose
    patch.setattr(Delivery, "choose", choose)


def an_error_drops_what_was_written(patch: Patch) -> None:
    """The events of a page that were written before an error are not in STATE."""

    def commit(self: Delivery, read: WindowPage, chosen: Sequence[int], written: int) -> None:
        if written == len(chosen):
            real(self, read, chosen, written)

    real = Delivery.commit
    patch.setattr(Delivery, "commit", commit)


def no_state_between_pages(patch: Patch) -> None:
    """STATE is written only at the end of a run."""
    patch.setattr(MessageWriter, "state_is_due", False)


# The end of a window


def pages_become(patch: Patch, change: Callable[[Page], Page]) -> None:
    replaced(
        patch,
        client,
        "parse_page",
        lambda real: lambda body, **how: change(real(body, **how)),
    )


def an_empty_page_is_the_end(patch: Patch) -> None:
    """Many connectors end at an empty page."""
    pages_become(patch, lambda page: page if page.ids else replace(page, next_cursor=None))


def the_end_is_read_again_for_each_page(patch: Patch) -> None:
    """`endTime` moves while pages are read (against interface.md 4.1, rule 4)."""

    def query(self: Any, window: Window, cursor: str | None) -> str:
        moves = 0 if cursor is None else 1
        return real(self, Window(window.start, later(window.end, seconds=moves)), cursor)

    real = Client._query
    patch.setattr(Client, "_query", query)


def a_failed_page_is_skipped(patch: Patch) -> None:
    """A request whose retries are used up counts as an empty last page."""

    def fetch(self: Client, window: Window, cursor: str | None) -> Page:
        try:
            return real(self, window, cursor)
        except RetryableError:
            return Page()

    real = Client.fetch
    patch.setattr(Client, "fetch", fetch)


def pages_that_bring_nothing_are_read_for_ever(patch: Patch) -> None:
    """A gateway that ignores the cursor is not noticed."""
    patch.setattr(Paginator, "_check_progress", lambda *_, **__: None)


def a_refused_cursor_is_the_end(patch: Patch) -> None:
    """An expired cursor is mistaken for the end of the pages."""

    def fail(self: WindowReader, error: Exception) -> None:
        if isinstance(error, CursorRefusedError):
            self.accept(Page())
        else:
            real(self, error)

    real = WindowReader.fail
    patch.setattr(WindowReader, "fail", fail)


# The rate limit


def a_429_is_retried_at_once(patch: Patch) -> None:
    """No request waits as long as ``Retry-After`` says."""
    patch.setattr(RateLimiter, "rate_limited", lambda *_: None)
    patch.setattr(RateLimiter, "pause", lambda *_: None)


IMPORTANT: list[Mutation] = [
    no_lookback,
    no_memory,
    a_failed_page_is_skipped,
    an_empty_page_is_the_end,
]
"""Mutations that every run of the tests plays: each is found within a few seconds."""

OTHERS: list[Mutation] = [
    an_error_drops_what_was_written,
    state_before_records,
    ids_from_is_not_respected,
    ids_are_forgotten_without_a_word,
    all_ids_are_kept,
    a_gap_is_not_noted,
    a_short_reach_is_not_warned_about,
    added_types_are_not_warned_about,
    types_no_longer_excluded_are_not_warned_about,
    excluded_events_are_read_for_ever,
    the_bookmark_follows_any_order,
    settling_passes_windows_that_are_not_read,
    no_state_between_pages,
    the_end_is_read_again_for_each_page,
    pages_that_bring_nothing_are_read_for_ever,
    a_refused_cursor_is_the_end,
    a_429_is_retried_at_once,
]
