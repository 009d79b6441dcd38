"""Searches in several organizations run side by side, and a service that is down ends them."""

import logging
import threading
from itertools import islice

import pytest

from tap_audit_events.config.settings import Settings, read_settings
from tap_audit_events.errors.exceptions import OrganizationsError, service_error
from tap_audit_events.run.failures import MAX_FAILURES
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.run.searches import search_each
from tap_audit_events.service.client import Client
from tests.shared_server import SHARED, an_id

LOGGER = logging.getLogger("searches")


def settings_for(count: int, concurrency: int) -> Settings:
    organizations = [{"organization_id": an_id(number)} for number in range(count)]
    return read_settings(
        {
            "base_url": "http://127.0.0.1:9",
            "access_token": SHARED,
            "organizations": organizations,
            "concurrency": concurrency,
        }
    )


@pytest.mark.parametrize("concurrency", [1, 4, 32])
def test_as_many_searches_run_at_once_as_requests_may_be_in_flight(concurrency: int) -> None:
    """The first search shows that the service responds; then no search ends before all have run."""
    all_run = threading.Barrier(concurrency)

    def search(client: Client) -> str:
        if client.settings.organization_id != an_id(0):
            all_run.wait(60)
        return client.settings.organization_id

    settings = settings_for(1 + 2 * concurrency, concurrency)
    found = list(search_each(settings, search, runtime=Runtime(shuffle=list), logger=LOGGER))
    assert sorted(name for _, name in found) == [an_id(n) for n in range(1 + 2 * concurrency)]


@pytest.mark.parametrize("concurrency", [1, 4, 32])
def test_a_service_that_is_down_gets_no_more_searches_if_they_run_side_by_side(
    concurrency: int,
) -> None:
    searched: list[str] = []

    def search(client: Client) -> None:
        searched.append(client.settings.organization_id)
        raise service_error("AE-500")

    settings = settings_for(40, concurrency)
    with pytest.raises(OrganizationsError) as raised:
        list(search_each(settings, search, runtime=Runtime(shuffle=list), logger=LOGGER))
    first = [an_id(number) for number in range(MAX_FAILURES)]
    assert sorted(searched) == first
    assert list(raised.value.errors) == first
    assert len(raised.value.not_started) == 40 - MAX_FAILURES


def test_the_errors_of_single_organizations_are_named_together_after_all_results() -> None:
    """They are in the order of the settings, whichever search ends first."""
    failing = [an_id(5), an_id(11), an_id(23)]

    def search(client: Client) -> str:
        name = client.settings.organization_id
        if name in failing:
            raise service_error("AE-403")
        return name

    searches = search_each(
        settings_for(30, 8), search, runtime=Runtime(shuffle=list), logger=LOGGER
    )
    found = [name for _, name in islice(searches, 30 - len(failing))]
    with pytest.raises(OrganizationsError) as raised:
        next(searches)
    assert sorted([*found, *failing]) == [an_id(number) for number in range(30)]
    assert list(raised.value.errors) == failing
    assert not raised.value.not_started
