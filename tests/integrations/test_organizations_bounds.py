"""With 10,000 organizations, memory, requests and STATE stay within the documented bounds."""

from pathlib import Path

import pytest

from tap_audit_events.sandbox import Service, serve
from tap_audit_events.sandbox.several import SeveralServices
from tests.builders import an_event
from tests.integrations.test_memory import measured
from tests.running import run

pytestmark = pytest.mark.long

ORGANIZATIONS = 10_000
TOKENS = 200

MAX_MEMORY_MB = 200
"""The most memory of a run for so many organizations: docs/organizations.md."""

MAX_BYTES_OF_STATE = 600
"""The bound for each organization that has an event or two within the lookback."""


@pytest.mark.timeout(600)
def test_ten_thousand_organizations_stay_within_their_bounds(tmp_path: Path) -> None:
    """A second run that finds no new event sends one request each, and at most two STATEs."""
    services = [
        Service(
            organization_id=f"{n:08x}-0000-4000-8000-000000000000",
            access_token=f"acme_pat_token-number-{n % TOKENS}",
        )
        for n in range(ORGANIZATIONS)
    ]
    for each in services:
        each.add([an_event()])
    with serve(SeveralServices(services)) as server:
        items = [
            {"organization_id": each.organization_id, "access_token": each.access_token}
            for each in services
        ]
        settings = {"base_url": server.base_url, "organizations": items, "concurrency": 8}
        first = run(settings, under=measured(tmp_path / "first")).raise_for_exit_code()
        again = run(
            settings, state=first.state, under=measured(tmp_path / "again")
        ).raise_for_exit_code()
    assert len(first.records) == ORGANIZATIONS
    assert again.records == []
    assert sum(len(each.requests) for each in services) == 2 * ORGANIZATIONS
    assert len(again.states) <= 2
    assert "-0000-4000-8000-" not in again.log  # no line for an organization without news
    last = again.stdout.splitlines()[-1]
    assert len(last) < MAX_BYTES_OF_STATE * ORGANIZATIONS
    for name in ("first", "again"):
        assert float((tmp_path / name).read_text()) < MAX_MEMORY_MB
