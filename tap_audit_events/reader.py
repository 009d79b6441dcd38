"""Reads the audit events of organizations: pages in order, each event once.

This is what every face stands on; it knows nothing of Singer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from logging import Logger

from tap_audit_events.config.settings import Settings
from tap_audit_events.events.page import Page
from tap_audit_events.extraction.fleet_plan import FleetPlan, MemberRequest
from tap_audit_events.organization_run import OrganizationRun, TokenGroup, WatermarkOf
from tap_audit_events.runtime import Runtime
from tap_audit_events.service.rate_limiter import InFlight
from tap_audit_events.service.transport import Transport

MOST_THREADS = 64
"""At most, if there are several tokens: threads that wait for one token must not hold up others."""


class Reader:
    """Reads the organizations of one run side by side.

    Args:
        settings: what to read, and how.
        watermark_of: what earlier runs delivered of an organization.
        runtime: what surrounds the run.
        logger: is told of retries and restarts.
        one_page: whether one request for one page is enough, to try the connection.

    Attributes:
        groups: the organizations by their tokens.
        organizations: how many there are.
    """

    def __init__(
        self,
        settings: Settings,
        watermark_of: WatermarkOf,
        *,
        runtime: Runtime,
        logger: Logger,
        one_page: bool = False,
    ) -> None:
        self._runtime = runtime
        self._logger = logger
        self._is_fleet = settings.is_fleet
        self._concurrency = 1 if one_page else settings.concurrency
        self._in_flight = InFlight(self._concurrency)
        self._transport = Transport(settings.base_url, runtime.new_session)
        each = list(settings.each())
        self.organizations = len(each)
        groups = list(_by_token(each))
        self.groups = [
            TokenGroup(
                group,
                watermark_of,
                transport=self._transport,
                in_flight=self._in_flight,
                runtime=runtime,
                logger=logger,
                is_fleet=settings.is_fleet,
                has_others=len(groups) > 1,
                one_page=one_page,
            )
            for group in groups
        ]

    @property
    def requests(self) -> int:
        """Requests sent so far, retries included."""
        return sum(group.limiter.requests for group in self.groups)

    @property
    def retries(self) -> int:
        """How many of them were retries."""
        return sum(group.limiter.retries for group in self.groups)

    @property
    def request_seconds(self) -> float:
        """How long they took, in total."""
        return sum(group.limiter.request_seconds for group in self.groups)

    @property
    def retry_wait_seconds(self) -> float:
        """Waits before retries, in total."""
        return sum(group.limiter.retry_wait_seconds for group in self.groups)

    def pages(
        self, idle: Callable[[], object] = lambda: None
    ) -> Generator[OrganizationRun, None, None]:
        """Each organization when it is opened, with each page that is to be written, and ended.

        `OrganizationRun.stage` tells which it is. A page counts as delivered when it was written:
        see `OrganizationRun.delivery`. If there are several organizations, the error of one is its
        `OrganizationRun.error`.

        Args:
            idle: called now and then while a page is waited for.

        Raises:
            ServiceError: the range of the only organization could not be read to its end.
            StoppedError: a signal asked the run to stop.
        """
        runtime, concurrency = self._runtime, self._concurrency
        plan: FleetPlan[OrganizationRun] = FleetPlan(self.groups, concurrency=concurrency)
        threads = concurrency if len(self.groups) == 1 else min(2 * concurrency, MOST_THREADS)
        workers = runtime.new_workers(plan, _fetch, runtime.stop, threads)
        try:
            with closing(workers.pages(idle)) as pages:
                for run, stage, page, error in pages:
                    self._tell_restarts(run)
                    if error is not None and not self._is_fleet:
                        raise error
                    run.stage, run.error = stage, error
                    if page is not None:
                        run.delivery.start(page)
                    del page  # so that the next page can take its place in memory
                    yield run
                    run.delivery.finish()
        finally:
            self._in_flight.close()
            self._transport.close()

    def _tell_restarts(self, run: OrganizationRun) -> None:
        while run.plan.restarted:
            run.logger.warning(
                "The service refused one of its own cursors, which may have expired: the window"
                " %s is requested again from where it was read to",
                run.plan.restarted.pop(),
            )


def _fetch(request: MemberRequest[OrganizationRun]) -> Page:
    _, window, cursor = request.request
    return request.member.client.fetch(window, cursor)


def _by_token(each: Iterable[Settings]) -> Iterable[list[Settings]]:
    groups: dict[tuple[str, str | None], list[Settings]] = {}
    for settings in each:
        token = settings.access_token, settings.access_token_file
        groups.setdefault(token, []).append(settings)
    return groups.values()
