"""Organizations whose requests have to wait do not keep others waiting."""

import pytest

from tap_audit_events.run import organizations_plan
from tap_audit_events.run.organizations_plan import OrganizationRequest
from tests.run.members import EVENT, Group, Member, a_plan, pages_of, requests_of


def with_room_for(most_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(organizations_plan, "BYTES_HELD", most_bytes)
    monkeypatch.setattr(organizations_plan, "BYTES_HELD_PER_REQUEST", 0)


def test_pages_that_are_not_taken_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the target is slow, no more is requested; every page is read once it takes them."""
    most_bytes = 12 * len(EVENT)
    with_room_for(most_bytes, monkeypatch)
    plan = a_plan(Group("a", [100]), concurrency=4)
    taken = 0
    while not plan.is_done:
        pages = pages_of(plan)
        while requests := requests_of(plan):
            for request in requests:
                plan.accept(request, request.member.page())
                assert request.member.plan.bytes_held <= most_bytes + 4 * 2 * len(EVENT)
        taken += sum(each.page is not None for each in pages)
    assert taken >= 100


def test_organizations_that_wait_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many tokens are limited one after the other; later all organizations are read completely."""
    most_bytes = 12 * len(EVENT)
    with_room_for(most_bytes, monkeypatch)
    groups = [Group(name, [40]) for name in "abcdefghij"]
    plan = a_plan(*groups, concurrency=8, waiting=8)
    pages_of(plan)
    first: dict[Member, OrganizationRequest] = {}
    for group in groups:
        for _ in range(20):
            for request in requests_of(plan):
                if request.member.sent and request.member not in first:
                    first[request.member] = request  # it waits, and so do later ones
                else:
                    plan.accept(request, request.member.page())
            pages_of(plan)
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
        pages_of(plan)


def test_a_held_group_does_not_keep_others_waiting() -> None:
    """While there are others, none of its organizations is opened or requested."""
    limited, other = Group("a", [1] * 9), Group("b", [1] * 9)
    plan = a_plan(limited, other)
    pages_of(plan)
    limited.is_held = True
    opened = len(limited.opened)
    names: list[str] = []
    while len(names) < 9:
        batch = requests_of(plan)
        assert batch, names
        for request in batch:
            names.append(request.member.name)
            plan.accept(request, request.member.page())
        pages_of(plan)
    assert set(names) == {f"b{n}" for n in range(9)}
    assert len(limited.opened) == opened


def test_organizations_that_are_held_do_not_keep_others_from_being_opened() -> None:
    """Any number of held organizations may be open already."""
    limited, other = [Group(name, [1]) for name in "ab"], Group("c", [1])
    plan = a_plan(*limited, other)
    pages_of(plan)
    for group in limited:
        group.is_held = True
    pages_of(plan)
    assert [request.member.name for request in requests_of(plan)] == ["c0"]


def test_if_all_are_held_one_request_waits() -> None:
    """Otherwise the end of the wait would not be noticed."""
    group = Group("a", [1] * 5)
    group.is_held = True
    plan = a_plan(group, concurrency=4)
    pages_of(plan)
    assert len(requests_of(plan)) == 1


@pytest.mark.parametrize("waiting", [0, 2, 8])
def test_requests_that_wait_leave_their_place_to_others(waiting: int) -> None:
    """For each request that waits for a retry or a rate limit, one more organization is opened."""
    plan = a_plan(Group("a", [1] * 20), waiting=waiting)
    pages_of(plan)
    sent: list[OrganizationRequest] = []
    while batch := requests_of(plan):
        sent += batch
        pages_of(plan)
    assert len(sent) == 2 + waiting


def test_tokens_that_are_limited_from_the_start_do_not_keep_others_waiting() -> None:
    """No page has arrived yet, but a service that limits a token is not down."""
    groups = [Group(name, [1]) for name in "abcdefghijklmnopqrst"]
    plan = a_plan(*groups)
    sent = 0
    pages_of(plan)
    while batch := requests_of(plan):
        for request in batch:
            request.member.group.is_held = True
            plan._requests.waiting += 1
            sent += 1
        pages_of(plan)
    assert sent == len(groups)


def test_an_organization_that_is_held_gets_no_further_page() -> None:
    """Its other windows wait, while those of another token are requested."""
    limited, other = Group("a", [50]), Group("b", [50])
    plan = a_plan(limited, other, concurrency=4)
    pages_of(plan)
    for request in requests_of(plan):
        plan.accept(request, request.member.page())
    pages_of(plan)
    limited.is_held = True
    assert {request.member.name for request in requests_of(plan)} == {"b0"}


def test_without_room_an_organization_without_pages_gets_one_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pages that fill the room belong to another organization, and may be taken much later."""
    plan = a_plan(Group("a", [50, 50]), concurrency=8)
    pages_of(plan)
    for request in requests_of(plan):
        plan.accept(request, request.member.page())
    pages_of(plan)
    with_room_for(0, monkeypatch)
    assert [request.member.name for request in requests_of(plan)] == ["a0", "a1"]
