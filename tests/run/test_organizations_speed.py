"""How fast a plan reads several organizations: a second is the time of one response."""

import heapq
from collections import deque
from typing import Any, cast

import pytest

from tap_audit_events.events.instants import Instant
from tap_audit_events.run.organizations_plan import (
    OrganizationRequest,
    OrganizationsPlan,
)
from tap_audit_events.service.rate_limiter import RequestCounts
from tests.extraction.planning.scheduling import Play, pages_needed
from tests.extraction.planning.shapes import Shape, drawn, office_hours, old_tail
from tests.run.members import requests_of

PAGE_SIZE = 100


class PlayedMember:
    """An organization whose service is played."""

    error: Exception | None = None
    has_requests = True

    def __init__(self, instants: list[Instant], group: "PlayedGroup") -> None:
        self.group = group
        self.organization_id = str(id(self))
        self.pages = pages_needed(len(instants), PAGE_SIZE)
        self.play = Play(instants, page_size=PAGE_SIZE)
        self.plan = self.play.plan
        self.requests = 0

    def open(self, *, is_impatient: bool) -> None:
        pass


class PlayedGroup:
    """Organizations with so many pages each."""

    is_held = False
    has_others = True

    def __init__(self, pages: list[int], shape: Shape) -> None:
        histories = [drawn(shape, count * PAGE_SIZE, number) for number, count in enumerate(pages)]
        self.members = [PlayedMember(each, self) for each in histories]
        self.unopened = deque(self.members)

    def give_up(self) -> list[str]:
        raise NotImplementedError


def played(pages: list[int], concurrency: int, shape: Shape = office_hours) -> tuple[float, int]:
    """The seconds and the requests of a run that delivers every event of each organization."""
    group = PlayedGroup(pages, shape)
    plan = OrganizationsPlan(cast("Any", [group]), RequestCounts(concurrency))
    seconds, sent = 0.0, 0
    in_flight: list[tuple[float, int, OrganizationRequest]] = []
    take_all(plan)
    while not plan.is_done:
        for request in requests_of(plan):
            sent += 1
            request.member.requests += 1
            heapq.heappush(in_flight, (seconds + 1, sent, request))
        assert len(in_flight) <= concurrency
        seconds, _, received = heapq.heappop(in_flight)
        _, page = received.member.play._respond(received.request)
        plan.accept(received, page)
        take_all(plan)
    for member in group.members:
        assert member.play.played.delivered == list(range(len(member.play.instants)))
        assert member.requests <= 1.25 * member.pages + 6
    return seconds, sent


def take_all(plan: OrganizationsPlan) -> None:
    while (found := plan.next_page()) is not None:
        if found.page is not None:
            found.member.play._take(found.page)


@pytest.mark.parametrize("pages", [1, 2, 3, 5, 8])
def test_many_organizations_of_a_few_pages_cost_no_windows(pages: int) -> None:
    """Other organizations keep the workers busy, so none has to be cut, and nothing is wasted."""
    seconds, requests = played([pages] * 24, concurrency=4)
    assert requests <= 24 * pages * 1.05
    assert seconds <= requests / 4 + pages


def test_events_that_lie_close_together_cost_no_windows() -> None:
    """Their first page looks as if the range, which ends much later, had many pages."""
    _, requests = played([3] * 40, concurrency=8, shape=old_tail)
    assert requests <= 40 * 3 * 1.05


@pytest.mark.parametrize("position", [0, 20, 40])
def test_a_large_organization_among_small_ones_is_read_in_parallel(position: int) -> None:
    """Its windows are cut from its first page on, so workers that become free can read them."""
    pages = [3] * 41
    pages[position] = 200
    seconds, requests = played(pages, concurrency=8)
    assert seconds <= 320 / 6
    assert requests <= 1.12 * 320
