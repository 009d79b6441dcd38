"""`--test` logs in sentences what works, and writes no message."""

import logging
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tap_audit_events.reporting.connection_test import check_connection
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.conftest import Sync
from tests.running import Run
from tests.shared_server import SharedServer, a_service, an_id

THREE_EVENTS = [an_event(id=str(n), at=f"2024-05-06T07:08:0{n}Z") for n in range(3)]
RANGE = {"end_date": "2024-05-07T00:00:00Z"}
ALL = "up to 2024-05-07T00:00:00Z"
BASE_URL = "http://127.0.0.1:PORT"


def said(done: Run) -> list[str]:
    """The lines of the log, without the SDK's own line and without the port of the sandbox."""
    lines = [line.split(" | ", 3)[-1] for line in done.log.splitlines()]
    texts = [re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", line) for line in lines]
    return [text for text in texts if not text.startswith("Skipping parse")]


def test_a_check_logs_each_thing_that_works(service: Service, sync: Sync) -> None:
    """It needs two requests: for the oldest and for the newest event."""
    service.add(THREE_EVENTS)
    done = sync("--test", **RANGE).raise_for_exit_code()
    assert said(done) == [
        f"The service responds at {BASE_URL}",
        "The service accepts the access token",
        f"Audit events of {service.organization_id} can be read",
        "The clocks of the service and of this machine agree",
        f"Events {ALL}: oldest 2024-05-06T07:08:00Z, newest 2024-05-06T07:08:02Z",
    ]
    assert done.stdout == b""
    assert [request.params["order"] for request in service.requests] == ["asc", "desc"]
    assert {request.params["pageSize"] for request in service.requests} == {"1"}


def test_a_check_shows_only_events_within_the_range(service: Service, sync: Sync) -> None:
    """Requests are wider, as their bounds are whole seconds."""
    service.add(THREE_EVENTS)
    asked = {"start_date": "2024-05-06T07:08:00.5Z", "end_date": "2024-05-06T07:08:01.5Z"}
    done = sync("--test", **asked).raise_for_exit_code()
    assert said(done)[-1].endswith("oldest 2024-05-06T07:08:01Z, newest 2024-05-06T07:08:01Z")
    assert len(service.requests) == 2  # the events before the range need no further request


def test_a_check_reads_past_empty_pages(service: Service, sync: Sync) -> None:
    """Events may follow a page without events, as in a run."""
    service.add(THREE_EVENTS)
    service.add_faults(["empty@1,2"])
    done = sync("--test", **RANGE).raise_for_exit_code()
    assert said(done)[-1].endswith("oldest 2024-05-06T07:08:00Z, newest 2024-05-06T07:08:02Z")


def test_a_check_of_a_range_in_the_future_is_a_warning(sync: Sync) -> None:
    """The token is checked nevertheless."""
    done = sync("--test", start_date="2999-01-01T00:00:00Z").raise_for_exit_code()
    assert done.warnings == ["Nothing to read yet: start_date lies in the future"]
    assert "The service accepts the access token" in said(done)


@pytest.mark.parametrize(
    ("fault", "held"),
    [
        (Fault(kind="status", code=401), 1),
        (Fault(kind="status", code=403), 2),
        (Fault(kind="status", code=404), 0),
        (Fault(kind="status", code=429), 2),
        (Fault(kind="status", code=500), 1),
        (Fault(kind="reset"), 0),
        (Fault(kind="status", code=401, text=b"<html>"), 0),
        (Fault(kind="status", code=302, location="https://sign.in.example/"), 0),
        (Fault(kind="body", text=b"<html>"), 0),
    ],
)
def test_a_check_that_fails_logs_what_works_before_the_error(
    fault: Fault, held: int, service: Service, sync: Sync
) -> None:
    """The lines depend on the response. The error has a code, and the exit code is 1."""
    service.add_faults([fault])
    done = sync("--test", max_retries=0)
    assert done.exit_code == 1
    assert done.stdout == b""
    (error,) = done.errors
    holds = [f"The service responds at {BASE_URL}", "The service accepts the access token"]
    assert said(done)[:-1] == holds[:held]
    assert error.startswith("AE-")


def test_several_organizations_are_checked_side_by_side_with_a_request_each() -> None:
    """Several connections are needed, because no response arrives at once. All errors are named."""
    services = [a_service(number, 2) for number in range(12)]
    for each in services:
        each.add_faults([Fault(kind="hang", seconds=0.3, when="1")])
    for number in (3, 7):
        services[number].add_faults([Fault(kind="status", code=403, when="*")])
    with SharedServer(services).served() as shared:
        done = shared.run("--test", concurrency=6)
    assert [len(each.requests) for each in services] == [1] * len(services)
    assert 1 < sum(not each.requests[0].reused for each in services) <= 6
    can_be_read = [line for line in said(done) if ": Audit events can be read: the newest " in line]
    assert len(can_be_read) == len(services) - 2
    assert [error.split(": ")[:2] for error in done.errors[1:]] == [
        ["AE-403", an_id(3)],
        ["AE-403", an_id(7)],
    ]


def test_a_check_retries_at_most_once(service: Service, sync: Sync) -> None:
    """Somebody waits for its result, and with more retries for a minute and a half."""
    service.add_faults(["status:code=503,retry-after=0@*"])
    assert sync("--test").exit_code == 1
    assert len(service.requests) == 2


@pytest.mark.parametrize(("seconds", "level"), [(-10, "INFO"), (3600, "WARNING")])
def test_a_clock_that_differs_is_logged(
    seconds: int,
    level: str,
    settings: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The Date header of a response shows the difference; a large one is a warning."""
    runtime = Runtime(now=lambda: datetime.now(UTC) + timedelta(seconds=seconds))
    tap = TapAuditEvents(config=settings)
    with caplog.at_level(logging.INFO):
        check_connection(tap.settings, runtime, tap.logger)
    (record,) = [each for each in caplog.records if "clock is" in each.message]
    assert record.levelname == level
    assert re.match(
        r"This machine's clock is (\d+) s (behind|ahead of) the service's: a run reads up to",
        record.message,
    )
    assert ("behind" in record.message) == (seconds < 0)
