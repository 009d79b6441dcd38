"""Finds the newest events without reading the others."""

from __future__ import annotations

from logging import Logger
from typing import NamedTuple

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import OrganizationsError
from tap_audit_events.events.event_filter import EVERY_EVENT, EventFilter
from tap_audit_events.events.instants import Instant, instant_of
from tap_audit_events.events.window import run_window
from tap_audit_events.run.first_instants import first_instants
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.run.searches import search_each
from tap_audit_events.service.client import Client


class Newest(NamedTuple):
    """Where the newest events begin.

    Attributes:
        start: the time of the oldest of them, None if there are no events.
        error: why the newest events may begin earlier: some of several organizations could not be
            read, and the others have too few events. None if that is not so.
    """

    start: Instant | None
    error: OrganizationsError | None = None


def start_of_newest(
    count: int, filters: EventFilter, settings: Settings, *, runtime: Runtime, logger: Logger
) -> Newest:
    """Where the newest `count` events that match begin.

    `count` is 1 or more. If fewer events match, the oldest of them is the start, and if none does,
    the newest event. Organizations that cannot be read, or that `search_each` gives up, are left
    out.

    Raises:
        ServiceError: the newest events cannot be read.
        OrganizationsError: the same, for several organizations, if no event was found.
        StoppedError: a signal asked the run to stop.
    """
    now = instant_of(runtime.now())
    window = run_window(start_date=settings.start_date, end_date=settings.end_date, now=now)
    if window is None:
        return Newest(None)
    found: list[Instant] = []

    def search(client: Client) -> list[Instant]:
        newest, _ = first_instants(count, client, window, "desc", filters)
        return newest

    failed: OrganizationsError | None = None
    try:
        for _, newest in search_each(settings, search, runtime=runtime, logger=logger):
            found = sorted(found + newest, reverse=True)[:count]
    except OrganizationsError as error:
        failed = error
        if not found and not filters:
            raise
    if filters and not found:
        return start_of_newest(1, EVERY_EVENT, settings, runtime=runtime, logger=logger)
    if failed is None or len(found) >= count:
        return Newest(min(found, default=None))
    return Newest(min(found), failed)
