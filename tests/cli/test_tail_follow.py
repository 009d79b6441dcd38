"""`audit-events tail --follow`: events as they appear, each once, whatever the service does."""

import signal
import threading
from datetime import UTC, datetime, timedelta

import pytest

from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import history
from tests.cli.tailing import FAST, ended, now, read, wait_for_a_poll


def test_events_are_printed_as_they_appear(service: Service, command: Command) -> None:
    """A late event, dated before all printed ones, is printed too, and each event once."""
    service.add([*history(50), now(100, "a"), now(50, "b")])
    with command.started("tail", "--follow", "-n", "1", *FAST) as run:
        assert read(run, 1) == ["b"]
        service.add([now(20, "c"), now(10, "d")])
        assert read(run, 2) == ["c", "d"]
        service.add([now(70, "late")])
        assert read(run, 1) == ["late"]
        service.add([now(5, "e")])
        assert read(run, 1) == ["e"]
        log = ended(run)

    assert log == "AE-STOPPED: Stopped by a signal, SIGINT.\n"


def test_follow_can_begin_without_old_events(service: Service, command: Command) -> None:
    """Events that are already within the lookback are not printed, and older ones are not read."""
    service.add([now(60, "old")])
    with command.started("tail", "-f", "-n", "0", *FAST) as run:
        wait_for_a_poll(service, run)
        service.add([now(10, "new")])
        assert read(run, 1) == ["new"]
        ended(run, signal.SIGTERM)

    ascending = [each.params for each in service.requests if each.params["order"] == "asc"]
    assert all("startTime" in params for params in ascending)


def test_an_event_that_appears_during_the_first_request_is_printed(
    service: Service, command: Command
) -> None:
    """Events count as new from the start of the command."""
    service.add([now(100, "old")])
    has_come = threading.Event()

    def is_first(request: ReceivedRequest) -> bool:
        has_come.set()
        return request.number == 1

    service.add_faults([Fault(kind="hang", seconds=1.5, only=is_first)])
    with command.started("tail", "--follow", "-n", "0", *FAST) as run:
        assert has_come.wait(60)
        service.add([now(0, "new")])
        assert read(run, 1) == ["new"]
        ended(run)


@pytest.mark.parametrize("there", [[], ["old"]])
def test_follow_prints_new_events_although_the_clock_is_ahead(
    there: list[str], service: Service, command: Command
) -> None:
    """The clock of this machine is an hour ahead of the service's."""
    service.add([now(3700, each) for each in there])
    with command.started("tail", "--follow", "-n", "0", *FAST) as run:
        wait_for_a_poll(service, run)
        service.add([now(3600, "new")])
        assert read(run, 1) == ["new"]
        ended(run)


def test_follow_prints_nothing_from_before_the_start(service: Service, command: Command) -> None:
    """The lookback does not extend before `--start`, not even for late events."""
    service.add([now(200, "before"), now(20, "a")])
    start = f"{datetime.now(UTC) - timedelta(seconds=100):%Y-%m-%dT%H:%M:%SZ}"
    with command.started("tail", "--follow", "--start", start, *FAST) as run:
        assert read(run, 1) == ["a"]
        service.add([now(150, "late"), now(10, "b")])
        assert read(run, 1) == ["b"]
        ended(run)


@pytest.mark.parametrize(
    "fault",
    [
        "status:code=429,retry-after=0@2-4",
        "status:code=500@2-4",
        "reset@2-4",
        "status:code=403,text=%3Chtml%3E@2-4",
        "body:text=%3Chtml%3E@3",
    ],
)
def test_follow_waits_while_the_service_fails(
    fault: str, service: Service, command: Command
) -> None:
    """A warning on stderr has the error and the wait."""
    service.add([now(100, "a")])
    service.add_faults([Fault.parse(fault)])
    settings = {"TAP_AUDIT_EVENTS_MAX_RETRIES": "0"}
    with command.started("tail", "--follow", *FAST, **settings) as run:
        assert read(run, 1) == ["a"]
        service.add([now(20, "b")])
        assert read(run, 1) == ["b"]
        log = ended(run)

    assert "Warning: AE-" in log
    assert "Retrying in 0.1 s" in log


def test_follow_continues_after_refused_cursors(service: Service, command: Command) -> None:
    """If an instant has more events than a page, a cursor is needed. Each event is printed once."""
    refuses = threading.Event()
    refused = Fault(
        kind="status", code=400, only=lambda each: refuses.is_set() and "cursor" in each.params
    )
    service.add([now(100, "a")])
    with command.started("tail", "-f", *FAST, TAP_AUDIT_EVENTS_PAGE_SIZE="2") as run:
        assert read(run, 1) == ["a"]
        service.add_faults([refused])
        refuses.set()
        at = now(20, "")["occurredAt"]
        service.add([an_event(id=f"b{n}", at=at) for n in range(5)])
        warning = next(line for line in run.stderr if b"AE-CURSOR-REFUSED: " in line)
        assert b"Retrying in 0.1 s" in warning
        refuses.clear()
        assert sorted(read(run, 5)) == [f"b{n}" for n in range(5)]
        ended(run)


@pytest.mark.parametrize(("requested", "seconds"), [(600, 600), (2000, 900)])
def test_follow_waits_as_long_as_the_service_says(
    requested: int, seconds: int, service: Service, command: Command
) -> None:
    """It waits although no retries are left, for at most 15 minutes."""
    service.add_faults([Fault.parse(f"status:code=429,retry-after={requested}@1-")])
    retries = {"TAP_AUDIT_EVENTS_MAX_RETRIES": "0"}
    with command.started("tail", "--follow", *FAST, **retries) as run:
        assert f"Retrying in {seconds}.0 s".encode() in run.stderr.readline()
        ended(run)


@pytest.mark.parametrize("at", ["1", "4"])
def test_a_refusal_ends_follow(at: str, service: Service, command: Command) -> None:
    """Once it has begun to read, the error says how many events were printed."""
    service.add([now(100, "a")])
    service.add_faults([Fault.parse(f"status:code=403@{at}-")])

    with command.started("tail", "--follow", *FAST) as run:
        assert run.wait(60) == 1
        error, printed = run.stderr.read(), run.stdout.read().splitlines()
    assert error.startswith(b"AE-403: ")
    assert error.endswith(b" Events printed: %d.\n" % len(printed)) == (at != "1")


def test_follow_with_an_end_is_refused(command: Command) -> None:
    done = command("tail", "--follow", "--end", "2026-01-01T00:00:00Z")

    assert done.exit_code == 1
    assert done.error.startswith("AE-SETTINGS: --follow has no end: ")
