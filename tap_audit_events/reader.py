"""Reads the audit events of an organization: pages in order, each event once.

This is what every face stands on; it knows nothing of Singer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from logging import Logger

from tap_audit_events.config.settings import Settings
from tap_audit_events.events.instants import instant_of
from tap_audit_events.events.window import Window, run_window
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.plan import Plan
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.runtime import Runtime
from tap_audit_events.service.client import Client


class Reader:
    """Reads the range of one run.

    Args:
        settings: what to read, and how.
        watermark: what earlier runs delivered.
        runtime: what surrounds the run.
        logger: is told of retries and restarts.
        one_page: whether one request for one page is enough, to try the connection.

    Attributes:
        window: the range of the run, None if it is empty.
        delivery: which events are delivered.
        limiter: what all requests go through.
        plan: which windows are requested.
    """

    def __init__(
        self,
        settings: Settings,
        watermark: Watermark,
        *,
        runtime: Runtime,
        logger: Logger,
        one_page: bool = False,
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._logger = logger
        self.window = run_window(
            start_date=settings.start_date,
            end_date=settings.end_date,
            bookmark=watermark.bookmark,
            lookback_seconds=settings.lookback_seconds,
            now=instant_of(runtime.now()),
            ids_from=watermark.ids_from,
        )
        watermark.start_at(settings.start_date)
        self.delivery = Delivery(watermark, settings.record_shape)
        concurrency = 1 if one_page else settings.concurrency
        self.limiter = runtime.new_rate_limiter(concurrency)
        self.plan = Plan(
            self.window or Window(None, instant_of(runtime.now())),
            page_size=settings.page_size,
            concurrency=concurrency,
            pages_held=1 if one_page else None,
        )

    def pages(self, idle: Callable[[], object] = lambda: None) -> Generator[Delivery, None, None]:
        """Each page of the range, ready to be written; it counts as delivered when it was written.

        Args:
            idle: called now and then while a page is waited for.

        Raises:
            ServiceError: the range could not be read to its end.
            StoppedError: a signal asked the run to stop.
        """
        if self.window is None:
            return
        settings, runtime = self._settings, self._runtime
        client = Client(settings, runtime.new_session, limiter=self.limiter, logger=self._logger)
        workers = runtime.new_workers(self.plan, client.fetch, runtime.stop, settings.concurrency)
        try:
            with closing(workers.pages(idle)) as pages:
                for read in pages:
                    self._tell_restarts()
                    self.delivery.start(read)
                    del read  # so that the next page can take its place in memory
                    yield self.delivery
                    self.delivery.finish()
        finally:
            self.limiter.close()
            client.close()

    def _tell_restarts(self) -> None:
        while self.plan.restarted:
            self._logger.warning(
                "The service refused one of its own cursors, which may have expired: the window"
                " %s is requested again from where it was read to",
                self.plan.restarted.pop(),
            )
