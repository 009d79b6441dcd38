"""The states of pages of several organizations: each has what was read up to its page."""

import itertools
import json
from typing import Any

from tap_audit_events import AuditEvents
from tests.api.logs import ids
from tests.builders import an_event
from tests.shared_server import SharedServer, a_service


def test_each_state_has_the_newest_bookmarks_up_to_its_page() -> None:
    """It does not matter that later pages were read before the states are created."""
    with SharedServer([a_service(number, 5) for number in range(3)]).served() as served:
        pages = list(AuditEvents(**served.settings, page_size=2).pages())
    known: dict[str, str] = {}
    for page in pages:
        own = page.organization_state
        assert own["organization_id"] == page.organization_id
        assert own["bookmark"] == page.events[-1]["occurredAt"]
        known[page.organization_id] = own["bookmark"]
        states = page.state["organizations"]
        assert {each["organization_id"]: each["bookmark"] for each in states} == known
    assert len(pages) == 9


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
