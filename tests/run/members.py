"""Organizations with pages of one event each, and a plan for them."""

from collections import deque
from collections.abc import Iterable
from typing import Any, cast

from tap_audit_events.events.page import Page, parse_page
from tap_audit_events.extraction.planning.plan import Plan
from tap_audit_events.run.organizations_plan import (
    OrganizationPage,
    OrganizationRequest,
    OrganizationsPlan,
)
from tap_audit_events.service.rate_limiter import RequestCounts
from tests.extraction.planning.scheduling import ALL_PAY, EVER

EVENT = b'{"id":"%d","occurredAt":"2026-01-01T00:%02d:%02dZ"}'


class Member:
    """An organization with so many pages of one event each."""

    def __init__(self, name: str, pages: int, group: "Group") -> None:
        self.name = name
        self.pages = pages
        self.plan = Plan(EVER, page_size=1)
        self.error: Exception | None = None
        self.has_requests = True
        self.sent = 0
        self.group = group

    def open(self, *, is_impatient: bool) -> None:
        self.group.opened.append(self)

    @property
    def organization_id(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    def page(self) -> Page:
        """Its next page, which has a cursor unless it is the last one."""
        self.sent += 1
        event = EVENT % (self.sent, self.sent // 60, self.sent % 60)
        cursor = b',"nextCursor":"%d"' % self.sent if self.sent < self.pages else b""
        return parse_page(b'{"auditEvents":[%b]%b}' % (event, cursor))


class Group:
    """Organizations with one token."""

    has_others = True

    def __init__(self, name: str, pages: Iterable[int]) -> None:
        self.is_held = False
        self.opened: list[Member] = []
        self.unopened = deque(Member(f"{name}{n}", count, self) for n, count in enumerate(pages))

    def give_up(self) -> list[str]:
        names = [member.name for member in self.unopened]
        self.unopened.clear()
        return names


def a_plan(*groups: Group, concurrency: int = 2, waiting: int = 0) -> OrganizationsPlan:
    requests = RequestCounts(concurrency)
    requests.waiting = waiting
    return OrganizationsPlan(cast("Any", groups), requests)


def requests_of(plan: OrganizationsPlan) -> list[OrganizationRequest]:
    """All requests that can be sent now."""
    found = []
    while (request := plan.next_request(ALL_PAY)) is not None:
        found.append(request)
    return found


def pages_of(plan: OrganizationsPlan) -> list[OrganizationPage]:
    """All pages and ends that are ready now."""
    found = []
    while (page := plan.next_page()) is not None:
        found.append(page)
    return found


def read_to_end(plan: OrganizationsPlan) -> None:
    """Send every request that is due and accept a page for it, until the plan is done."""
    while not plan.is_done:
        for request in requests_of(plan):
            plan.accept(request, request.member.page())
        pages_of(plan)
