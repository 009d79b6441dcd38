"""Reads the audit events of organizations: pages in order, each event once.

Singer, Airbyte, the command line and the Python API use this module, which imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from logging import Logger

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import AuditEventsError, OrganizationsError
from tap_audit_events.events.page import Page
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.run.organization import (
    OrganizationRun,
    TokenGroup,
    organization_logger,
    token_groups,
)
from tap_audit_events.run.organizations_plan import (
    MemberRequest,
    OrganizationsPlan,
)
from tap_audit_events.run.runtime import MAX_THREADS, Runtime
from tap_audit_events.service.client import Client
from tap_audit_events.service.rate_limiter import RunRequests


class Reader:
    """Reads the organizations of one run side by side.

    `watermark_of` returns the watermark that earlier runs left for an organization, and logs its
    warnings; it raises `AuditEventsError` if the watermark cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        watermark_of: Callable[[Settings, Logger], Watermark],
        *,
        runtime: Runtime,
        logger: Logger,
    ) -> None:
        self._settings = settings
        self._watermark_of = watermark_of
        self._runtime = runtime
        self._logger = logger
        wakeups = runtime.stop.wakeups
        self.requests = RunRequests(settings.concurrency, lambda: wakeups.put(None))
        self._transport = runtime.new_transport(settings.base_url)
        self.organization_count = len(list(settings.each()))
        self._errors: dict[str, Exception] = {}
        self._groups = token_groups(settings, self._open_run, self.requests, runtime)
        self._has_several_tokens = any(group.has_others for group in self._groups)
        self._plan = OrganizationsPlan(
            self._groups, concurrency=settings.concurrency, waiting=self._waiting
        )

    @property
    def not_started_count(self) -> int:
        """How many organizations were given up before a request for them was sent."""
        return len(self._plan.not_started)

    def pages(
        self, idle: Callable[[], object] = lambda: None
    ) -> Generator[OrganizationRun, None, None]:
        """Yield each organization when it is opened, for each page to write, and when it has ended.

        `OrganizationRun.stage` says which of these applies. The caller writes the page, for example
        with `OrganizationRun.write_page`. With several organizations, the error of one ends only
        that one, and is its `OrganizationRun.error`.

        Args:
            idle: called as in `Workers.pages`, while the main thread waits for a page.

        Raises:
            ServiceError: the range of the only organization could not be read to its end.
            AuditEventsError: `watermark_of` raised it for the only organization.
            StoppedError: a signal asked the run to stop.
        """
        runtime, concurrency = self._runtime, self._settings.concurrency
        threads = MAX_THREADS if self._settings.organizations else concurrency
        workers = runtime.new_workers(self._plan, _fetch, runtime.stop, threads)
        try:
            with closing(workers.pages(idle)) as pages:
                for run, stage, page in pages:
                    run.stage = stage
                    self._log_restarts(run)
                    if run.error is not None:
                        self._keep_error(run, run.error)
                    if page is None or run.start_page(page):
                        del page  # so that the next page can take its place in memory
                        yield run
                        run.delivery.let_go()
        finally:
            self.requests.close()
            self._transport.close()

    def check_errors(self) -> None:
        """Raise `OrganizationsError` if some organizations were not read to their end.

        An error without a code, which is a defect, is raised unchanged.
        """
        errors: dict[str, AuditEventsError] = {}
        for organization_id, error in self._errors.items():
            if not isinstance(error, AuditEventsError):
                raise error
            errors[organization_id] = error
        if errors:
            raise OrganizationsError(
                errors, self.organization_count, not_started=self._plan.not_started
            )

    def _open_run(self, settings: Settings, group: TokenGroup) -> OrganizationRun:
        logger, error = organization_logger(self._logger, settings), None
        try:
            watermark = self._watermark_of(settings, logger)
        except AuditEventsError as caught:
            watermark, error = Watermark(), caught
        if self._plan.failures.is_impatient:
            settings = replace(settings, max_retries=min(1, settings.max_retries))
        authenticator = group.authenticator(settings, self._logger)
        client = Client(settings, self._transport, authenticator, group.limiter, logger)
        run = OrganizationRun(
            settings, watermark, runtime=self._runtime, client=client, group=group, logger=logger
        )
        run.error = error
        return run

    def _keep_error(self, run: OrganizationRun, error: Exception) -> None:
        """Keep an organization's error for the end, or raise it, as `OrganizationRun.fail` does."""
        run.fail(error)
        if isinstance(error, AuditEventsError):
            error.without_frames()
        self._errors[run.settings.organization_id] = error

    def _waiting(self) -> int:
        """Requests that wait, while others can be sent in their place."""
        requests = self.requests
        return requests.paused + (requests.waiting if self._has_several_tokens else 0)

    def _log_restarts(self, run: OrganizationRun) -> None:
        while run.plan.restarted:
            run.logger.warning(
                "The service refused one of its own cursors, which may have expired: the rest"
                " of the window %s is requested again without a cursor",
                run.plan.restarted.pop(),
            )


def _fetch(request: MemberRequest) -> Page:
    run: OrganizationRun = request.member
    return run.client.fetch(request.request.window, request.request.cursor)
