"""Finds the times of the oldest or the newest events without reading the others."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from tap_audit_events.errors.exceptions import CursorRefusedError
from tap_audit_events.events.envelope import MAX_EVENTS
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.pagination import Paginator
from tap_audit_events.service.client import Client


def first_instants(
    count: int, client: Client, window: Window, order: str
) -> tuple[list[Instant], str | None]:
    """The times of the first events of a range, and the Date header of the last response.

    At least `count` times, if the range has so many events; `order` is ``asc`` or ``desc``.

    Raises:
        ServiceError: the events cannot be read.
    """
    # If the bounds are rounded, the pages also contain events outside of the range.
    page_size = min(count, MAX_EVENTS) if window.rounded == window else MAX_EVENTS
    own = replace(
        client, settings=structs.replace(client.settings, page_size=page_size), order=order
    )
    return _find_instants(count, own, window, order), own.date


def _find_instants(count: int, client: Client, window: Window, order: str) -> list[Instant]:
    """Request pages until enough instants are found.

    After a refused cursor, ``desc`` continues at the oldest instant found, if it is not the end.
    """
    found: list[Instant] = []
    paginator = Paginator()
    while len(found) < count and not paginator.is_finished:
        try:
            page = client.fetch(window, paginator.cursor)
        except CursorRefusedError:
            oldest = min(found, default=window.end)
            if order == "asc" or oldest >= window.end:  # later: no event is in the window
                raise
            window, paginator = window.ending_at(oldest), Paginator()
            found = [instant for instant in found if instant > oldest]  # the others are sent again
            continue
        if page.malformed is not None:
            raise page.malformed
        found += filter(window.holds, page.instants)
        paginator.advance(page, window)
    return found
