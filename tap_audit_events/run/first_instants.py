"""Finds the times of the oldest or the newest events without reading the others."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from tap_audit_events.errors.exceptions import CursorRefusedError
from tap_audit_events.events.envelope import MAX_EVENTS
from tap_audit_events.events.event_filter import EVERY_EVENT, EventFilter
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.delivery import pick
from tap_audit_events.extraction.planning.pagination import Paginator
from tap_audit_events.service.client import Client


def first_instants(
    count: int, client: Client, window: Window, order: str, filters: EventFilter = EVERY_EVENT
) -> tuple[list[Instant], str | None]:
    """The times of the first events of a range, and the Date header of the last response.

    At least `count` times of events that match, if the range has so many; `order` is ``asc`` or
    ``desc``.

    Raises:
        ServiceError: the events cannot be read.
    """
    # If the bounds are rounded, the pages also contain events outside of the range.
    is_exact = window.rounded == window and not filters
    page_size = min(count, MAX_EVENTS) if is_exact else MAX_EVENTS
    own = replace(
        client, settings=structs.replace(client.settings, page_size=page_size), order=order
    )
    return _find_instants(count, own, window, order, filters), own.date


def _find_instants(
    count: int, client: Client, window: Window, order: str, filters: EventFilter
) -> list[Instant]:
    """Request pages until enough instants are found.

    After a refused cursor, ``desc`` continues at the oldest instant read, if it is not the end.
    """
    found: list[Instant] = []
    oldest = window.end
    paginator = Paginator()
    while len(found) < count and not paginator.is_finished:
        try:
            page = client.fetch(window, paginator.cursor)
        except CursorRefusedError:
            if order == "asc" or oldest >= window.end:  # later: no event is in the window
                raise
            window, paginator = window.ending_at(oldest), Paginator()
            found = [instant for instant in found if instant > oldest]  # the others are sent again
            continue
        if page.malformed is not None:
            raise page.malformed
        instants = pick(page.instants, filters.positions(page.texts))
        found += filter(window.holds, instants)
        oldest = min([oldest, *filter(window.holds, page.instants)])
        paginator.advance(page, window)
    return found
