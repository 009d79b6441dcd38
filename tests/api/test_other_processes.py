"""Pages, errors and `AuditEvents` can be pickled, for example for a pool of processes."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tap_audit_events import AuditEvents, AuditEventsError, EventPage
from tap_audit_events.sandbox import Service
from tests.api.logs import events, expected, ids
from tests.builders import an_event
from tests.shared_server import SharedServer, a_service, an_id


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - pickled here


WAYS = [pickled, copy.deepcopy]


def same(page: EventPage, again: EventPage) -> bool:
    return (
        type(again) is EventPage
        and page is not again
        and (page.raw, page.events, page.state, page.organization_state)
        == (again.raw, again.events, again.state, again.organization_state)
        and list(page.instants) == list(again.instants)
        and page.organization_id == again.organization_id
        and len(page) == len(again)
        and page.arrow() == again.arrow()
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("used", [True, False])
def test_a_page_is_the_same_in_another_process(
    used: bool, way: Callable[[Any], Any], service: Service, settings: dict[str, Any]
) -> None:
    """This holds before and after its events were used, and for numbers that keep their digits."""
    service.add(events(0, 10))
    details = {"huge": 10**40, "exact": 0.1}
    service.add([an_event(id="x", at="2024-05-06T06:00:00.123456789Z", details=details)])
    shape: dict[str, Any] = {"details_format": "string", "raw_event": True}
    for page in AuditEvents(**settings, page_size=4, **shape).pages():
        if used:
            assert page.events
            assert page.arrow()
        assert same(page, way(page))


@pytest.mark.parametrize("way", WAYS)
def test_the_settings_can_be_used_in_another_process_and_show_no_token(
    way: Callable[[Any], Any], service: Service, settings: dict[str, Any]
) -> None:
    service.add(events(0, 5))
    log = way(AuditEvents(**settings))
    assert ids(log.pages()) == expected(5)
    assert settings["access_token"] not in f"{log!r} {log} {vars(log)!r}"


@pytest.mark.parametrize("way", WAYS)
def test_the_errors_of_a_run_are_the_same_in_another_process(way: Callable[[Any], Any]) -> None:
    """Also those that an error for several organizations holds, with all their attributes."""
    services = [a_service(number, 1) for number in range(3)]
    services[0].add_faults(["status:code=403@*"])
    services[2].add_faults(["status:code=429,retry-after=7@*"])
    with SharedServer(services).served() as served, pytest.raises(AuditEventsError) as raised:
        list(AuditEvents(**served.settings, max_retries=0).pages())
    error: Any = raised.value
    again = way(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert (again.lines, vars(again).keys()) == (error.lines, vars(error).keys())
    assert again.not_started == error.not_started
    assert again.errors.keys() == error.errors.keys() == {an_id(0), an_id(2)}
    for name, each in error.errors.items():
        assert type(again.errors[name]) is type(each)
        assert vars(again.errors[name]) == vars(each)
    assert again.errors[an_id(2)].retry_after_seconds == 7
