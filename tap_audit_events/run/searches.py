"""Sends a few requests for each organization, to several organizations side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator
from contextlib import closing
from dataclasses import dataclass
from logging import Logger
from typing import Any, Generic, TypeVar

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    OrganizationsError,
    ServiceError,
)
from tap_audit_events.run.failures import Failures
from tap_audit_events.run.organization import TokenGroup, organization_logger, token_groups
from tap_audit_events.run.runtime import MAX_THREADS, Runtime
from tap_audit_events.service.client import Client
from tap_audit_events.service.rate_limiter import RunRequests

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
    wakeups = runtime.stop.wakeups
    requests = RunRequests(settings.concurrency, lambda: wakeups.put(None))
    transport = runtime.new_transport(settings.base_url)

    def open_search(each: Settings, group: TokenGroup) -> _Search[_Found]:
        own_logger = organization_logger(logger, each)
        authenticator = group.authenticator(each, logger)
        return _Search(Client(each, transport, authenticator, group.limiter, own_logger), group)

    def call(opened: _Search[_Found]) -> _Found:
        return search(opened.client)

    groups = token_groups(settings, open_search, requests, runtime)
    plan: _Plan[_Found] = _Plan(groups, requests)
    threads = MAX_THREADS if settings.organizations else 1
    workers = runtime.new_workers(plan, call, runtime.stop, threads)
    try:
        with closing(workers.pages(lambda: None)) as searches:
            for each in searches:
                if each.error is None:
                    yield each.client, each.found
                elif not settings.organizations:
                    raise each.error
    finally:
        requests.close()
        transport.close()
    if plan.errors:
        order = [each.organization_id for each in settings.organizations]
        errors = {name: plan.errors[name] for name in order if name in plan.errors}
        raise OrganizationsError(errors, len(order), not_started=plan.not_started)


@dataclass(eq=False)
class _Search(Generic[_Found]):
    """The search in one organization; once it has ended, it has a result or an error."""

    client: Client
    group: TokenGroup
    found: Any = None
    error: ServiceError | None = None


class _Plan(Generic[_Found]):
    """Chooses the organization to search next; what the workers need of a plan.

    Attributes:
        errors: why searches failed, by organization.
        not_started: the organizations that were given up: the code of the error that led to it, and
            why.
    """

    def __init__(self, groups: Collection[TokenGroup], requests: RunRequests) -> None:
        self.errors: dict[str, AuditEventsError] = {}
        self.not_started: dict[str, tuple[str, str]] = {}
        self._groups = deque(groups)
        self._requests = requests
        self._has_several_tokens = any(group.has_others for group in groups)
        self._failures = Failures(groups)
        self._in_flight = 0
        self._ended: deque[_Search[_Found]] = deque()
        self._defect: Exception | None = None

    @property
    def is_done(self) -> bool:
        return not (self._groups or self._in_flight or self._ended)

    def next_request(self, most_in_flight: int) -> Any:
        """The next search to start, None if none should be started now."""
        del most_in_flight  # whoever takes the results is not slow
        if self._in_flight - self._waiting >= self._requests.limit:
            return None
        if not self._failures.may_send(self._in_flight):
            return None
        for _ in range(len(self._groups)):
            group = self._groups.popleft()
            if group.is_held and self._in_flight:
                self._groups.append(group)
            elif (search := group.open_next()) is not None:
                self._groups.append(group)
                self._in_flight += 1
                return search
        return None

    def accept(self, search: _Search[_Found], found: _Found) -> None:
        search.found = found
        self._failures.page(search.group)
        self._end(search)

    def fail(self, search: _Search[_Found], error: Exception) -> None:
        if not isinstance(error, ServiceError):
            self._defect = error
            return
        search.error = error
        self.errors[search.client.settings.organization_id] = error.without_frames()
        given_up = self._failures.add(search.group, error)
        if given_up is not None:
            for group in given_up.tokens:
                reason = error.code, given_up.reason
                self.not_started.update(dict.fromkeys(group.give_up(), reason))
        self._end(search)

    def next_page(self) -> _Search[_Found] | None:
        """A search that has ended, None if there is none."""
        if self._defect is not None:
            raise self._defect
        return self._ended.popleft() if self._ended else None

    @property
    def _waiting(self) -> int:
        """Searches that wait, while others can be started in their place."""
        requests = self._requests
        return requests.paused + (requests.waiting if self._has_several_tokens else 0)

    def _end(self, search: _Search[_Found]) -> None:
        self._in_flight -= 1
        self._ended.append(search)
