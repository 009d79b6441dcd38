"""The reader delivers pages of events in order, each event once, without Singer."""

import json
import logging
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors.exceptions import ContractError, SettingsError, service_error
from tap_audit_events.events.exact_json import read_record
from tap_audit_events.events.instants import text_of
from tap_audit_events.events.page import Page
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.extraction.workers import Workers
from tap_audit_events.run.organization import OrganizationRun
from tap_audit_events.run.organizations_plan import Stage
from tap_audit_events.run.run import Reader
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.sandbox.request import ReceivedRequest
from tap_audit_events.service.rate_limiter import RunRequests
from tests.builders import an_event
from tests.extraction.watermarks import from_json, to_json
from tests.shared_server import an_id

NOW = datetime(2024, 5, 7, tzinfo=UTC)
LOGGER = logging.getLogger("reader")


def events(first: int, end: int) -> list[dict[str, Any]]:
    """Return an event each second, from the first number up to the end, which is excluded."""
    return [
        an_event(id=f"{n:04}", at=f"2024-05-06T07:{n // 60:02}:{n % 60:02}Z")
        for n in range(first, end)
    ]


class OneReader:
    """Reads one organization; `run` is set as soon as it is opened."""

    run: OrganizationRun

    def __init__(self, settings: dict[str, Any], watermark: Watermark) -> None:
        self._reader = Reader(
            read_settings(settings),
            lambda *_: watermark,
            runtime=Runtime(now=lambda: NOW),
            logger=LOGGER,
        )

    @property
    def requests(self) -> RunRequests:
        return self._reader.requests

    @property
    def delivery(self) -> Delivery:
        return self.run.delivery

    def check_errors(self) -> None:
        self._reader.check_errors()

    def pages(self) -> Generator[Delivery, None, None]:
        with closing(self._reader.pages()) as runs:
            for self.run in runs:
                if self.run.stage is Stage.PAGE:
                    yield self.run.delivery
                    self.run.delivery.commit()


def a_reader(settings: dict[str, Any], watermark: Watermark, **more: Any) -> OneReader:
    return OneReader(settings | {"page_size": 10} | more, watermark)


def ids_of(reader: OneReader) -> list[str]:
    """Read a range to its end, marking each page as written, and return the ids."""
    ids: list[str] = []
    for page in reader.pages():
        assert len(page.texts()) <= 10
        ids += [read_record(text)["id"] for text in page.texts()]
        page.all_written()
    return ids


def test_importing_the_reader_does_not_import_the_sdk() -> None:
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
    reader = a_reader(settings, Watermark(), concurrency=concurrency)
    assert ids_of(reader) == [event["id"] for event in events(0, 95)]
    assert reader.delivery.delivered == 95
    bookmark = reader.delivery.watermark.bookmark
    assert bookmark is not None
    assert text_of(bookmark) == events(94, 95)[0]["occurredAt"]


class WeighingWorkers(Workers):
    """Sends each request in the main thread, if no page from before is in memory."""

    def pages(self, idle: Callable[[], object]) -> Generator[Any, None, None]:
        taken: list[weakref.ref[Page]] = []
        while not self._plan.is_done:
            latest = self._plan.next_page()
            if not latest:
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
    reader = Reader(
        read_settings(settings | {"page_size": 10}),
        lambda *_: Watermark(),
        runtime=runtime,
        logger=LOGGER,
    )
    with closing(reader.pages()) as runs:
        for run in runs:
            run.write_page(Delivery.all_written)
    assert run.delivery.delivered == 30


def test_a_second_run_continues_from_the_state_of_the_first(
    service: Service, settings: dict[str, Any]
) -> None:
    """With only the watermark as JSON, it reads just the new and late events."""
    late = an_event(id="late", at="2024-05-06T07:00:15.5Z")
    service.add(events(0, 30))
    first = a_reader(settings, Watermark(lookback_seconds=300))
    assert len(ids_of(first)) == 30
    state = to_json(first.delivery.watermark)
    service.add([late, *events(30, 35)])
    second = a_reader(settings, from_json(state, lookback_seconds=300))
    expected = ["late", *(event["id"] for event in events(30, 35))]
    assert ids_of(second) == expected
    assert second.delivery.late == 1


