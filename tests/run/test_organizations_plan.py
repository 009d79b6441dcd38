"""Which organization is requested next: each in turn, within bounds, and none waits for another."""

import random
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import service_error
from tap_audit_events.run.organizations_plan import (
    MAX_OPEN,
    OrganizationRequest,
)
from tests.extraction.planning.scheduling import ALL_PAY
from tests.run.members import (
    Group,
    a_plan,
    pages_of,
    read_to_end,
    requests_of,
)


def test_new_organizations_are_requested_first() -> None:
    """An organization with more pages gets the requests that new ones leave."""
    group = Group("a", [5, 1, 1])
    plan = a_plan(group)
    pages_of(plan)
    first, second = requests_of(plan)
    assert [first.member.name, second.member.name] == ["a0", "a1"]
    plan.accept(first, first.member.page())
    pages_of(plan)
    (third,) = requests_of(plan)
    assert third.member.name == "a2"
    plan.accept(second, second.member.page())
    plan.accept(third, third.member.page())
    pages_of(plan)
    assert {request.member.name for request in requests_of(plan)} == {"a0"}


def test_each_page_comes_in_order_and_then_the_end_of_its_organization() -> None:
    plan = a_plan(Group("a", [2]), concurrency=1)
    pages = pages_of(plan)
    while not plan.is_done:
        for request in requests_of(plan):
            plan.accept(request, request.member.page())
        pages += pages_of(plan)
    found = [(each.member.name, each.page and each.page.page.ids) for each in pages]
    assert found == [("a0", ["1"]), ("a0", ["2"]), ("a0", None)]


def test_an_organization_with_nothing_to_read_ends_without_a_request() -> None:
    """Its range may be empty, or its state unusable."""
    group = Group("a", [1, 1])
    group.unopened[0].has_requests = False
    plan = a_plan(group)
    assert [(each.member.name, each.page) for each in pages_of(plan)] == [("a0", None)]
    assert [request.member.name for request in requests_of(plan)] == ["a1"]


@pytest.mark.parametrize(("most", "requested"), [(1, 0), (3, 2), (8, 7), (9, 8), (ALL_PAY, 8)])
def test_ready_pages_count_if_they_arrive_faster_than_they_are_taken(
    most: int, requested: int
) -> None:
    """The pages of two organizations are ready, and eight others wait for their requests."""
    plan = a_plan(Group("a", [1] * 20), concurrency=8)
    pages_of(plan)
    first = list(islice(iter(lambda: plan.next_request(ALL_PAY), None), 2))
    pages_of(plan)
    for request in first:
        plan.accept(request, request.member.page())
    assert len(list(iter(lambda: plan.next_request(most), None))) == requested


def test_one_failure_ends_one_organization() -> None:
    """The error is reported at the end of its organization; the others continue."""
    group = Group("a", [1, 1])
    plan = a_plan(group)
    pages_of(plan)
    bad, good = requests_of(plan)
    error = service_error("AE-403")
    plan.fail(bad, error)
    plan.accept(good, good.member.page())
    ended = {each.member.name: each.member.error for each in pages_of(plan) if each.page is None}
    assert ended == {"a0": error, "a1": None}
    assert plan.is_done


def test_organizations_of_a_refused_token_get_no_request() -> None:
    """The organizations of other tokens are opened and read."""
    refused, other = Group("a", [1] * 50), Group("b", [1] * 50)
    plan = a_plan(refused, other)
    pages_of(plan)
    for request in requests_of(plan):
        if request.member.group is refused:
            plan.fail(request, service_error("AE-401"))
        else:
            plan.accept(request, request.member.page())
    pages_of(plan)
    read_to_end(plan)
    assert sum(member.sent for member in refused.opened) == 0
    assert plan.not_started_count == 49
    assert [each.sent for each in other.opened] == [1] * 50


@given(seed=st.integers(0, 10**6))
@settings(max_examples=100)
def test_every_organization_is_read_within_the_bounds(seed: int) -> None:
    """Responses arrive in any order, and any token may be held meanwhile."""
    rng = random.Random(seed)
    concurrency = rng.randint(1, 5)
    groups = [
        Group(name, [rng.choice([1, 1, 2, 6]) for _ in range(rng.randint(0, 12))])
        for name in "abc"[: rng.randint(0, 3)]
    ]
    plan = a_plan(*groups, concurrency=concurrency)
    in_flight: list[OrganizationRequest] = []
    ended: list[str] = []
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
        ended += [each.member.name for each in pages_of(plan) if each.page is None]
        opened = sum(len(group.opened) for group in groups)
        assert opened - len(ended) <= MAX_OPEN * concurrency
    else:
        raise AssertionError(f"not read: {in_flight}, {ended}")
    members = [member for group in groups for member in group.opened]
    assert sorted(ended) == sorted(member.name for member in members)
    assert not any(group.unopened for group in groups)
    for member in members:
        assert member.sent >= member.pages
