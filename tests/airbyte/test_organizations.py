"""Several organizations in one sync: each has its own state, and its own errors."""

from typing import Any

import pytest

from tests.airbyte.source import Output, a_catalog, run_source
from tests.builders import an_event
from tests.shared_server import SHARED, SharedServer, a_service, an_id


def settings_of(shared: SharedServer, *numbers: int, **more: Any) -> dict[str, Any]:
    items = [{"organization_id": an_id(number)} for number in numbers]
    return {"base_url": shared.base_url, "access_token": SHARED, "organizations": items} | more


def read(shared: SharedServer, *numbers: int, state: object = None, **more: Any) -> Output:
    given = settings_of(shared, *numbers, page_size=10, **more)
    return run_source("read", given, catalog=a_catalog(), state=state)


def keys(done: Output) -> list[tuple[str, str]]:
    return [(record["organization_id"], record["id"]) for record in done.records]


def test_each_organization_is_read_once_and_keeps_its_state() -> None:
    """An organization may be added later, and one that is removed for a run loses nothing."""
    services = [a_service(number, 15) for number in range(3)]
    with SharedServer(services).served() as shared:
        first = read(shared, 0, 1)
        services[0].add([an_event(id="new", at="2024-05-06T09:00:00Z")])
        second = read(shared, 1, 2, state=first.state)
        third = read(shared, 0, 1, 2, state=second.state)
    assert [first.exit_code, second.exit_code, third.exit_code] == [0, 0, 0]
    assert len(keys(first)) == len({*keys(first)}) == 30
    assert {key[0] for key in keys(second)} == {an_id(2)}
    assert len(keys(second)) == 15
    assert keys(third) == [(an_id(0), "new")]


def test_an_organization_that_fails_does_not_end_the_others() -> None:
    """The error names the organization, and the state covers the others."""
    services = [a_service(number, 15) for number in range(3)]
    services[1].add_faults(["status:code=403@2"])
    with SharedServer(services).served() as shared:
        done = read(shared, 0, 1, 2)
        again = read(shared, 0, 1, 2, state=done.state)
    assert done.exit_code == 1
    assert done.statuses[-1] == "INCOMPLETE"
    (failure,) = done.failures
    assert failure["failure_type"] == "config_error"
    assert f"AE-403: {an_id(1)}: " in failure["message"]
    assert len({*keys(done), *keys(again)}) == len(keys(done)) + len(keys(again)) == 45


def test_check_and_discover_support_several_organizations() -> None:
    """A check needs one request for each, and the primary key contains the organization."""
    services = [a_service(number, 1) for number in range(2)]
    with SharedServer(services).served() as shared:
        good = run_source("check", settings_of(shared, 0, 1))
        requests = [len(each.requests) for each in services]
        bad = run_source("check", settings_of(shared, 0, 1, 7))
        found = run_source("discover", settings_of(shared, 0, 1))
    assert good.of_type("CONNECTION_STATUS")[0]["status"] == "SUCCEEDED"
    assert requests == [1, 1]
    status = bad.of_type("CONNECTION_STATUS")[0]
    assert status["status"] == "FAILED"
    assert f"AE-403: {an_id(7)}: " in status["message"]
    (stream,) = found.of_type("CATALOG")[0]["streams"]
    assert stream["source_defined_primary_key"] == [["organization_id"], ["id"]]
    assert "organization_id" in stream["json_schema"]["properties"]


OF_ONE, OF_SEVERAL = [["id"]], [["organization_id"], ["id"]]


@pytest.mark.parametrize(
    ("setting", "right", "stale"),
    [
        ({}, OF_SEVERAL, OF_ONE),
        ({"organizations": None, "organization_id": an_id(0)}, OF_ONE, OF_SEVERAL),
    ],
)
def test_a_catalog_for_the_other_setting_is_refused(
    setting: dict[str, Any], right: list[list[str]], stale: list[list[str]]
) -> None:
    """With the wrong key, an event of one organization could replace that of another."""
    with SharedServer([a_service(0, 5)]).served() as shared:
        given = settings_of(shared, 0, **setting)
        done = run_source("read", given, catalog=a_catalog(primary_key=right))
        refused = run_source("read", given, catalog=a_catalog(primary_key=stale))
    assert len(done.raise_for_exit_code().records) == 5
    assert refused.records == []
    (failure,) = refused.failures
    assert failure["failure_type"] == "config_error"
    assert failure["message"].startswith("AE-CATALOG: ")
    assert failure["message"].endswith("; refresh the schema of the connection")


def test_an_item_cannot_name_a_token_file() -> None:
    """The check fails, and does not use the token of the other organizations instead."""
    service = a_service(0, 1)
    with SharedServer([service]).served() as shared:
        item = {"organization_id": an_id(0), "access_token_file": "/etc/hostname"}
        done = run_source("check", settings_of(shared) | {"organizations": [item]})
    (status,) = done.of_type("CONNECTION_STATUS")
    assert status["status"] == "FAILED"
    assert "organizations[0].access_token_file is not known" in status["message"]
    assert not service.requests
