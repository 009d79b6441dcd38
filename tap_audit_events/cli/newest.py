"""Finds the newest events without reading the others."""

from __future__ import annotations

from dataclasses import replace
from logging import Logger
from typing import Final

from tap_audit_events.config.settings import Settings
from tap_audit_events.events.instants import Instant, instant_of
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window, run_window
from tap_audit_events.extraction.plan import Plan
from tap_audit_events.extraction.window_reader import Request
from tap_audit_events.runtime import Runtime
from tap_audit_events.service.client import Client
from tap_audit_events.service.rate_limiter import RunRequests
from tap_audit_events.service.transport import Transport

MAX_PAGE_SIZE: Final = 1000
"""Events (interface.md 8)."""

SPARE_PAGES: Final = 20
"""Pages may be short or empty; after so many more than are needed, what has come is enough."""


def oldest_of_newest(
    count: int, settings: Settings, *, runtime: Runtime, logger: Logger
) -> Instant | None:
    """The time of the oldest of the newest `count` events, at least 1; None if there are none.

    If there are fewer events, it is the time of the oldest of all.

    Args:
        count: how many events.
        settings: the range, and what to request.
        runtime: what surrounds the run.
        logger: is told of retries.

    Raises:
        ServiceError: the service does not say.
        StoppedError: a signal asked the run to stop.
    """
    window = run_window(
        start_date=settings.start_date,
        end_date=settings.end_date,
        bookmark=None,
        lookback_seconds=0,
        now=instant_of(runtime.now()),
    )
    if window is None:
        return None
    found: list[Instant] = []
    for each in settings.each():
        found += _newest(count, each, window, runtime=runtime, logger=logger)
        found = sorted(found, reverse=True)[:count]
    return min(found, default=None)


def _newest(
    count: int, settings: Settings, window: Window, *, runtime: Runtime, logger: Logger
) -> list[Instant]:
    """The times of the newest events of an organization, at least `count` if it has as many."""
    limiter = runtime.new_rate_limiter(RunRequests(1))
    client = Client(
        replace(settings, page_size=min(count, MAX_PAGE_SIZE)),
        Transport(settings.base_url, runtime.new_session),
        limiter=limiter,
        logger=logger,
        order="desc",
    )
    found: list[Instant] = []

    def fetch_newest(request: Request) -> Page:
        """As many pages as are needed; the plan sees the last one, as if it were the only one."""
        window, cursor = request.window, request.cursor
        for _ in range(count // MAX_PAGE_SIZE + SPARE_PAGES):
            page = client.fetch(window, cursor)
            if page.malformed is not None:
                raise page.malformed
            found.extend(page.instants)
            cursor = page.next_cursor
            if len(found) >= count or cursor is None:
                break
        return replace(page, next_cursor=None)

    plan = Plan(window, page_size=1)
    workers = runtime.new_workers(plan, fetch_newest, runtime.stop, 1)
    try:
        for _ in workers.pages(lambda: None):
            pass
    finally:
        limiter.close()
    return found
