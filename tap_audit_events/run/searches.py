"""Sends a few requests for each organization, to several organizations side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing
from logging import Logger
from typing import Any, TypeVar

from tap_audit_events.config.settings import Settings
from tap_audit_events.run.organizations_plan import OrganizationRequest, OrganizationsPlan
from tap_audit_events.run.runtime import MAX_THREADS, Runtime
from tap_audit_events.run.tokens import TokenGroup, token_groups
from tap_audit_events.service.client import Client
from tap_audit_events.service.rate_limiter import RequestCounts

_Found = TypeVar("_Found")


def search_each(
    settings: Settings, search: Callable[[Client], _Found], *, runtime: Runtime, logger: Logger
) -> Generator[tuple[Client, _Found], None, None]:
    """Call `search` for each organization, and yield what it found as soon as it has ended.

    It is called in threads, so that a signal ends the wait for it. As in a run, at most
    `concurrency` requests are in flight, and organizations are given up if the service fails for
    many others.

    Raises:
        ServiceError: the search failed for the only organization.
        OrganizationsError: it failed for some of several; raised after the others were yielded.
        StoppedError: a signal asked the run to stop.
    """

    def call(request: OrganizationRequest) -> tuple[_Found]:
        return (search(request.member.client),)

    wakeups = runtime.stop.wakeups
    requests = RequestCounts(settings.concurrency, lambda: wakeups.put(None))
    transport = runtime.new_transport(settings.base_url)
    groups = token_groups(settings, requests, transport, runtime=runtime, logger=logger)
    for group in groups:
        group.unopened = deque(_Search(each, group) for each in group.organizations)
    plan = _SearchPlan(groups, requests)
    threads = MAX_THREADS if settings.organizations else 1
    workers = runtime.new_workers(plan, call, runtime.stop, threads)
    try:
        with closing(workers.pages()) as pages:
            for each in filter(None, pages):
                if each.page is not None:
                    yield each.member.client, each.page[0]
                elif each.member.error is not None and not settings.organizations:
                    raise each.member.error
    finally:
        requests.close()
        transport.close()
    plan.check_errors([each.organization_id for each in settings.each()])


class _SearchPlan(OrganizationsPlan):
    def next_request(self, most_in_flight: int) -> OrganizationRequest | None:
        """As in a run, but whoever takes the results is not slow."""
        return super().next_request(most_in_flight + self._concurrency)


class _Search:
    """The search in one organization, which is its own plan: one request, whose page it finds."""

    error: Exception | None = None
    has_requests = True
    seems_large = False
    in_flight = ready_pages = bytes_held = 0

    def __init__(self, settings: Settings, group: TokenGroup) -> None:
        self.group = group
        self.organization_id = settings.organization_id
        self.client = group.client(settings)
        self.plan = self
        self._is_requested = False
        self._outcome: Any = None

    @property
    def is_done(self) -> bool:
        return self._is_requested and not self.in_flight and self._outcome is None

    def open(self, *, is_impatient: bool) -> None:
        """Do nothing: few requests are sent, so each is retried as often as the settings say."""

    def next_request(self, workers: int, *, has_room: bool = True) -> Any:
        del workers, has_room
        if self._is_requested:
            return None
        self._is_requested, self.in_flight = True, 1
        return self

    def accept(self, _: object, found: tuple[Any]) -> None:
        self.in_flight, self._outcome = 0, found

    def fail(self, _: object, error: Exception) -> None:
        self.in_flight, self._outcome = 0, error

    def next_page(self) -> Any:
        """What was found, once."""
        outcome, self._outcome = self._outcome, None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome
