"""What a run tells whoever watches it: log lines, a bar on a terminal, metrics at its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from logging import INFO, Logger
from typing import Any, Final, Protocol, cast

from singer_sdk import metrics

from tap_audit_events.config.settings import Settings
from tap_audit_events.events.instants import EARLIEST, brief, instant_of, seconds_between
from tap_audit_events.events.stream_names import STREAM
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.reporting import progress, progress_bar
from tap_audit_events.reporting.new_fields import NewFields
from tap_audit_events.service.rate_limiter import RateLimiter

ENDPOINT: Final = "/v1/organizations/{organizationId}/audit_events"
BAR_SECONDS: Final = 0.1


class RunMetric(StrEnum):
    """What is measured beyond what the SDK has a name for."""

    RETRY_COUNT = "http_retry_count"
    LAG_SECONDS = "lag_seconds"


class Run(Protocol):
    """What is reported: the parts of a run that count."""

    @property
    def window(self) -> Window | None: ...
    @property
    def delivery(self) -> Delivery: ...
    @property
    def limiter(self) -> RateLimiter: ...


class Report:
    """Reports one run.

    Args:
        run: what is reported; its window must not be empty.
        settings: what was requested.
        logger: receives the lines.
        now: the time.
        keeps_bookmark: whether the bookmark goes into STATE.
    """

    def __init__(
        self,
        run: Run,
        settings: Settings,
        *,
        logger: Logger,
        now: Callable[[], datetime],
        keeps_bookmark: bool,
    ) -> None:
        self._delivery = run.delivery
        self._limiter = run.limiter
        self._logger = logger
        self._now = now
        self._keeps_bookmark = keeps_bookmark
        self._warned: set[str] = set()
        self._new_fields = NewFields()
        window = run.window or Window(None, instant_of(now()))
        self._progress = progress.Progress(window)
        logger.info(
            "Reading %s; bookmark %s; lookback %d s; at most %d requests at a time",
            window, bookmark_shown(run.delivery.watermark), settings.lookback_seconds,
            settings.concurrency,
        )  # fmt: skip
        self._bar: progress_bar.ProgressBar | None = None
        if logger.isEnabledFor(INFO) and progress_bar.should_show_bar(os.environ):
            self._bar = progress_bar.ProgressBar(sys.stderr)

    def tick(self) -> None:
        """Time has gone by: show how far the run has come, where that is due."""
        if not self._progress.is_due(BAR_SECONDS if self._bar else progress.PROGRESS_SECONDS):
            return
        delivered, reached = self._delivery.delivered, self._delivery.watermark.bookmark
        if self._bar is not None:
            text = self._progress.bar_text(delivered=delivered, reached=reached)
            self._bar.draw(self._progress.share(reached) or 0.0, text)
            return
        line = self._progress.log_line(
            delivered=delivered,
            reached=reached,
            requests=self._limiter.requests,
            retries=self._limiter.retries,
        )
        self._logger.info("%s", line)

    def page(self, delivery: Delivery) -> None:
        """Report a page that was written."""
        self._warn_once()
        self._new_fields.inspect(delivery.texts())
        self._progress.set_first_instant(delivery.first_instant)
        self.tick()

    def done(self, windows: int, *, records: int, left_out: int) -> None:
        """Report that the range was read to its end.

        Args:
            windows: in how many windows.
            records: how many records were written.
            left_out: of how many events stream maps wrote no record.
        """
        self._warn_of_short_reach()
        delivery, limiter = self._delivery, self._limiter
        late = f", the latest by {delivery.latest_seconds:.0f} s" if delivery.late else ""
        self._logger.info(
            "Done: %s; %d of them late%s; %d dropped as delivered before;"
            " %d requests in %d windows, %d of them retries; %.1f s waited for retries;"
            " bookmark %s%s",
            _delivered(delivery.delivered, records, left_out), delivery.late, late,
            delivery.repeats, limiter.requests, windows, limiter.retries,
            limiter.retry_wait_seconds, self._bookmark(), self._behind(),
        )  # fmt: skip

    def _warn_of_short_reach(self) -> None:
        watermark = self._delivery.watermark
        if self._keeps_bookmark and watermark.forgot:
            self._logger.warning(
                "More events lie within lookback_seconds than the state can remember: the next run"
                " looks back only %.0f s for late events",
                watermark.short_reach_seconds or 0,
            )

    def close(self) -> None:
        """The run is over, however it ended: wipe out the bar, say what is known by now."""
        if self._bar is not None:
            self._bar.close()
        for line in self._new_fields.log_lines():
            self._logger.info("%s", line)
        limiter = self._limiter
        self._measured("counter", metrics.Metric.HTTP_REQUEST_COUNT, limiter.requests)
        self._measured("counter", RunMetric.RETRY_COUNT, limiter.retries)
        if limiter.requests:
            mean_seconds = limiter.request_seconds / limiter.requests
            self._measured("timer", metrics.Metric.HTTP_REQUEST_DURATION, mean_seconds)
        if (seconds := self._lag_seconds()) is not None:
            self._measured("gauge", RunMetric.LAG_SECONDS, round(seconds, 3))

    def _measured(self, metric_type: str, metric: metrics.Metric | RunMetric, value: float) -> None:
        tags: dict[str, Any] = {metrics.Tag.STREAM: STREAM, metrics.Tag.PID: os.getpid()}
        if metric != RunMetric.LAG_SECONDS:
            tags[metrics.Tag.ENDPOINT] = ENDPOINT
        point = metrics.Point(metric_type, cast("metrics.Metric", metric), value, tags)
        metrics.log(metrics.get_metrics_logger(), point)

    def _lag_seconds(self) -> float | None:
        """How far the newest event delivered, by this run or before it, lies behind now."""
        newest = self._delivery.watermark.bookmark
        if newest is None or newest == EARLIEST:  # the latter if all came out of order
            return None
        return max(0.0, seconds_between(newest, instant_of(self._now())))

    def _behind(self) -> str:
        seconds = self._lag_seconds()
        return "" if seconds is None else f", {timedelta(seconds=round(seconds))} behind now"

    def _bookmark(self) -> str:
        if not self._keeps_bookmark:
            return "none, as the whole table was read"
        return bookmark_shown(self._delivery.watermark)

    def _warn_once(self) -> None:
        """Say once a run what the person who reads the log should know."""
        delivery = self._delivery
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
            if applies and warning not in self._warned:
                self._warned.add(warning)
                self._logger.warning(warning)


def _delivered(events: int, records: int, left_out: int) -> str:
    """What was delivered; records are counted if stream maps left some out or added some."""
    if not events:
        return "0 events delivered, nothing new"
    if records == events and not left_out:
        return f"{events} events delivered"
    why = f" ({left_out} left out by stream_maps)" if left_out else ""
    return f"{records} records written of {events} events{why}"


def bookmark_shown(watermark: Watermark) -> str:
    """The bookmark, for people."""
    bookmark = watermark.bookmark
    return "none" if bookmark is None or bookmark == EARLIEST else brief(bookmark)
