"""The test of ``--test``: requests the oldest and the newest event, and logs each result."""

from __future__ import annotations

import logging
from datetime import datetime
from functools import partial
from typing import Final

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import ServiceError
from tap_audit_events.events.instants import brief, instant_of
from tap_audit_events.events.window import Window, run_window
from tap_audit_events.extraction.failures import one_by_one
from tap_audit_events.first_instants import first_instants
from tap_audit_events.organization_run import organization_logger
from tap_audit_events.runtime import Runtime
from tap_audit_events.service.retries import http_date

CLOCKS_AGREE_SECONDS: Final = 2.0
"""The Date header has whole seconds, and a response takes a while to arrive."""

CLOCK_WARNING_SECONDS: Final = 30.0

_TOKEN_KNOWN: Final = frozenset({"AE-403", "AE-429"})  # interface.md 5, rule 5, and 7
_RESPONDED: Final = _TOKEN_KNOWN | {"AE-400", "AE-401", "AE-500"}


def check_connection(settings: Settings, runtime: Runtime, logger: logging.Logger) -> None:
    """Request the oldest and the newest event that a first run would read; log each success.

    Several organizations are tested one after the other. If the service fails for ten in a row,
    the others are not tested, as in a run.

    Raises:
        ServiceError: a request failed; earlier successes were logged.
        OrganizationsError: requests for some of several organizations failed.
        StoppedError: a signal asked the test to stop.
    """
    failed = one_by_one(
        settings,
        lambda each: _check_organization(each, runtime, organization_logger(logger, each)),
    )
    if failed is not None:
        raise failed


def _check_organization(settings: Settings, runtime: Runtime, logger: logging.Logger) -> None:
    now = instant_of(runtime.now())
    window = run_window(start_date=settings.start_date, end_date=settings.end_date, now=now)
    if window is None:
        logger.warning("Nothing to read yet: start_date lies in the future")
        window = Window(None, now)
    first = partial(first_instants, 1, settings, window, runtime=runtime, logger=logger)
    try:
        oldest, date = first("asc")
    except ServiceError as error:
        _log_reached(error.code, settings, logger)
        raise
    _log_reached(None, settings, logger)
    _log_clock(http_date(date), runtime.now(), logger)
    newest, _ = first("desc")
    if oldest and newest:
        shown = brief(oldest[0]), brief(newest[0])
        logger.info("Events %s: oldest %s, newest %s", window, *shown)
    else:
        logger.info("There are no events %s", window)


def _log_reached(code: str | None, settings: Settings, logger: logging.Logger) -> None:
    """Log which steps of the first request succeeded: all of them, if there is no error code."""
    if code is None or code in _RESPONDED:
        logger.info("The service responds at %s", settings.base_url)
    if code is None or code in _TOKEN_KNOWN:
        logger.info("The service accepts the access token")
    if code is None:
        logger.info("Audit events of %s can be read", settings.organization_id)


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
