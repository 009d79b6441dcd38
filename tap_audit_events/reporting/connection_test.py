"""What ``--test`` finds out: two requests for one event each, a line for each thing it knows."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tap_audit_events.errors.exceptions import ServiceError
from tap_audit_events.events.instants import Instant, brief, instant_of
from tap_audit_events.events.page import read_page
from tap_audit_events.events.window import Window, run_window
from tap_audit_events.extraction.plan import Export
from tap_audit_events.extraction.window_reader import Pages
from tap_audit_events.service.client import Client, about
from tap_audit_events.service.retry_after import http_date

if TYPE_CHECKING:
    from tap_audit_events.singer.tap import TapAuditEvents

CLOCKS_AGREE_SECONDS: Final = 2.0
"""The Date header has whole seconds, and an answer is on its way for a while."""

CLOCK_WARNING_SECONDS: Final = 30.0

_TOKEN_KNOWN: Final = frozenset({"AE-403", "AE-429"})  # interface.md 5, rule 5, and 7
_ANSWERED: Final = _TOKEN_KNOWN | {"AE-400", "AE-401", "AE-500"}


class Check:
    """Asks for the oldest and the newest event of what a first run would read.

    Args:
        tap: the tap, with its settings.
        logger: where to tell what was found.
    """

    def __init__(self, tap: TapAuditEvents, logger: logging.Logger) -> None:
        self._tap = tap
        self._logger = logger
        self._settings = replace(tap.settings, page_size=1)
        self._date: str | None = None

    def run(self) -> None:
        """Tell what holds.

        Raises:
            ServiceError: what does not; what holds before it is told by then.
            StoppedError: a signal asked to stop.
        """
        settings = self._settings
        window = run_window(
            start_date=settings.start_date,
            end_date=settings.end_date,
            bookmark=None,
            lookback_seconds=0,
            now=instant_of(self._tap.now()),
        )
        if window is None:
            self._logger.warning("Nothing to read: start_date lies after end_date or now")
            window = Window(None, instant_of(self._tap.now()))
        try:
            oldest = self._first_instant(window, "asc")
        except ServiceError as error:
            self._tell_reached(error.code)
            raise
        self._tell_reached(None)
        self._tell_clock()
        newest = self._first_instant(window, "desc")
        if oldest is None or newest is None:
            self._logger.info("There are no events in %s", window)
        else:
            self._logger.info(
                "Events in %s: the oldest at %s, the newest at %s",
                window, brief(oldest), brief(newest),
            )  # fmt: skip

    def _tell_reached(self, code: str | None) -> None:
        """How far the first request came; all the way without an error's code."""
        settings = self._settings
        if code is None or code in _ANSWERED:
            self._logger.info("The service answers at %s", settings.base_url)
        if code is None or code in _TOKEN_KNOWN:
            self._logger.info("The service accepts the access token")
        if code is None:
            self._logger.info("Audit events of %s can be read", settings.organization_id)

    def _first_instant(self, window: Window, order: str) -> Instant | None:
        """The time of the first event in an order; None where there is none."""
        gate = self._tap.new_gate()
        client = Client(
            self._settings, self._tap.new_session, gate=gate, logger=self._logger, order=order
        )

        def one_page(asks_ahead: object, asked: Window) -> Pages:
            del asks_ahead
            with about(asked):
                page = read_page(client.fetch(asked, None))
                if page.malformed:
                    raise page.malformed
            yield replace(page, is_last=True)

        export = Export(window, one_page, page_size=1, restarting=lambda _: None)
        try:
            ((_, page, _),) = self._tap.new_workers(export).pages(lambda: None)
        finally:
            gate.close()
        self._date = client.date
        return page.instants[0] if page.instants else None

    def _tell_clock(self) -> None:
        """How this machine's clock differs from the service's, by the Date header."""
        date = http_date(self._date)
        if date is None:
            self._logger.info("The service does not tell its time: clocks cannot be compared")
            return
        ahead = (self._tap.now() - date).total_seconds()
        if abs(ahead) <= CLOCKS_AGREE_SECONDS:
            self._logger.info("The clocks of the service and of this machine agree")
            return
        level = logging.WARNING if abs(ahead) > CLOCK_WARNING_SECONDS else logging.INFO
        self._logger.log(
            level,
            "This machine's clock is %.0f s %s the service's: a run reads up to the time that"
            " this machine has",
            abs(ahead), "ahead of" if ahead > 0 else "behind",
        )  # fmt: skip
