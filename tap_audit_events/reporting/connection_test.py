"""The test of ``--test``: requests the oldest and the newest event, and logs each result."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import ServiceError
from tap_audit_events.events.instants import Instant, brief, instant_of
from tap_audit_events.events.window import Window, run_window
from tap_audit_events.run.first_instants import first_instants
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.run.searches import search_each
from tap_audit_events.service.client import Client
from tap_audit_events.service.retries import http_date

MAX_RETRIES: Final = 1
"""Somebody waits for the result, and an error may be a mistyped URL."""

CLOCKS_AGREE_SECONDS: Final = 2.0
"""The Date header has whole seconds, and a response takes a while to arrive."""

CLOCK_WARNING_SECONDS: Final = 30.0

_TOKEN_KNOWN: Final = frozenset({"AE-403", "AE-429"})  # interface.md 5, rule 5, and 7
_RESPONDED: Final = _TOKEN_KNOWN | {"AE-400", "AE-401", "AE-500"}


def check_connection(settings: Settings, runtime: Runtime, logger: logging.Logger) -> None:
    """Request the oldest and the newest event that a first run would read; log each success.

    Of several organizations, only the newest event of each is requested, side by side as in a run.
    A request is retried at most `MAX_RETRIES` times.

    Raises:
        ServiceError: a request failed; earlier successes were logged.
        OrganizationsError: requests for some of several organizations failed.
        StoppedError: a signal asked the test to stop.
    """
    now = instant_of(runtime.now())
    window = run_window(start_date=settings.start_date, end_date=settings.end_date, now=now)
    if window is None:
        logger.warning("Nothing to read yet: start_date lies in the future")
        window = Window(None, now)
    settings = replace(settings, max_retries=min(settings.max_retries, MAX_RETRIES))
    if settings.organizations:
        _check_organizations(settings, window, runtime, logger)
    else:
        _check_organization(settings, window, runtime, logger)


def _check_organization(
    settings: Settings, window: Window, runtime: Runtime, logger: logging.Logger
) -> None:
    try:
        ((_, oldest, date),) = _first_of_each("asc", settings, window, runtime, logger)
    except ServiceError as error:
        _log_reached(error.code, settings, logger)
        raise
    _log_reached(None, settings, logger)
    logger.info("Audit events of %s can be read", settings.organization_id)
    _log_clock(date, runtime.now(), logger)
    ((_, newest, _),) = _first_of_each("desc", settings, window, runtime, logger)
    if oldest and newest:
        logger.info("Events %s: oldest %s, newest %s", window, oldest, newest)
    else:
        logger.info("There are no events %s", window)


def _check_organizations(
    settings: Settings, window: Window, runtime: Runtime, logger: logging.Logger
) -> None:
    count = 0
    for own_logger, newest, date in _first_of_each("desc", settings, window, runtime, logger):
        if not count:
            _log_reached(None, settings, logger)
            _log_clock(date, runtime.now(), logger)
        count += 1
        if newest:
            own_logger.info("Audit events can be read: the newest %s is from %s", window, newest)
        else:
            own_logger.info("Audit events can be read: there are none %s", window)
    logger.info("Audit events of all %d organizations can be read", count)


def _first_of_each(
    order: str, settings: Settings, window: Window, runtime: Runtime, logger: logging.Logger
) -> Iterator[tuple[logging.Logger, str | None, datetime | None]]:
    """For each organization: its logger, the time of its first event, and the service's time."""

    def search(client: Client) -> tuple[list[Instant], str | None]:
        return first_instants(1, client, window, order)

    for client, (found, date) in search_each(settings, search, runtime=runtime, logger=logger):
        yield client.logger, brief(found[0]) if found else None, http_date(date)


def _log_reached(code: str | None, settings: Settings, logger: logging.Logger) -> None:
    """Log which steps of the first request succeeded: all of them, if there is no error code."""
    if code is None or code in _RESPONDED:
        logger.info("The service responds at %s", settings.base_url)
    if code is None or code in _TOKEN_KNOWN:
        logger.info("The service accepts the access token")


def _log_clock(date: datetime | None, now: datetime, logger: logging.Logger) -> None:
    """Log how this machine's clock differs from the service's, by the Date header."""
    if date is None:
        logger.info("The service sends no usable Date header: clocks cannot be compared")
        return
    ahead = (now - date).total_seconds()
    if abs(ahead) <= CLOCKS_AGREE_SECONDS:
        logger.info("The clocks of the service and of this machine agree")
        return
    level = logging.WARNING if abs(ahead) > CLOCK_WARNING_SECONDS else logging.INFO
    logger.log(
        level,
        "This machine's clock is %.0f s %s the service's: a run reads up to this machine's time",
        abs(ahead), "ahead of" if ahead > 0 else "behind",
    )  # fmt: skip
