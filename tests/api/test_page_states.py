"""The states of pages: right for each page, and no larger together than the pages are many."""

import itertools
import json
import tracemalloc
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events import AuditEvents
from tap_audit_events.api.page_states import PageState, PageStates
from tap_audit_events.api.run_states import RunStates
from tap_audit_events.extraction.run_state import to_run_state
from tap_audit_events.extraction.watermark import Watermark
from tests.api.logs import ids
from tests.builders import an_event
from tests.extraction.watermarks import at, deliver
from tests.shared_server import SharedServer, a_service, an_id

ID = st.integers(0, 5)


def a_state(organization_id: str, second: int) -> dict[str, Any]:
    watermark = Watermark(lookback_seconds=60)
    deliver(watermark, [(f"e{second}", at(second))])
    return to_run_state(watermark, organization_id=organization_id, action_types=[])


def states_of(organizations: Iterable[int]) -> list[PageState]:
    """The states of a run's pages, by the organization of each page."""
    states = PageStates(RunStates({}, as_list=True))
    return [
        states.change(an_id(number), partial(a_state, an_id(number), second % 60))
        for second, number in enumerate(organizations)
    ]


def bookmarks(state: dict[str, Any]) -> dict[str, str]:
    return {each["organization_id"]: each["bookmark"] for each in state["organizations"]}


@given(organizations=st.lists(ID, max_size=40), backwards=st.booleans())
def test_each_state_has_the_newest_bookmarks_up_to_its_page(
    organizations: list[int], backwards: bool
) -> None:
    """It does not matter when and in which order the states are created."""
    states = states_of(organizations)
    found = {
        number: bookmarks(states[number].of_run())
        for number in (reversed if backwards else iter)(range(len(states)))
    }
    known: dict[str, str] = {}
    for number, organization in enumerate(organizations):
        own = states[number].of_organization()
        assert own["organization_id"] == an_id(organization)
        known[an_id(organization)] = own["bookmark"]
        assert found[number] == known


@pytest.mark.parametrize("pages_each", [1, 3])
def test_a_list_of_pages_grows_with_the_pages(pages_each: int) -> None:
    """With four times the organizations, the states take about four times the memory."""

    def bytes_of(count: int) -> int:
        order = [number % count for number in range(count * pages_each)]
        tracemalloc.start()
        states = states_of(order)
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(states) == len(order)
        return size

    assert bytes_of(2000) < 6 * bytes_of(500)


def test_a_run_continues_from_the_states_of_its_organizations() -> None:
    """A program that stores them one by one needs no other state, wherever it was interrupted."""
    services = [a_service(number, 5) for number in range(3)]
    with SharedServer(services).served() as served:
        log = AuditEvents(**served.settings, page_size=2)
        stored: dict[str, str] = {}
        found: list[tuple[str, str]] = []
        for count in (2, 3, 1, None):
            state = {"organizations": [json.loads(each) for each in stored.values()]}
            for page in itertools.islice(log.pages(state=state), count):
                found += [(page.organization_id, name) for name in ids([page])]
                stored[page.organization_id] = json.dumps(page.organization_state)
        services[1].add([an_event(id="new", at="2024-05-06T09:00:00Z")])
        state = {"organizations": [json.loads(each) for each in stored.values()]}
        assert ids(log.pages(state=state)) == ["new"]
    expected = [(each.organization_id, f"e{n:04}") for each in services for n in range(5)]
    assert sorted(found) == sorted(expected)


def test_the_state_of_the_only_organization_is_the_state(
    settings: dict[str, Any], service: Any
) -> None:
    service.add([an_event()])
    (page,) = AuditEvents(**settings).pages()
    assert page.organization_state == page.state
