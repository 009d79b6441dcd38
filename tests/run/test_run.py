"""A run delivers pages of events in order, each event once, whichever face advances it."""

import json
import logging
import subprocess
import sys
import threading
import weakref
from collections.abc import Generator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors.exceptions import (
    ContractError,
    OrganizationsError,
    SettingsError,
    service_error,
)
from tap_audit_events.events.page import Page
from tap_audit_events.extraction.workers import Workers
from tap_audit_events.run.new_events import NewEvents
from tap_audit_events.run.organization import GivenState
from tap_audit_events.run.run import Run
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.builders import an_event

NOW = datetime(2024, 5, 7, tzinfo=UTC)


def events(first: int, end: int) -> list[dict[str, Any]]:
    """Return an event each second, from the first number up to the end, which is excluded."""
    return [
        an_event(id=f"{n:04}", at=f"2024-05-06T07:{n // 60:02}:{n % 60:02}Z")
        for n in range(first, end)
    ]


def a_run(
    settings: dict[str, Any],
    state: GivenState = {},  # noqa: B006 - it is not changed
    runtime: Runtime | None = None,
    **more: Any,
) -> Run:
    given = read_settings(settings | {"page_size": 10} | more)
    return Run(
        given,
        {each.organization_id: state for each in given.each()},
        runtime=runtime or Runtime(now=lambda: NOW),
        logger=logging.getLogger("run"),
    )


def pages_of(run: Run) -> Generator[NewEvents, None, None]:
    with closing(run.pages()) as pages:
        yield from filter(None, pages)


def read(run: Run) -> tuple[list[str], Mapping[str, Any]]:
    """Read a range of one organization to its end; return the ids and the state."""
    ids: list[str] = []
    for page in pages_of(run):
        assert len(page.texts) <= 10
        with page:
            ids += [record["id"] for record in page.records()]
    assert page.is_last
    return ids, page.organization.state()


def failing(*_: object) -> None:
    """Write something, and fail."""
    raise ZeroDivisionError


def test_importing_a_run_does_not_import_the_sdk() -> None:
    """Faces other than the Singer tap do not need the SDK."""
    code = "import sys, tap_audit_events.run.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "tap_audit_events.extraction.planning.plan" in loaded
    assert [name for name in loaded if name.startswith(("singer_sdk", "click"))] == []


@pytest.mark.parametrize("concurrency", [1, 4])
def test_pages_are_in_order_and_contain_each_event_once(
    concurrency: int, service: Service, settings: dict[str, Any]
) -> None:
    """This holds with one request in flight and with several."""
    service.add(events(0, 95))
    ids, state = read(a_run(settings, concurrency=concurrency))
    assert ids == [event["id"] for event in events(0, 95)]
    assert state["bookmark"] == events(94, 95)[0]["occurredAt"]


class WeighingWorkers(Workers):
    """Sends each request in the main thread, if no page from before is in memory."""

    def pages(self) -> Generator[Any, None, None]:
        taken: list[weakref.ref[Page]] = []
        while not self._plan.is_done:
            latest = self._plan.next_page()
            if latest is None:
                assert [page for page in taken if page() is not None] == []
                request = self._plan.next_request(1)
                self._plan.accept(request, self._fetch(request))
                continue
            if latest.page is not None:
                taken.append(weakref.ref(latest.page.page))
            yield latest
        assert len(taken) == 3


def test_a_page_is_released_before_the_next_one_is_requested(
    service: Service, settings: dict[str, Any]
) -> None:
    """Pages are large, so memory has room for only one more."""
    service.add(events(0, 30))
    runtime = Runtime(now=lambda: NOW, new_workers=WeighingWorkers)
    run = a_run(settings, runtime=runtime)
    sizes, kept = zip(*((len(page.texts), page) for page in pages_of(run)), strict=True)
    assert sizes == (10, 10, 10, 0)
    assert not any(page.texts or page.instants for page in kept)


def test_a_second_run_continues_from_the_state_of_the_first(
    service: Service, settings: dict[str, Any]
) -> None:
    """With only the state as JSON, it reads just the new and late events."""
    service.add(events(0, 30))
    _, state = read(a_run(settings))
    service.add([an_event(id="late", at="2024-05-06T07:00:15.5Z"), *events(30, 35)])
    second, _ = read(a_run(settings, json.loads(json.dumps(state))))
    assert second == ["late", *(event["id"] for event in events(30, 35))]


def test_a_run_before_the_first_event_has_an_empty_state(settings: dict[str, Any]) -> None:
    assert read(a_run(settings)) == ([], {})


