"""One run: reads the new events of its organizations, a page at a time.

Singer, Airbyte, the command line and the Python API advance its loop; it imports none of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping
from contextlib import closing
from logging import Logger
from pathlib import Path

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import ServiceError, sanitize
from tap_audit_events.events.page import Page
from tap_audit_events.extraction.planning.window_reader import WindowPage
from tap_audit_events.run.new_events import NewEvents
from tap_audit_events.run.organization import GivenState, Organization
from tap_audit_events.run.organizations_plan import OrganizationRequest, OrganizationsPlan
from tap_audit_events.run.quarantine import QuarantinedEvent
from tap_audit_events.run.runtime import MAX_THREADS, Runtime
from tap_audit_events.run.tokens import token_groups
from tap_audit_events.service.rate_limiter import RequestCounts


class Run:
    """Reads the organizations of the settings side by side.

    Args:
        states: what earlier runs left for each organization, by its id; nothing for a first run.
        counts_coverage: whether what is delivered is counted for coverage records.

    Raises:
        AuditEventsError: the file of the setting `quarantine_file` cannot be opened.

    Attributes:
        settings: what is read, and how.
        requests: the requests sent so far.
        only: the only organization; None if the setting `organizations` is set.
        organization_count: how many organizations there are.
    """

    def __init__(
        self,
        settings: Settings,
        states: Mapping[str, GivenState],
        *,
        runtime: Runtime,
        logger: Logger,
        counts_coverage: bool = False,
    ) -> None:
        self.settings = settings
        self._runtime = runtime
        self._logger = logger
        self._quarantine = None
        self._quarantined = self._quarantined_before = 0
        if settings.quarantine_file is not None:
            path = Path(settings.quarantine_file)
            self._quarantine = runtime.new_quarantine(path, now=runtime.now)
        wakeups = runtime.stop.wakeups
        self.requests = RequestCounts(settings.concurrency, lambda: wakeups.put(None))
        self._transport = runtime.new_transport(settings.base_url)
        groups = token_groups(
            settings, self.requests, self._transport, runtime=runtime, logger=logger
        )
        for group in groups:
            group.unopened = deque(
                Organization(
                    each,
                    states.get(each.organization_id, {}),
                    group=group,
                    runtime=runtime,
                    counts_coverage=counts_coverage,
                )
                for each in group.organizations
            )
        self.organization_count = sum(len(group.organizations) for group in groups)
        self.only = None if settings.organizations else groups[0].unopened[0]
        self._plan = OrganizationsPlan(groups, self.requests)

    @property
    def not_started_count(self) -> int:
        """How many organizations were given up before a request for them was sent."""
        return self._plan.not_started_count

    def pages(self) -> Generator[NewEvents | None, None, None]:
        """Yield the new events of each page, and None now and then while no page arrives.

        Each organization ends with a page of its own: see `NewEvents.is_last`. With several
        organizations, the error of one ends only that one: see `Organization.error`.

        Raises:
            ServiceError: the range of the only organization could not be read to its end.
            SettingsError: the state of the only organization cannot be used.
            StoppedError: a signal asked the run to stop.
            AuditEventsError: the file of the setting `quarantine_file` cannot be written.
        """
        runtime, settings = self._runtime, self.settings
        threads = MAX_THREADS if settings.organizations else settings.concurrency
        workers = runtime.new_workers(self._plan, _fetch, runtime.stop, threads)
        try:
            with closing(workers.pages()) as pages:
                for found in pages:
                    events = None if found is None else self._new_events(*found)
                    del found  # so that the next page can take its place in memory
                    yield events
                    if events is not None:
                        events.release()
        finally:
            self.requests.close()
            self._transport.close()
            self._log_quarantined()

    def check_errors(self) -> None:
        """Raise `OrganizationsError` if some organizations were not read to their end."""
        self._plan.check_errors([each.organization_id for each in self.settings.each()])

    def _new_events(self, organization: Organization, page: WindowPage | None) -> NewEvents | None:
        """The events of a page to write; None if a window lacks an event: see `Delivery.choose`."""
        organization.log_restarts()
        if page is not None and page.page.unusable:
            self._set_aside(organization, page)
        try:
            if page is None and organization.error is not None:
                organization.fail(organization.error)
            return NewEvents(organization, page)
        except ServiceError as error:
            organization.fail(error)
            return None

    def _set_aside(self, organization: Organization, read: WindowPage) -> None:
        """Append the unusable events of a page to the file, before any state covers the page."""
        if self._quarantine is None:
            return
        added = self._quarantine.add(
            QuarantinedEvent(
                organization_id=organization.organization_id,
                text=text,
                code=error.code,
                reason=error.details,
                window=str(read.window),
                position=position + 1,
            )
            for position, text, error in read.page.unusable
        )
        if added.appended and not self._quarantined:
            organization.logger.warning(
                "%s. It is set aside, and the run continues", read.page.unusable[0].error.summary
            )
        self._quarantined += added.appended
        self._quarantined_before += added.known

    def _log_quarantined(self) -> None:
        count = self._quarantined + self._quarantined_before
        if count and self._quarantine is not None:
            said = "1 event cannot be used and is not delivered: it is"
            before = " since an earlier run"
            if count > 1:
                said = f"{count} events cannot be used and are not delivered: they are"
                before = f" {self._quarantined_before} of them{before}"
            path = sanitize(self._quarantine.path)
            self._logger.warning(
                "%s in %s%s", said, path, f",{before}" if self._quarantined_before else ""
            )


def _fetch(request: OrganizationRequest) -> Page:
    organization: Organization = request.member
    return organization.client.fetch(request.request.window, request.request.cursor)
