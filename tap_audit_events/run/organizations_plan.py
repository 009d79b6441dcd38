"""Chooses the next request and the next page for several organizations side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    CursorRefusedError,
    OrganizationsError,
)
from tap_audit_events.events.page import Page
from tap_audit_events.extraction.planning.window_reader import WindowPage, WindowRequest
from tap_audit_events.run.failures import Failures, GivenUp
from tap_audit_events.run.tokens import TokenGroup
from tap_audit_events.service.rate_limiter import RequestCounts

BYTES_HELD: Final = 60 * 1024 * 1024
BYTES_HELD_PER_REQUEST: Final = 4 * 1024 * 1024
"""Maximum number of bytes of the pages that are requested and not yet taken: the second for each
request that may be in flight, at least the first."""

MAX_OPEN: Final = 4
"""Maximum number of open organizations for each request that may be in flight. Organizations whose
requests wait do not count."""


Member: TypeAlias = Any
"""An `Organization`, or a search in one."""


class OrganizationRequest(NamedTuple):
    """A request for an organization."""

    member: Member
    request: WindowRequest


class OrganizationPage(NamedTuple):
    """The next page of an organization; None if it has ended."""

    member: Member
    page: WindowPage | None


class OrganizationsPlan:
    """Reads several organizations, each by its own plan.

    Organizations without a request yet come first: most have only one page. The others follow in
    the order in which they were opened. Each plan is told its share of the workers: if many
    organizations are open, it cuts no windows, because each costs a request. An organization whose
    first page was dense may be large: it is continued last, as soon as the others leave more than
    one request. If the pages of all organizations need too much memory, only those are requested
    that can be taken at once.

    It alone limits the requests that are handed out, to `concurrency`. Those that wait, for their
    retry or because of the limits of their token, do not count, so that others are sent meanwhile;
    if there are no others, one request waits.

    Attributes:
        failures: decides which organizations are given up.
    """

    def __init__(self, groups: Collection[TokenGroup], requests: RequestCounts) -> None:
        self.failures = Failures(groups)
        self._not_started: dict[str, tuple[str, str]] = {}
        self._errors: dict[str, Exception] = {}
        self._failed: set[str] = set()
        self._groups = deque(groups)
        self._has_several_tokens = any(group.has_others for group in groups)
        self._requests = requests
        self._concurrency = requests.limit
        self._unrequested: list[Member] = []
        self._open: list[Member] = []
        self._ended: deque[Member] = deque()

    @property
    def is_done(self) -> bool:
        """Whether every page of every organization was taken."""
        return not (self._groups or self._unrequested or self._open or self._ended)

    def next_request(self, most_in_flight: int) -> OrganizationRequest | None:
        """The next request to send, None if none should be sent now; see `Plan.next_request`.

        Args:
            most_in_flight: how many requests in flight gain time; if only one, no window is cut.
        """
        in_flight = sum(member.plan.in_flight for member in self._open)
        ready = 0
        if most_in_flight <= self._concurrency:
            ready = max(0, sum(member.plan.ready_pages for member in self._open) - 1)
        most = min(self._concurrency, most_in_flight - ready)
        free = most - max(0, in_flight - self._waiting)
        # A service that limits a token is not down.
        others = sum(each.plan.in_flight for each in self._open if not each.group.is_held)
        if free <= 0 or not self.failures.may_send(others):
            return None
        cuts = min(self._concurrency, most_in_flight) > 1
        found = self._next_request(free, lambda member: not member.group.is_held, cuts=cuts)
        if not (found or in_flight):
            found = self._next_request(free, lambda _: True, cuts=cuts)
        return found

    def _next_request(
        self, free: int, may_send: Callable[[Member], bool], *, cuts: bool
    ) -> OrganizationRequest | None:
        member = next(filter(may_send, self._unrequested), None)
        if member is not None:
            self._unrequested.remove(member)
            self._open.append(member)
            return OrganizationRequest(member, member.plan.next_request(1))
        most_bytes = max(BYTES_HELD, BYTES_HELD_PER_REQUEST * self._concurrency)
        has_room = sum(member.plan.bytes_held for member in self._open) < most_bytes
        able = list(filter(may_send, self._open))
        workers = max(1, self._concurrency // max(1, len(able)))
        large = [each for each in able if workers == 1 and each.plan.seems_large]
        for member in [*(each for each in able if each not in large), *large]:
            if member in large:  # the others cannot use the requests that are free
                if free == 1 and any(each.plan.in_flight for each in able):
                    return None
                workers = max(1, free // len(large))
            request = member.plan.next_request(workers if cuts else 0, has_room=has_room)
            if request is not None:
                return OrganizationRequest(member, request)
        return None

    def accept(self, request: OrganizationRequest, page: Page) -> None:
        self.failures.page(request.member.group)
        request.member.plan.accept(request.request, page)

    def fail(self, request: OrganizationRequest, error: Exception) -> None:
        request.member.plan.fail(request.request, error)
        if request.member.organization_id in self._failed:  # another of its windows has failed
            return
        if not isinstance(error, CursorRefusedError):
            self._failed.add(request.member.organization_id)
        given_up = self.failures.add(request.member.group, error)
        if given_up is not None:
            self._give_up(given_up)

    def next_page(self) -> OrganizationPage | None:
        """The next page or the end of any organization; None if there is neither yet."""
        self._open_more()
        for member in self._open:
            page = _next_page(member)
            if page is not None:
                return OrganizationPage(member, page)
            if member.error is not None or member.plan.is_done:
                self._open.remove(member)
                self._ended.append(member)
                break
        return self._end(self._ended.popleft()) if self._ended else None

    @property
    def not_started_count(self) -> int:
        """How many organizations were given up before a request for them was sent."""
        return len(self._not_started)

    def check_errors(self, organization_ids: Sequence[str]) -> None:
        """Raise `OrganizationsError` if some organizations were not read to their end.

        It names them in the given order. An error without a code, which is a defect, is raised
        unchanged.
        """
        errors: dict[str, AuditEventsError] = {}
        for name in organization_ids:
            error = self._errors.get(name)
            if isinstance(error, AuditEventsError):
                errors[name] = error
            elif error is not None:
                raise error
        if errors:
            count = len(organization_ids)
            raise OrganizationsError(errors, count, not_started=self._not_started)

    def _end(self, member: Member) -> OrganizationPage:
        """The end of an organization, whose error is kept."""
        if isinstance(member.error, AuditEventsError):
            member.error.without_frames()
        if member.error is not None:
            self._errors[member.organization_id] = member.error
        return OrganizationPage(member, None)

    @property
    def _waiting(self) -> int:
        """Requests that wait, while others can be sent in their place."""
        requests = self._requests
        return requests.paused + (requests.waiting if self._has_several_tokens else 0)

    def _give_up(self, given_up: GivenUp) -> None:
        """Request no other organization of these groups; the others are read to their end."""
        groups, error, reason = given_up
        dropped = [member for member in self._unrequested if member.group in groups]
        ids = [member.organization_id for member in dropped]
        ids += [each for group in groups for each in group.give_up()]
        self._not_started.update(dict.fromkeys(ids, (error.code, reason)))
        self._unrequested = [each for each in self._unrequested if each not in dropped]

    def _open_more(self) -> None:
        """Open organizations ahead of the requests for them, one of each group in turn."""
        held = 0  # groups in a row
        while held < len(self._groups):
            can_send = sum(not member.group.is_held for member in self._unrequested)
            open_count = len(self._unrequested) + len(self._open)
            most_open = MAX_OPEN * self._concurrency + self._waiting
            if can_send >= self._concurrency or open_count >= most_open:
                return
            group = self._groups.popleft()
            if group.is_held and open_count:
                self._groups.append(group)
                held += 1
            elif group.unopened:
                self._groups.append(group)
                held = 0
                self._open_next(group.unopened)

    def _open_next(self, unopened: deque[Member]) -> None:
        member = unopened.popleft()
        member.open(is_impatient=self.failures.is_impatient)
        (self._unrequested if member.has_requests else self._ended).append(member)


def _next_page(member: Member) -> Any:
    """The next page of an organization, None if none is ready. An error ends only this one."""
    if member.error is None:
        try:
            return member.plan.next_page()
        except Exception as error:  # noqa: BLE001 - of any kind
            member.error = error
    return None