def test_the_state_covers_what_was_written_before_an_error(
    service: Service, settings: dict[str, Any]
) -> None:
    """Even if the next record was requested already, and also of a page that is out of order."""
    older, newer = an_event(id="older", at="2024-05-06T01:00:00Z"), an_event(id="newer")
    service.add([older, newer])
    text = json.dumps({"auditEvents": [newer, older]}).encode()
    service.add_faults([Fault(kind="body", text=text, when="1")])
    pages = pages_of(a_run(settings))
    page = next(pages)
    records = page.records()
    with pytest.raises(ZeroDivisionError), page:
        failing(next(records), next(records))
    state = page.organization.state()
    pages.close()
    assert read(a_run(settings, state))[0] == ["older"]


def test_nothing_of_a_page_counts_if_its_texts_could_not_be_written(
    service: Service, settings: dict[str, Any]
) -> None:
    """They are written together, so it is not known how many arrived."""
    service.add(events(0, 30))
    pages = pages_of(a_run(settings, concurrency=1))
    with next(pages):
        pass
    page = next(pages)
    with pytest.raises(ZeroDivisionError), page:
        failing(page.record_texts())
    state = page.organization.state()
    pages.close()
    again, _ = read(a_run(settings, state))
    assert again == [event["id"] for event in events(10, 30)]


@pytest.mark.parametrize("is_only", [True, False])
def test_an_event_that_cannot_be_written_ends_its_organization(
    is_only: bool, service: Service, settings: dict[str, Any]
) -> None:
    """If it is one of several, its last page names the error, and the run raises it at the end."""
    service.add(events(0, 30))
    if not is_only:
        settings["organizations"] = [{"organization_id": settings.pop("organization_id")}]
    run = a_run(settings)
    pages = pages_of(run)
    error = service_error("AE-NESTING")
    page = next(pages)
    try:
        with page:
            records = page.records()
            next(records)
            next(records)
            raise error
    except ContractError:
        assert is_only
    assert page.organization.state()["bookmark"] == "2024-05-06T07:00:00Z"
    if not is_only:
        (last,) = pages
        assert last.is_last
        assert last.organization.error is error
        with pytest.raises(OrganizationsError, match="AE-NESTING"):
            run.check_errors()


def is_after_the_first_page(request: ReceivedRequest) -> bool:
    return not request.params.keys().isdisjoint({"startTime", "cursor"})


@pytest.mark.parametrize("concurrency", [1, 4])
def test_closing_the_run_early_ends_every_thread(
    concurrency: int, service: Service, settings: dict[str, Any]
) -> None:
    """A thread that waits minutes for a retry ends too, and no request is sent afterwards."""
    service.add(events(0, 500))
    # Not `when="2-"`: the first page may be given up, and requested again in a smaller window.
    service.add_faults(
        [Fault(kind="status", code=503, retry_after="600", only=is_after_the_first_page)]
    )
    before = set(threading.enumerate())
    run = a_run(settings, concurrency=concurrency)
    waits = threading.Event()
    run.requests.on_wait = waits.set
    pages = pages_of(run)
    next(pages)
    assert waits.wait(timeout=30)
    pages.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=30)
        assert not thread.is_alive()
    assert len(service.requests) <= 2 + concurrency


def test_a_defect_in_one_of_several_organizations_is_raised_at_the_end(
    settings: dict[str, Any], service: Service
) -> None:
    """Otherwise the run would end as if it had read everything."""
    service.add(events(0, 5))
    settings["organizations"] = [{"organization_id": settings.pop("organization_id")}]
    run = a_run(settings)
    for page in pages_of(run):
        page.organization.error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        run.check_errors()


def test_an_empty_range_has_only_a_last_page(service: Service, settings: dict[str, Any]) -> None:
    """No request is sent for it, and its state stays as it is."""
    service.add(events(0, 5))
    _, state = read(a_run(settings))
    sent = len(service.requests)
    assert read(a_run(settings, state, start_date="2030-01-01T00:00:00Z")) == ([], state)
    assert len(service.requests) == sent


def test_an_organization_whose_state_cannot_be_used_is_not_requested(
    settings: dict[str, Any], service: Service
) -> None:
    """A request could bring events that were delivered before."""
    settings["organizations"] = [{"organization_id": settings.pop("organization_id")}]
    for state in (SettingsError(["no"], "AE-STATE"), {"organization_id": "another"}):
        run = a_run(settings, state)
        (page,) = pages_of(run)
        assert page.is_last
        assert isinstance(page.organization.error, SettingsError)
    assert not service.requests
