"""What a run reports: log lines, and a bar on a terminal."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from logging import INFO, Logger
from typing import Final

from tap_audit_events.errors.exceptions import AuditEventsError
from tap_audit_events.events.instants import (
    EARLIEST,
    Instant,
    brief,
    instant_of,
    seconds_between,
)
from tap_audit_events.reporting import progress, progress_bar
from tap_audit_events.reporting.new_fields import NewFields
from tap_audit_events.run.new_events import NewEvents
from tap_audit_events.run.organization import Organization
from tap_audit_events.run.run import Run

BAR_SECONDS: Final = 0.1


class Report:
    """Reports one run; `keeps_bookmark` says whether STATE has its bookmark."""

    def __init__(
        self,
        run: Run,
        *,
        logger: Logger,
        now: Callable[[], datetime],
        keeps_bookmark: bool,
    ) -> None:
        self.run = run
        self._settings = settings = run.settings
        self._logger = logger
        self._now = now
        self._keeps_bookmark = keeps_bookmark
        self._warned: set[tuple[str, str]] = set()
        self._new_fields = NewFields()
        self._total: Counter[str] = Counter()
        self._latest_seconds = 0.0
        self._is_opened = False
        self._is_done = False
        self._progress = progress.Progress()
        if settings.organizations:
            logger.info(
                "Reading organizations: %d; lookback %d s; at most %d requests at a time",
                run.organization_count, settings.lookback_seconds, settings.concurrency,
            )  # fmt: skip
        has_bar = logger.isEnabledFor(INFO) and progress_bar.should_show_bar(os.environ)
        self._bar = progress_bar.ProgressBar(sys.stderr) if has_bar else None

    def page(self, page: NewEvents | None) -> None:
        """Report a page that was written, or, with None, that no page has arrived meanwhile."""
        if self.run.only is not None and not self._is_opened:
            self._open(self.run.only)
        if page is not None:
            self._count(page)
            if page.is_last:
                self._end(page.organization)
        self._show_progress()

    def _open(self, organization: Organization) -> None:
        """Report the range of the only organization."""
        self._is_opened = True
        if organization.window is None:
            return
        self._progress.set_window(organization.window)
        self._logger.info(
            "Reading events %s; bookmark %s; lookback %d s; at most %d requests at a time",
            organization.window, _bookmark_shown(organization),
            self._settings.lookback_seconds, self._settings.concurrency,
        )  # fmt: skip

    def _show_progress(self) -> None:
        """Show how far the run has come, if that is due."""
        if not self._progress.is_due(BAR_SECONDS if self._bar else progress.PROGRESS_SECONDS):
            return
        delivered = self._total["delivered"]
        reached = None if self.run.only is None else _newest(self.run.only)
        if self._bar is not None:
            text = self._progress.bar_text(delivered=delivered, reached=reached)
            share = self._progress.share(reached) or 0.0
            if self._settings.organizations:
                share = self._total["ended"] / self.run.organization_count
            self._bar.draw(share, text)
            return
        requests = self.run.requests
        line = self._progress.log_line(
            delivered=delivered, reached=reached, requests=requests.sent, retries=requests.retries
        )
        if self._settings.organizations:
            line += f"; {self._total['ended']} of {self.run.organization_count} organizations"
        self._logger.info("%s", line)

    def _count(self, page: NewEvents) -> None:
        organization = page.organization
        self._warn_once(organization)
        self._new_fields.inspect(page.texts, organization.settings.action_types)
        self._total["delivered"] += len(page.texts)
        if page.instants:
            self._progress.set_first_instant(page.instants[0])

    def _end(self, organization: Organization) -> None:
        """Report the end of an organization; for one of several, its error or what it delivered."""
        delivery = organization.delivery
        self._total.update(
            late=delivery.late,
            repeats=delivery.repeats,
            excluded=delivery.excluded,
            windows=organization.windows,
            ended=1,
            active=bool(delivery.delivered),
            failed=organization.error is not None,
        )
        self._latest_seconds = max(self._latest_seconds, delivery.latest_seconds)
        if self._keeps_bookmark and organization.error is None and delivery.watermark.forgot:
            organization.logger.warning(
                "More events lie within lookback_seconds than the state can remember: the next run"
                " looks back only %.0f s for late events",
                delivery.watermark.reach_seconds,
            )
        if organization.window is None and organization.error is None:
            organization.logger.warning(
                "Nothing to read: start_date or the bookmark (%s) lies after end_date or now",
                _bookmark_shown(organization),
            )
        if not self._settings.organizations:
            return
        if organization.error is not None:
            error = organization.error
            summary = error.summary if isinstance(error, AuditEventsError) else repr(error)
            organization.logger.warning(
                "%s. The run continues with the other organizations", summary
            )
        elif delivery.delivered:
            organization.logger.info(
                "%s%s; %s",
                progress.events_text(delivery.delivered, separator=""),
                f", {delivery.late} of them late" if delivery.late else "",
                self._bookmark_and_lag(organization),
            )

    def done(self, *, records: int, left_out: int) -> None:
        """Report that everything was read; stream maps wrote no record of `left_out` events."""
        self._is_done = True
        total, requests = self._total, self.run.requests
        only = self.run.only
        if only is not None and only.window is None:
            return
        late = f", the latest by {self._latest_seconds:.0f} s" if total["late"] else ""
        excluded = ""
        if total["excluded"]:
            excluded = f"; {total['excluded']} left out by exclude_action_types"
        self._logger.info(
            "Done: %s; %d of them late%s; %d dropped as delivered before%s;"
            " requests: %d, windows: %d, retries: %d; %.1f s waited for retries; %s",
            _delivered(total["delivered"], records, left_out), total["late"], late,
            total["repeats"], excluded, requests.sent, total["windows"], requests.retries,
            requests.retry_wait_seconds,
            self._organizations() if only is None else self._bookmark_and_lag(only),
        )  # fmt: skip

    def close(self) -> None:
        """Remove the bar, and log new fields and types, however the run has ended.

        A run that ended early gets a line too: what was delivered until then.
        """
        if self._bar is not None:
            self._bar.close()
        if not self._is_done:
            self._log_early_end()
        self._new_fields.log(self._logger)

    def _log_early_end(self) -> None:
        only, requests = self.run.only, self.run.requests
        if only is not None and only.window is None:
            return
        total = self._total
        delivered = total["delivered"] if only is None else only.delivery.delivered
        ended = f"{total['ended']} of {self.run.organization_count} organizations were read"
        self._logger.info(
            "Ended early: %s delivered; requests: %d, retries: %d; %s",
            progress.events_text(delivered, separator=""), requests.sent, requests.retries,
            ended if only is None else self._bookmark_and_lag(only),
        )  # fmt: skip

    def lag_seconds(self) -> float | None:
        """How far the newest event of the only organization lies behind now, if it has any."""
        return None if self.run.only is None else self._seconds_behind(self.run.only)

    def _organizations(self) -> str:
        total = self._total
        failed = f", {total['failed']} failed" if total["failed"] else ""
        left = self.run.not_started_count
        not_started = f", {left} not started" if left else ""
        count = self.run.organization_count
        return f"{total['active']} of {count} organizations had new events{failed}{not_started}"

    def _seconds_behind(self, organization: Organization) -> float | None:
        """How far the newest event delivered, by this run or before it, lies behind now."""
        newest = _newest(organization)
        if newest is None:
            return None
        return max(0.0, seconds_between(newest, instant_of(self._now())))

    def _bookmark_and_lag(self, organization: Organization) -> str:
        """The bookmark, and how far it lies behind now."""
        shown = "none, as the whole table was read"
        if self._keeps_bookmark:
            shown = _bookmark_shown(organization)
        seconds = self._seconds_behind(organization)
        behind = "" if seconds is None else f", {timedelta(seconds=round(seconds))} behind now"
        return f"bookmark {shown}{behind}"

    def _warn_once(self, organization: Organization) -> None:
        """Log each of these warnings once for each organization."""
        delivery = organization.delivery
        cases = {
            "The service sends events out of order: the bookmark stays where it is until the"
            " window is complete": not delivery.was_in_order,
            "The service sends events from outside of the requested range: they are left out": bool(
                delivery.outside
            ),
            "The service sent an empty nextCursor: it is treated as absent": (
                delivery.had_empty_cursor
            ),
        }
        for warning, applies in cases.items():
            key = organization.settings.organization_id, warning
            if applies and key not in self._warned:
                self._warned.add(key)
                organization.logger.warning(warning)


def _delivered(events: int, records: int, left_out: int) -> str:
    """What was delivered; records are counted if stream maps left some out or added some."""
    if not events:
        return "0 events delivered, nothing new"
    if records == events and not left_out:
        return f"{progress.events_text(events, separator='')} delivered"
    why = f" ({left_out} left out by stream_maps)" if left_out else ""
    return f"{records} records written of {progress.events_text(events, separator='')}{why}"


def _newest(organization: Organization) -> Instant | None:
    """The newest time delivered; None until an event has been delivered in order."""
    bookmark = organization.delivery.watermark.bookmark
    return None if bookmark == EARLIEST else bookmark


def _bookmark_shown(organization: Organization) -> str:
    """The bookmark, for people."""
    newest = _newest(organization)
    return "none" if newest is None else brief(newest)
