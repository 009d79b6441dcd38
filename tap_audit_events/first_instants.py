"""Finds the times of the oldest or the newest events without reading the others."""

from __future__ import annotations

from dataclasses import replace
from logging import Logger

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import CursorRefusedError
from tap_audit_events.events.envelope import MAX_EVENTS
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.pagination import Paginator
from tap_audit_events.extraction.planning.plan import Plan
from tap_audit_events.extraction.planning.window_reader import Request
from tap_audit_events.runtime import Runtime
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.service.client import Client
from tap_audit_events.service.rate_limiter import RunRequests
from tap_audit_events.service.transport import Transport


def first_instants(
    count: int, settings: Settings, window: Window, order: str, *, runtime: Runtime, logger: Logger
) -> tuple[list[Instant], str | None]:
    """The times of the first events of a range, and the Date header of the last response.

    At least `count` times, if the range has so many events; `order` is ``asc`` or ``desc``.

    Raises:
        ServiceError: the events cannot be read.
        StoppedError: a signal asked the run to stop.
    """
    # If the bounds are rounded, the pages also contain events outside of the range.
    page_size = min(count, MAX_EVENTS) if window.rounded == window else MAX_EVENTS
    requests = RunRequests(1)
    transport = Transport(settings.base_url, runtime.new_session)
    client = Client(
        replace(settings, page_size=page_size),
        transport,
        AccessTokenAuthenticator(settings, logger),
        runtime.new_rate_limiter(requests),
        logger,
        order,
    )
    found: list[Instant] = []

    def fetch_all(_: Request) -> Page:
        """Find the times in a worker's thread, because a signal ends the wait for a worker."""
        found.extend(_find_instants(count, client, window, order))
        return Page()  # the only page of the plan: nothing else is requested

    workers = runtime.new_workers(Plan(window, page_size=1), fetch_all, runtime.stop, 1)
    try:
        for _ in workers.pages(lambda: None):
            pass
    finally:
        requests.close()
        transport.close()
    return found, client.date


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
            window, paginator = replace(window, end=oldest), Paginator()
            found = [instant for instant in found if instant > oldest]  # the others are sent again
            continue
        if page.malformed is not None:
            raise page.malformed
        found += filter(window.holds, page.instants)
        paginator.advance(page, window)
    return found
