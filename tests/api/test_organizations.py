"""`AuditEvents.pages` of several organizations: their errors and their states."""

from types import MappingProxyType

import pytest

from tap_audit_events import (
    AuditEvents,
    EventPage,
    OrganizationsError,
)
from tap_audit_events.sandbox import Fault
from tests.api.logs import stored
from tests.builders import an_event
from tests.shared_server import SHARED, SharedServer, a_service, an_id


def test_an_error_of_one_of_several_organizations_is_raised_at_the_end() -> None:
    """The others are read before. The exception has the error of each organization that failed."""
    services = [a_service(number, 20) for number in range(3)]
    services[1].add_faults([Fault(kind="status", when="1-", code=403)])
    pages: list[EventPage] = []
    with SharedServer(services).served() as shared:
        items = [MappingProxyType({"organization_id": each.organization_id}) for each in services]
        log = AuditEvents(base_url=shared.base_url, access_token=SHARED, organizations=items)
        with pytest.raises(OrganizationsError) as raised:
            pages.extend(log.pages())
    assert {page.organization_id for page in pages} == {an_id(0), an_id(2)}
    assert {name: each.code for name, each in raised.value.errors.items()} == {an_id(1): "AE-403"}
    assert not raised.value.not_started


def test_an_organization_without_a_page_keeps_its_state() -> None:
    """The state stays the same although the settings change and another organization has events."""
    quiet, active = a_service(0, 20), a_service(1, 0)
    active.add([an_event(at="2024-01-01T00:00:00Z")])
    with SharedServer([quiet, active]).served() as shared:
        alone = shared.settings | {"organizations": shared.settings["organizations"][:1]}
        *_, before = AuditEvents(**alone).pages()
        both = AuditEvents(**shared.settings, end_date="2024-02-01T00:00:00Z", lookback_seconds=0)
        *_, after = both.pages(state=stored(before.state))
    (kept,) = before.state["organizations"]
    assert kept in after.state["organizations"]
    assert [page.organization_id for page in (before, after)] == [an_id(0), an_id(1)]