def test_a_page_that_was_not_written_is_not_delivered(
    service: Service, settings: dict[str, Any]
) -> None:
    """The run after one that ended early continues after the last page that was written."""
    service.add(events(0, 30))
    reader = a_reader(settings, Watermark(), concurrency=1)
    with closing(reader.pages()) as pages:
        next(pages).all_written()
        next(pages)  # not written
    assert reader.delivery.delivered == 10
    again = a_reader(settings, reader.delivery.watermark, concurrency=1)
    assert ids_of(again) == [event["id"] for event in events(10, 30)]


def test_events_that_were_not_written_are_delivered_by_the_next_run(
    service: Service, settings: dict[str, Any]
) -> None:
    """This holds even if newer events of the page were written before the one that failed."""
    older, newer = an_event(id="older", at="2024-05-06T01:00:00Z"), an_event(id="newer")
    service.add([older, newer])
    page = json.dumps({"auditEvents": [newer, older]}).encode()
    service.add_faults([Fault(kind="body", text=page, when="1")])
    reader = a_reader(settings, Watermark())
    pages = reader.pages()
    records = next(pages).records()
    assert (next(records)["id"], next(records)["id"]) == ("newer", "older")
    reader.run.error = service_error("AE-EVENT")
    with pytest.raises(ContractError):
        next(pages)
    assert ids_of(a_reader(settings, reader.delivery.watermark)) == ["older"]


def is_after_the_first_page(request: ReceivedRequest) -> bool:
    return not request.params.keys().isdisjoint({"startTime", "cursor"})


@pytest.mark.parametrize("concurrency", [1, 4])
def test_closing_the_reader_early_ends_every_thread(
    concurrency: int, service: Service, settings: dict[str, Any]
) -> None:
    """A thread that waits minutes for a retry ends too, and no request is sent afterwards."""
    service.add(events(0, 500))
    # Not `when="2-"`: the first page may be given up, and requested again in a smaller window.
    service.add_faults(
        [Fault(kind="status", code=503, retry_after="600", only=is_after_the_first_page)]
    )
    before = set(threading.enumerate())
    reader = a_reader(settings, Watermark(), concurrency=concurrency)
    waits = threading.Event()
    reader.requests.on_wait = waits.set
    with closing(reader.pages()) as pages:
        next(pages).all_written()
        assert waits.wait(timeout=30)
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
    reader = a_reader(settings, Watermark())
    for _ in reader.pages():
        reader.run.error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        reader.check_errors()


def test_an_empty_range_has_no_pages(service: Service, settings: dict[str, Any]) -> None:
    """No request is sent for it."""
    reader = a_reader(settings, Watermark(), start_date="2030-01-01T00:00:00Z")
    assert ids_of(reader) == []
    assert reader.run.window is None
    assert service.requests == []


def test_an_organization_whose_state_cannot_be_used_is_not_requested(
    settings: dict[str, Any],
) -> None:
    """A request could not bring events that are delivered."""

    def refused(*_: object) -> Watermark:
        raise SettingsError(["the state cannot be used"], "AE-STATE")

    settings["organizations"] = [{"organization_id": settings.pop("organization_id")}]
    reader = Reader(
        read_settings(settings), refused, runtime=Runtime(now=lambda: NOW), logger=LOGGER
    )
    with closing(reader.pages()) as runs:
        assert [(run.stage, run.has_requests) for run in runs] == [
            (Stage.OPENED, False),
            (Stage.ENDED, False),
        ]


@pytest.mark.parametrize(("tokens", "others_can_be_sent"), [("aa", False), ("ab", True)])
def test_a_request_that_waits_for_its_token_holds_up_no_other_token(
    tokens: str, others_can_be_sent: bool, settings: dict[str, Any]
) -> None:
    """Otherwise the limits of a few tokens would slow all of them."""
    del settings["organization_id"], settings["access_token"]
    settings["concurrency"] = 1
    settings["organizations"] = [
        {"organization_id": an_id(number), "access_token": f"acme_pat_{token}"}
        for number, token in enumerate(tokens)
    ]

    class OneWaits(Workers):
        def pages(self, idle: Callable[[], object]) -> Generator[Any, None, None]:
            yield self._plan.next_page()
            assert self._plan.next_request(1)
            yield self._plan.next_page()
            assert not self._plan.next_request(1)
            reader.requests.waiting += 1
            assert bool(self._plan.next_request(1)) == others_can_be_sent

    runtime = Runtime(now=lambda: NOW, new_workers=OneWaits)
    reader = Reader(read_settings(settings), lambda *_: Watermark(), runtime=runtime, logger=LOGGER)
    with closing(reader.pages()) as runs:
        assert [run.stage for run in runs] == [Stage.OPENED] * 2
