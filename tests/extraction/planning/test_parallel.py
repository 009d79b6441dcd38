"""Several windows in parallel, through the real command line."""

import random
import signal
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest

from tap_audit_events.events.instants import parse_instant
from tap_audit_events.extraction.planning import concurrency
from tap_audit_events.sandbox import Fault, Service, serve
from tap_audit_events.sandbox.request import ReceivedRequest
from tap_audit_events.sandbox.response import Response
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.conftest import Sync
from tests.running import Run, run, settings_for
from tests.singer.test_incremental import covered
from tests.singer.test_lanes import WriterIntoMemory
from tests.singer.test_stopping import Start, finished, read_lines, start  # noqa: F401 - a fixture

MONTH = datetime(2024, 5, 1, tzinfo=UTC)
PAGE_SIZE = 20
LATE = "2024-05-20"


def events_at(seconds: list[float]) -> list[dict[str, Any]]:
    """Events of one month, named in their order."""
    times = sorted(MONTH + timedelta(milliseconds=round(each * 1000)) for each in seconds)
    return [
        an_event(id=f"{number:05}", at=f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z")
        for number, time in enumerate(times)
    ]


def uneven(count: int, seed: int) -> list[dict[str, Any]]:
    """Events in daytime hours, in two bursts, and many at the same instant."""
    rng = random.Random(seed)
    day = 86400.0
    seconds = [rng.randrange(30) * day + 8 * 3600 + rng.random() * 36000 for _ in range(count // 2)]
    seconds += [day * rng.choice([7, 21]) + rng.random() * 300 for _ in range(count // 4)]
    seconds += [rng.randrange(30) * day for _ in range(count - len(seconds))]
    return events_at(seconds)


def ids_of(events: list[dict[str, Any]]) -> list[str]:
    return [event["id"] for event in events]


def moves_only_forward(done: Run) -> None:
    values = [
        parse_instant(state["bookmarks"]["audit_events"]["replication_key_value"])
        for state in done.states
        if state["bookmarks"].get("audit_events")
    ]
    assert values == sorted(values)
    covered(done)


def was_parallel(service: Service) -> bool:
    """Whether windows were cut: requests without a cursor that start at different times.

    The number of windows depends on how long responses take: early windows that are nearly empty
    may use up the budget, and the rest is read by one cursor.
    """
    return len({request.params.get("startTime") for request in service.requests}) > 1


class CountingService(Service):
    """Notes how many requests are in flight at once."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._ends: list[float] = []
        self._counting = threading.Lock()
        self.most_in_flight = 0

    def respond(self, *request: Any, **more: Any) -> Response:
        response = super().respond(*request, **more)
        with self._counting:
            now = time.monotonic()
            self._ends = [end for end in self._ends if end > now] + [now + response.wait_seconds]
            self.most_in_flight = max(self.most_in_flight, len(self._ends))
        return response


@pytest.fixture
def service() -> Service:
    """A service whose responses take a moment, so that parallel requests gain time."""
    return CountingService(page_latency_seconds=0.05)


EVEN = events_at([float(second) for second in range(3000)])


class ShiftedService(Service):
    """Filters by bounds some seconds later than requested, against interface.md 4.1.

    Attributes:
        seconds: how much later the start is, and the end.
    """

    seconds = (0, 0)

    def respond(self, *request: Any, **more: Any) -> Response:
        method, path, query, *rest = request
        parameters = dict(parse_qsl(query.decode()))
        bounds = [datetime.fromisoformat(parameters[name]) for name in ("startTime", "endTime")]
        later = [
            bound + timedelta(seconds=each)
            for bound, each in zip(bounds, self.seconds, strict=True)
        ]
        first, end = min(later), later[1]
        parameters |= {"startTime": f"{first:%Y-%m-%dT%H:%M:%SZ}"}
        parameters |= {"endTime": f"{end:%Y-%m-%dT%H:%M:%SZ}"}
        return super().respond(method, path, urlencode(parameters).encode(), *rest, **more)


def settings_of_a_shifted_service(service: ShiftedService, base_url: str) -> dict[str, Any]:
    service.add(EVEN)
    an_hour_before = "2024-04-30T23:00:00Z"
    return settings_for(service, base_url, page_size=PAGE_SIZE, start_date=an_hour_before)


def test_the_first_events_of_a_window_are_delivered_with_the_one_before() -> None:
    """A service that treats `startTime` as exclusive shows these events only there."""
    service = ShiftedService(page_latency_seconds=0.05)
    service.seconds = (1, 0)
    with serve(service) as server:
        done = run(settings_of_a_shifted_service(service, server.base_url)).raise_for_exit_code()
    assert done.ids == ids_of(EVEN)
    assert len({request.params["startTime"] for request in service.requests}) > 2


def test_windows_that_do_not_show_their_events_are_an_error() -> None:
    """The next run delivers these events, as the bookmark has not passed them."""
    service = ShiftedService(page_latency_seconds=0.05)
    service.seconds = (3, 3)
    with serve(service) as server:
        settings = settings_of_a_shifted_service(service, server.base_url)
        done = run(settings)
        assert done.exit_code == 1
        (line,) = done.errors
        assert line.startswith("AE-WINDOW: ")
        more = settings | {"concurrency": 1, "page_size": 1000}
        again = run(more, state=done.state).raise_for_exit_code()
    assert done.ids + again.ids == ids_of(EVEN)


@pytest.mark.parametrize(("concurrency", "selected"), [(2, "all but one"), (8, "all fields")])
def test_uneven_events_are_delivered_in_order_and_once(
    concurrency: int, selected: str, service: CountingService, sync: Sync
) -> None:
    """In both lanes STATE moves only forward, and requests stay few and within `concurrency`."""
    events = uneven(1500, seed=concurrency)
    service.add(events)
    maps = {"audit_events": {"actor": "__NULL__"}} if selected == "all but one" else {}
    done = sync(
        page_size=PAGE_SIZE,
        concurrency=concurrency,
        stream_maps=maps,
        end_date="2024-06-01T00:00:00Z",
    ).raise_for_exit_code()
    assert done.ids == ids_of(events)
    moves_only_forward(done)
    assert was_parallel(service)
    assert len(service.requests) <= 1.25 * len(events) / PAGE_SIZE + 6
    assert 1 < service.most_in_flight <= concurrency
    windows = sum("cursor" not in request.params for request in service.requests)
    assert f" requests: {len(service.requests)}, windows: {windows}, retries: 0;" in done.log


@pytest.mark.parametrize("pages", [2, 3])
def test_a_few_pages_of_a_near_service_cost_at_most_one_request_more(
    pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would be gained by windows, each of which may cost a request."""
    monkeypatch.setattr(concurrency, "NEAR_SECONDS", 60.0)  # however busy the machine is
    events = uneven(pages * PAGE_SIZE, seed=pages)
    service = Service()
    service.add(events)
    with serve(service) as server:
        settings = settings_for(service, server.base_url, page_size=PAGE_SIZE, concurrency=8)
        TapAuditEvents(config=settings, message_writer=WriterIntoMemory()).sync_all()
    assert len(service.requests) <= pages + 1


def starts_late(seen: ReceivedRequest) -> bool:
    return seen.params.get("startTime", "") >= LATE


def test_an_error_far_ahead_is_raised_last(service: Service, sync: Sync) -> None:
    """The events before it are delivered and covered by STATE; then one line ends the run."""
    events = events_at([number * 1000.0 for number in range(2500)])
    service.add(events)
    service.add_faults([Fault(kind="status", code=403, only=starts_late)])
    done = sync(page_size=PAGE_SIZE, concurrency=8)
    assert done.exit_code == 1
    (line,) = done.errors
    assert line.startswith("AE-403: ")
    first_refused = min(r.params["startTime"] for r in service.requests if r.status == 403)
    assert f"in the window from {first_refused} to " in line
    before = [event["id"] for event in events if event["occurredAt"] < first_refused]
    assert done.ids == before
    assert len(before) > 1000
    assert parse_instant(done.bookmark) == parse_instant(events[len(before) - 1]["occurredAt"])
    moves_only_forward(done)
    assert sum(request.status == 403 for request in service.requests) <= 8


@pytest.mark.parametrize(
    ("latency_seconds", "pages"), [(0.0, 60), pytest.param(0.1, 100, marks=pytest.mark.long)]
)
def test_all_workers_respect_a_rate_limit(latency_seconds: float, pages: int) -> None:
    """Eight workers against 12 requests a second complete the run, and few requests are refused."""
    events = events_at([number * 1000.0 for number in range(pages * PAGE_SIZE)])
    service = Service(rate_limit=12, page_latency_seconds=latency_seconds)
    service.add(events)
    with serve(service) as server:
        settings = settings_for(service, server.base_url, page_size=PAGE_SIZE, concurrency=8)
        done = run(settings | {"end_date": "2024-06-01T00:00:00Z"}).raise_for_exit_code()
    assert done.ids == ids_of(events)
    refused = sum(request.status == 429 for request in service.requests)
    assert 0 < refused <= 0.1 * len(service.requests)
    assert len(service.requests) - refused <= 1.25 * pages + 6
    assert service.violations == []


def test_a_signal_drops_the_windows_ahead(service: Service, start: Start) -> None:  # noqa: F811
    """Although eight requests hang, the run ends at once, after a whole line and its STATE."""
    events = events_at([number * 1000.0 for number in range(2500)])
    service.add(events)
    service.add_faults([Fault(kind="hang", seconds=300, only=starts_late)])
    process = start(page_size=PAGE_SIZE, concurrency=8)
    before = read_lines(process, 1000)
    process.send_signal(signal.SIGTERM)
    done = finished(process, before)
    assert done.exit_code == 128 + signal.SIGTERM
    assert done.stdout.endswith(b"\n")
    assert done.messages[-1]["type"] == "STATE"
    assert done.ids == ids_of(events)[: len(done.ids)]
    assert parse_instant(done.bookmark) == parse_instant(done.records[-1]["occurredAt"])
    moves_only_forward(done)
    (line,) = done.errors
    assert line.startswith("AE-STOPPED: ")
