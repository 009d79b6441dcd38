"""Which organization is requested next: fair, bounded, and no one waits for another."""

import random
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import service_error
from tap_audit_events.events.page import Page, parse_page
from tap_audit_events.extraction.planning.organizations_plan import (
    MAX_OPEN,
    MemberRequest,
    OrganizationsPlan,
    Stage,
)
from tap_audit_events.extraction.planning.plan import Plan
from tests.extraction.planning.scheduling import ALL_PAY, EVER

EVENT = b'{"id":"%d","occurredAt":"2026-01-01T00:%02d:%02dZ"}'


class Member:
    """An organization with so many pages of one event each."""

    def __init__(self, name: str, pages: int, group: "Group", concurrency: int) -> None:
        self.name = name
        self.pages = pages
        self.plan = Plan(EVER, page_size=1, concurrency=concurrency)
        self.error: Exception | None = None
        self.has_requests = True
        self.sent = 0
        self.group = group

    def __repr__(self) -> str:
        return self.name

    def page(self) -> Page:
        """Its next page. It has a cursor unless it is the last one."""
        self.sent += 1
        event = EVENT % (self.sent, self.sent // 60, self.sent % 60)
        cursor = b',"nextCursor":"%d"' % self.sent if self.sent < self.pages else b""
        return parse_page(b'{"auditEvents":[%b]%b}' % (event, cursor))


class Group:
    """Organizations with one token."""

    def __init__(self, name: str, pages: Iterable[int], concurrency: int) -> None:
        self.is_held = False
        self.opened: list[Member] = []
        self._members = deque(
            Member(f"{name}{n}", count, self, concurrency) for n, count in enumerate(pages)
        )

    def open_next(self) -> Member | None:
        if not self._members:
            return None
        self.opened.append(self._members.popleft())
        return self.opened[-1]


def a_plan(*groups: Group, concurrency: int = 2, waiting: int = 0) -> OrganizationsPlan:
    return OrganizationsPlan(groups, concurrency=concurrency, waiting=lambda: waiting)


def requests_of(plan: OrganizationsPlan) -> list[MemberRequest]:
    """All requests that can be sent now."""
    found = []
    while (request := plan.next_request(ALL_PAY)) is not None:
        found.append(request)
    return found


def news_of(plan: OrganizationsPlan) -> list[Any]:
    """All news that there is now."""
    found = []
    while (news := plan.next_page()) is not None:
        found.append(news)
    return found


def test_new_organizations_come_first() -> None:
    """One that has more pages gets what they leave."""
    group = Group("a", [5, 1, 1], 2)
    plan = a_plan(group)
    news_of(plan)
    first, second = requests_of(plan)
    assert [first.member.name, second.member.name] == ["a0", "a1"]
    plan.accept(first, first.member.page())
    news_of(plan)
    (third,) = requests_of(plan)
    assert third.member.name == "a2"
    plan.accept(second, second.member.page())
    plan.accept(third, third.member.page())
    news_of(plan)
    assert {request.member.name for request in requests_of(plan)} == {"a0"}


def test_organizations_that_wait_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tokens are limited one after the other; afterwards all are read to their end."""
    most_bytes = 12 * len(EVENT)
    for module in ("plan", "organizations_plan"):
        monkeypatch.setattr(f"tap_audit_events.extraction.planning.{module}.BYTES_HELD", most_bytes)
    groups = [Group(name, [40], 8) for name in "abcdefghij"]
    plan = a_plan(*groups, concurrency=8, waiting=8)
    news_of(plan)
    first: dict[Member, MemberRequest] = {}
    for group in groups:
        for _ in range(20):
            for request in requests_of(plan):
                if request.member.sent and request.member not in first:
                    first[request.member] = request  # it waits, and all that follows
                else:
                    plan.accept(request, request.member.page())
            news_of(plan)
        group.is_held = True
    members = [member for group in groups for member in group.opened]
    assert sum(member.plan.bytes_held for member in members) <= 4 * most_bytes
    for group in groups:
        group.is_held = False
    due = list(first.values())
    while not plan.is_done:
        for request in [*due, *requests_of(plan)]:
            plan.accept(request, request.member.page())
        due = []
        news_of(plan)


def test_a_group_that_is_held_is_opened_later() -> None:
    """While others are open, it waits; none of its organizations is left out."""
    others, held = Group("a", [1], 2), Group("b", [1, 1], 2)
    held.is_held = True
    plan = a_plan(others, held)
    news_of(plan)
    assert held.opened == []
    held.is_held = False
    while not plan.is_done:
        for request in requests_of(plan):
            plan.accept(request, request.member.page())
        news_of(plan)
    assert [(member.name, member.sent) for member in held.opened] == [("b0", 1), ("b1", 1)]


def test_the_oldest_gets_the_rest() -> None:
    """Of two that have more pages, the younger one holds at most a page."""
    group = Group("a", [50, 50], 8)
    plan = a_plan(group, concurrency=8)
    news_of(plan)
    for request in requests_of(plan):
        plan.accept(request, request.member.page())
    counts = {"a0": 0, "a1": 0}
    for _ in range(20):
        for request in requests_of(plan):
            counts[request.member.name] += 1
            plan.accept(request, request.member.page())
        younger = group.opened[1].plan
        assert younger.in_flight + younger.ready_pages <= 1
        if plan.next_page() is None:
            break
    assert counts["a0"] > 2 * counts["a1"]


@pytest.mark.parametrize("most", [1, 2])
def test_one_that_is_alone_gets_as_many_requests_as_gain_time(most: int) -> None:
    """Its own requests in flight count once."""
    plan = a_plan(Group("a", [50], 4), concurrency=4)
    news_of(plan)
    (first,) = requests_of(plan)
    plan.accept(first, first.member.page())
    news_of(plan)
    assert len(list(iter(lambda: plan.next_request(most), None))) == most


def test_each_of_several_is_read_in_windows() -> None:
    """So that the younger one can be read in parallel once it is the oldest."""
    plan = a_plan(Group("a", [50, 50], 4), concurrency=4)
    news_of(plan)
    for request in requests_of(plan):
        plan.accept(request, request.member.page())
    news_of(plan)
    second = requests_of(plan)
    assert {request.member.name for request in second} == {"a0", "a1"}
    assert all(request.request.window.until is not None for request in second)


@pytest.mark.parametrize(("most", "requested"), [(1, 0), (3, 2), (8, 7), (9, 8), (ALL_PAY, 8)])
def test_ready_pages_count_if_they_come_faster_than_they_are_taken(
    most: int, requested: int
) -> None:
    """The pages of two organizations are ready, and eight others wait for their requests."""
    plan = a_plan(Group("a", [1] * 20, 8), concurrency=8)
    news_of(plan)
    first = list(islice(iter(lambda: plan.next_request(ALL_PAY), None), 2))
    news_of(plan)
    for request in first:
        plan.accept(request, request.member.page())
    assert len(list(iter(lambda: plan.next_request(most), None))) == requested


def test_a_held_group_does_not_keep_others_waiting() -> None:
    """Nothing is requested of it, and none of it is opened, as long as there are others."""
    limited, other = Group("a", [1] * 9, 2), Group("b", [1] * 9, 2)
    plan = a_plan(limited, other)
    news_of(plan)
    limited.is_held = True
    opened = len(limited.opened)
    names: list[str] = []
    while len(names) < 9:
        batch = requests_of(plan)
        assert batch, names
        for request in batch:
            names.append(request.member.name)
            plan.accept(request, request.member.page())
        news_of(plan)
    assert set(names) == {f"b{n}" for n in range(9)}
    assert len(limited.opened) == opened


def test_organizations_that_are_held_do_not_keep_others_from_being_opened() -> None:
    """However many of them are open already."""
    limited, other = [Group(name, [1], 2) for name in "ab"], Group("c", [1], 2)
    plan = a_plan(*limited, other)
    news_of(plan)
    for group in limited:
        group.is_held = True
    news_of(plan)
    assert [request.member.name for request in requests_of(plan)] == ["c0"]


def test_if_all_are_held_one_request_waits() -> None:
    """Otherwise nobody would notice that the wait is over."""
    group = Group("a", [1] * 5, 4)
    group.is_held = True
    plan = a_plan(group, concurrency=4)
    news_of(plan)
    assert len(requests_of(plan)) == 1


def test_requests_that_wait_leave_their_place_to_others() -> None:
    """For their retry, or for the service's rate limit."""
    plan = a_plan(Group("a", [1] * 9, 2), waiting=0)
    news_of(plan)
    assert len(requests_of(plan)) == 2
    plan = a_plan(Group("a", [1] * 9, 2), waiting=2)
    news_of(plan)
    first = requests_of(plan)
    news_of(plan)
    assert len(first + requests_of(plan)) == 4


def test_one_failure_ends_one_organization() -> None:
    """The error comes with the end; the others continue."""
    group = Group("a", [1, 1], 2)
    plan = a_plan(group)
    news_of(plan)
    bad, good = requests_of(plan)
    error = service_error("AE-403")
    plan.fail(bad, error)
    plan.accept(good, good.member.page())
    ended = {
        news.member.name: news.member.error for news in news_of(plan) if news.stage is Stage.ENDED
    }
    assert ended == {"a0": error, "a1": None}
    assert plan.is_done


def read_to_end(plan: OrganizationsPlan) -> None:
    """Send every request that is due, until nothing is left; each brings a page."""
    while not plan.is_done:
        for request in requests_of(plan):
            plan.accept(request, request.member.page())
        news_of(plan)


def test_after_giving_up_no_other_is_opened() -> None:
    """Those that are open may be well: they are read to their end."""
    group = Group("a", [1] * 50, 2)
    plan = a_plan(group)
    news_of(plan)
    opened = list(group.opened)
    plan.give_up([group])
    read_to_end(plan)
    assert group.opened == opened
    assert [(each.sent, each.error) for each in opened] == [(1, None)] * len(opened)


def test_only_the_groups_that_are_given_up_end() -> None:
    """The organizations of other tokens are opened, and read."""
    given_up, other = Group("a", [1] * 50, 2), Group("b", [1] * 50, 2)
    plan = a_plan(given_up, other)
    news_of(plan)
    opened = len(given_up.opened)
    plan.give_up([given_up])
    read_to_end(plan)
    assert len(given_up.opened) == opened < 50
    assert [each.sent for each in other.opened] == [1] * 50


@given(seed=st.integers(0, 10**6))
@settings(max_examples=100)
def test_everyone_is_read_within_the_bounds(seed: int) -> None:
    """Whatever comes when, and whichever token is held meanwhile."""
    rng = random.Random(seed)
    concurrency = rng.randint(1, 5)
    groups = [
        Group(name, [rng.choice([1, 1, 2, 6]) for _ in range(rng.randint(0, 12))], concurrency)
        for name in "abc"[: rng.randint(0, 3)]
    ]
    plan = OrganizationsPlan(groups, concurrency=concurrency)
    in_flight: list[MemberRequest] = []
    stages: dict[str, list[Stage]] = {}
    for _ in range(500):
        for group in groups:
            group.is_held = rng.random() < 0.1
        if plan.is_done:
            break
        in_flight += requests_of(plan)
        assert len(in_flight) <= concurrency
        if in_flight and rng.random() < 0.8:
            request = in_flight.pop(rng.randrange(len(in_flight)))
            plan.accept(request, request.member.page())
        for news in news_of(plan):
            stages.setdefault(news.member.name, []).append(news.stage)
        is_open = [name for name, each in stages.items() if each[-1] is not Stage.ENDED]
        assert len(is_open) <= MAX_OPEN * concurrency
    else:
        raise AssertionError(f"not read: {in_flight}, {stages}")
    members = [member for group in groups for member in group.opened]
    assert set(stages) == {member.name for member in members}
    for each in stages.values():
        assert each[0] is Stage.OPENED
        assert each[-1] is Stage.ENDED
        assert each.count(Stage.OPENED) == each.count(Stage.ENDED) == 1
    for member in members:
        assert member.sent >= member.pages


def test_one_whose_page_cannot_be_delivered_ends_alone() -> None:
    """With its error; its other pages are not delivered."""
    plan = a_plan(Group("a", [2, 2], 2))
    news_of(plan)
    bad, good = requests_of(plan)
    plan.accept(bad, bad.member.page())
    (page,) = news_of(plan)
    assert page.member is bad.member
    error = service_error("AE-NESTING")
    bad.member.error = error
    (ended,) = news_of(plan)
    assert (ended.member, ended.stage) == (bad.member, Stage.ENDED)
    assert bad.member.error is error
    plan.accept(good, good.member.page())
    assert [news.member for news in news_of(plan)] == [good.member]
