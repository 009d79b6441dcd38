"""What ``--test`` finds out: two requests for one event each, a line for each result."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import AuditEventsError, OrganizationsError, ServiceError
from tap_audit_events.events.instants import Instant, brief, instant_of
from tap_audit_events.events.window import Window, run_window
from tap_audit_events.first_instants import first_instants
from tap_audit_events.organization_run import organization_logger
from tap_audit_events.runtime import Runtime
from tap_audit_events.service.retry_after import http_date

CLOCKS_AGREE_SECONDS: Final = 2.0
"""The Date header has whole seconds, and a response takes a while to arrive."""

CLOCK_WARNING_SECONDS: Final = 30.0

_TOKEN_KNOWN: Final = frozenset({"AE-403", "AE-429"})  # interface.md 5, rule 5, and 7
_RESPONDED: Final = _TOKEN_KNOWN | {"AE-400", "AE-401", "AE-500"}


class ConnectionTest:
    """Requests the oldest and the newest event of what a first run would read.

    Several organizations are tested one after the other. The logger receives the results.
    """

    def __init__(self, settings: Settings, runtime: Runtime, logger: logging.Logger) -> None:
        self._settings = settings
        self._runtime = runtime
        self._logger = logger

    def run(self) -> None:
        """Log what works; of several organizations, each.

        Raises:
            ServiceError: something does not work; what works was logged before.
            OrganizationsError: something does not work for some of several organizations.
            StoppedError: a signal asked the test to stop.
        """
        if not self._settings.is_fleet:
            self._test()
            return
        errors: dict[str, AuditEventsError] = {}
        for each in self._settings.each():
            logger = organization_logger(self._logger, each.organization_id)
            try:
                ConnectionTest(each, self._runtime, logger).run()
            except ServiceError as error:
                errors[each.organization_id] = error
        if errors:
            raise OrganizationsError(errors, len(self._settings.organizations))

    def _test(self) -> None:
        settings, now = self._settings, instant_of(self._runtime.now())
        window = run_window(
            start_date=settings.start_date,
            end_date=settings.end_date,
            bookmark=None,
            lookback_seconds=0,
            now=now,
        )
        if window is None:
            self._logger.warning("Nothing to read yet: start_date lies in the future")
            window = Window(None, now)
        try:
            oldest, date = self._first_instant(window, "asc")
        except ServiceError as error:
            self._tell_reached(error.code)
            raise
        self._tell_reached(None)
        self._tell_clock(http_date(date))
        newest, _ = self._first_instant(window, "desc")
        if oldest is None or newest is None:
            self._logger.info("There are no events %s", window)
        else:
            self._logger.info(
                "Events %s: oldest %s, newest %s",
                window, brief(oldest), brief(newest),
            )  # fmt: skip

    def _tell_reached(self, code: str | None) -> None:
        """Log how far the first request came; without an error code it succeeded."""
        settings = self._settings
        if code is None or code in _RESPONDED:
            self._logger.info("The service responds at %s", settings.base_url)
        if code is None or code in _TOKEN_KNOWN:
            self._logger.info("The service accepts the access token")
        if code is None:
            self._logger.info("Audit events of %s can be read", settings.organization_id)

    def _first_instant(self, window: Window, order: str) -> tuple[Instant | None, str | None]:
        """The time of the first event in an order, None if there is none, and the Date header."""
        instants, date = first_instants(
            1, self._settings, window, order, runtime=self._runtime, logger=self._logger
        )
        return instants[0] if instants else None, date

    def _tell_clock(self, date: datetime | None) -> None:
        """Log how this machine's clock differs from the service's, by the Date header."""
        if date is None:
            self._logger.info("The service sends no usable Date header: clocks cannot be compared")
            return
        ahead = (self._runtime.now() - date).total_seconds()
        if abs(ahead) <= CLOCKS_AGREE_SECONDS:
            self._logger.info("The clocks of the service and of this machine agree")
            return
        level = logging.WARNING if abs(ahead) > CLOCK_WARNING_SECONDS else logging.INFO
        self._logger.log(
            level,
            "This machine's clock is %.0f s %s the service's: a run reads up to this"
            " machine's time",
            abs(ahead), "ahead of" if ahead > 0 else "behind",
        )  # fmt: skip
