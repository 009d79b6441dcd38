"""`audit-events tail`: the newest events, and those that follow, each once."""

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tap_audit_events import AuditEvents, EventPage
from tap_audit_events.cli.tail import Tail, wait
from tap_audit_events.cli.terminal.process import write_stdout
from tap_audit_events.errors.exceptions import OrganizationsError, service_error
from tap_audit_events.events.instants import parse_instant
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.extraction.failures import MAX_FAILURES
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import HOSTILE, history
from tests.forking import COMMAND, ForkedTap, PipedTap
from tests.shared_server import SHARED, SharedServer, a_service, an_id

FAST = ("--interval", "0.1")


def ids(lines: list[str]) -> list[str]:
    return [json.loads(line)["id"] for line in lines]


def now(seconds_ago: float, name: str) -> dict[str, Any]:
    moment = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    return an_event(id=name, at=f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z")


def read(run: PipedTap, count: int) -> list[str]:
    """The ids of the next lines, as soon as they are there."""
    return ids([run.stdout.readline().decode() for _ in range(count)])


def ended(run: PipedTap, number: signal.Signals = signal.SIGINT) -> str:
    """End it as Ctrl-C does; the rest of the log, after no more output."""
    run.send_signal(number)
    assert run.wait(60) == 128 + number
    assert run.stdout.read() == b""
    return run.stderr.read().decode()


# Without --follow


@pytest.mark.parametrize(("n", "expected"), [("0", 0), ("1", 1), ("7", 7), ("1500", 1500)])
def test_the_newest_events_are_printed_in_ascending_order(
    n: str, expected: int, service: Service, command: Command
) -> None:
    events = history(3000)
    service.add(events)

    done = command("tail", "-n", n).raise_for_exit_code()

    assert ids(done.lines) == [each["id"] for each in events][3000 - expected :]
    assert len(service.requests) <= 2 + 1.25 * 2 + 3  # to find the first, and to read


def test_ten_are_the_default_and_fewer_are_all(service: Service, command: Command) -> None:
    service.add(history(100))
    assert ids(command("tail").lines) == [f"{n:05}" for n in range(90, 100)]
    assert len(command("tail", "-n", "100000").lines) == 100


def test_more_events_in_one_instant_than_are_asked_for(service: Service, command: Command) -> None:
    """The last ones in the service's order."""
    service.add([an_event(id=f"{n:03}") for n in range(50)])

    assert ids(command("tail", "-n", "3").lines) == ["047", "048", "049"]


def test_no_events_are_no_lines(command: Command) -> None:
    assert command("tail").raise_for_exit_code().stdout == b""


def test_events_are_printed_as_they_came(service: Service, command: Command) -> None:
    service.add(HOSTILE)

    done = command("tail").raise_for_exit_code()

    assert [json.loads(line) for line in done.stdout.split(b"\n")[:-1]] == HOSTILE


def test_a_range_has_an_end(service: Service, command: Command) -> None:
    service.add(history(100))
    options = ("--start", "2024-05-06T00:00:00Z", "--end", "2024-05-06T02:24:00Z")

    assert ids(command("tail", *options).lines) == [
        "00000",
        "00001",
        "00002",
        "00003",
        "00004",
        "00005",
    ]
    assert ids(command("tail", "-n", "2", *options).lines) == ["00004", "00005"]


SECONDS = [
    *(an_event(id=f"a{n:02}", at=f"2024-05-31T23:59:{n:02}Z") for n in range(60)),
    *(an_event(id=f"b{n:03}", at="2024-06-01T00:00:00Z") for n in range(500)),
]


@pytest.mark.parametrize(
    "n", ["1", "1500", *(pytest.param(n, marks=pytest.mark.long) for n in ("3", "10", "20", "100"))]
)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--start", "2024-06-01T00:00:00Z"], SECONDS[60:]),  # requests begin a second before it
        (["--start", "2024-05-31T23:59:50.5Z", "--end", "2024-05-31T23:59:59Z"], SECONDS[51:60]),
        (["--end", "2024-05-31T23:59:59.999999999Z"], SECONDS[:60]),
        (["--end", "2024-05-31T23:59:00.5Z"], SECONDS[:1]),
    ],
)
def test_bounds_hold_also_where_requests_are_wider(
    options: list[str], expected: list[dict[str, Any]], n: str, service: Service, command: Command
) -> None:
    """The bounds of requests are whole seconds, and may hold many events that are not wanted."""
    service.add(SECONDS)

    done = command("tail", "-n", n, *options).raise_for_exit_code()

    assert ids(done.lines) == [each["id"] for each in expected][-int(n) :]


def test_many_empty_pages_do_not_end_the_search(service: Service, command: Command) -> None:
    """A service that filters behind its index may send many before the first event."""
    service.add([an_event(id="old", at="2024-05-06T07:08:09Z")])
    service.add_faults([Fault.parse("empty@1-40")])
    assert ids(command("tail", "-n", "1").raise_for_exit_code().lines) == ["old"]


def test_short_and_empty_pages_do_not_end_the_search(service: Service, command: Command) -> None:
    """A page may have fewer events than were requested."""
    service.add(history(300))
    service.add_faults([Fault.parse("short:events=7@1-44"), Fault.parse("empty@5,9-20")])

    done = command("tail", "-n", "200").raise_for_exit_code()

    assert len(done.lines) == 200


@pytest.mark.parametrize("at", ["2", "3", "2,4"])
def test_a_refused_cursor_does_not_end_the_search(
    at: str, service: Service, command: Command
) -> None:
    """Several events share each instant, also at the end of a page."""
    events = [an_event(id=f"{n:05}", at=f"2024-05-06T{n // 400:02}:00:00Z") for n in range(5000)]
    service.add(events)
    service.add_faults([Fault.parse(f"expire@{at}")])

    done = command("tail", "-n", "2500").raise_for_exit_code()

    assert ids(done.lines) == [each["id"] for each in events][-2500:]


def test_refused_cursors_end_the_search_if_its_end_would_move_back(
    service: Service, command: Command
) -> None:
    """Two servers in turn, one of which does not show the event at which the search continues."""
    for when, names in [("1,5,9,13,17", "ba"), ("3,7,11,15,19", "c")]:
        times = {"a": "08.1", "b": "08.9", "c": "08.5"}
        events = [an_event(id=each, at=f"2024-05-06T07:08:{times[each]}Z") for each in names]
        page = json.dumps({"auditEvents": events, "nextCursor": when}).encode()
        service.add_faults([Fault(kind="body", text=page, when=when)])
    service.add_faults([Fault.parse("status:code=400@*/2")])

    assert command("tail", "-n", "9").error.startswith("AE-CURSOR-REFUSED: ")
    assert len(service.requests) == 4
    service.violations.clear()  # the cursors of these pages are not the sandbox's


def test_a_failing_service_ends_it(service: Service, command: Command) -> None:
    service.add_faults([Fault.parse("status:code=500@*")])

    done = command("tail", TAP_AUDIT_EVENTS_MAX_RETRIES="0")

    assert done.exit_code == 1
    assert done.error.startswith("AE-500: ")


# With --follow


def test_events_are_printed_as_they_appear(service: Service, command: Command) -> None:
    """Also one that appears late, before all that were printed; each once."""
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


def test_follow_can_begin_with_nothing(service: Service, command: Command) -> None:
    """What is within the lookback already is not printed, and nothing older is read."""
    service.add([now(60, "old")])
    with command.started("tail", "-f", "-n", "0", *FAST) as run:
        wait_for_a_look(service, run)
        service.add([now(10, "new")])
        assert read(run, 1) == ["new"]
        ended(run, signal.SIGTERM)

    ascending = [each.params for each in service.requests if each.params["order"] == "asc"]
    assert all("startTime" in params for params in ascending)


def test_what_appears_during_the_first_request_is_printed(
    service: Service, command: Command
) -> None:
    """The events that are new are those since the command was started."""
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
def test_follow_does_not_need_the_right_time(
    there: list[str], service: Service, command: Command
) -> None:
    """If this machine's clock is an hour ahead, new events are new all the same."""
    service.add([now(3700, each) for each in there])
    with command.started("tail", "--follow", "-n", "0", *FAST) as run:
        wait_for_a_look(service, run)
        service.add([now(3600, "new")])
        assert read(run, 1) == ["new"]
        ended(run)


def test_follow_prints_nothing_from_before_the_start(service: Service, command: Command) -> None:
    """The lookback ends there, and brings nothing from before it later either."""
    service.add([now(200, "before"), now(20, "a")])
    start = f"{datetime.now(UTC) - timedelta(seconds=100):%Y-%m-%dT%H:%M:%SZ}"
    with command.started("tail", "--follow", "--start", start, *FAST) as run:
        assert read(run, 1) == ["a"]
        service.add([now(150, "late"), now(10, "b")])
        assert read(run, 1) == ["b"]
        ended(run)


def wait_for_a_look(service: Service, run: PipedTap) -> None:
    """Wait until it has read what is there: it looks for more then, and meets an error."""
    service.add_faults([Fault.parse("status:code=503@3")])
    assert b"Retry 1 of 8" in run.stderr.readline()


@pytest.mark.parametrize(
    "fault",
    ["status:code=429,retry-after=0@2-4", "status:code=500@2-4", "reset@2-4", "cut:bytes=100@3"],
)
def test_it_waits_while_the_service_fails(fault: str, service: Service, command: Command) -> None:
    """And says so on stderr."""
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


def test_it_continues_after_refused_cursors(service: Service, command: Command) -> None:
    """More events at one time than a page holds need a cursor. None is lost, none comes twice."""
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


def of_two(tmp_path: Path, shared: SharedServer) -> Command:
    """The command with two organizations, without retries of its own."""
    return of_several(2, tmp_path, shared)


def of_several(count: int, tmp_path: Path, shared: SharedServer) -> Command:
    """The same with any number of organizations."""
    items = [{"organization_id": an_id(number)} for number in range(count)]
    settings = {"base_url": shared.base_url, "access_token": SHARED, "max_retries": 0}
    return Command(tmp_path, settings | {"organizations": json.dumps(items)})


def test_the_events_of_several_organizations_are_in_the_order_of_time(tmp_path: Path) -> None:
    """The newest of all of them."""
    first, second = services = [a_service(number, 0) for number in range(2)]
    first.add([now(100, "a"), now(60, "c")])
    second.add([now(80, "b"), now(40, "d")])
    with SharedServer(services).served() as served:
        done = of_two(tmp_path, served)("tail", "-n", "3")
    assert ids(done.stdout.decode().splitlines()) == ["b", "c", "d"]


@pytest.mark.parametrize("fault", ["status:code=500", "status:code=429,retry-after=0"])
def test_it_waits_while_one_of_several_organizations_fails(fault: str, tmp_path: Path) -> None:
    """At first, and later, while the events of the other one are printed; each event once."""
    first, second = services = [a_service(number, 0) for number in range(2)]
    first.add([now(100, "a")])
    second.add([now(90, "b")])
    second.add_faults([Fault.parse(f"{fault}@2-4")])
    with SharedServer(services).served() as served:
        command = of_two(tmp_path, served)
        with command.started("tail", "--follow", *FAST) as run:
            assert read(run, 2) == ["a", "b"]
            failing = len(second.requests) + 1
            second.add_faults([Fault.parse(f"{fault}@{failing}-{failing + 5}")])
            first.add([now(20, "c")])
            assert read(run, 1) == ["c"]
            second.add([now(10, "d")])
            assert read(run, 1) == ["d"]
            log = ended(run)

    assert f"Warning: {an_id(1)}: AE-" in log
    assert "Retrying in 0.1 s" in log


@pytest.mark.parametrize("count", ["0", "1"])
def test_what_appears_while_it_waits_to_begin_is_printed(count: str, tmp_path: Path) -> None:
    """One of two organizations fails all the time; the other one's new events come all the same."""
    first, second = services = [a_service(number, 0) for number in range(2)]
    first.add([now(100, "a"), now(99, "b")])
    fails = threading.Event()

    def notes(request: ReceivedRequest) -> bool:
        if request.number > 2:
            fails.set()
        return request.number >= 2

    second.add_faults([Fault(kind="status", code=500, only=notes)])
    with (
        SharedServer(services).served() as served,
        of_two(tmp_path, served).started("tail", "--follow", "-n", count, *FAST) as run,
    ):
        assert fails.wait(60)
        first.add([now(0, f"new {n}") for n in range(3)])
        expected = [*["b"][: int(count)], "new 0", "new 1", "new 2"]
        assert read(run, len(expected)) == expected
        ended(run)


@pytest.mark.parametrize("failing", [1, 4 * MAX_FAILURES])
def test_a_late_event_is_printed_while_other_organizations_fail_from_the_start(
    failing: int, tmp_path: Path
) -> None:
    """It is dated before the start, but appeared after the first look: `-n 0` does not hide it.

    So many may fail that others are not started.
    """
    first, *others = services = [a_service(number, 0) for number in range(failing + 2)]
    first.add([now(50, "old")])
    fails = threading.Event()

    def notes(request: ReceivedRequest) -> bool:
        if request.number > 2:
            fails.set()
        return True

    for service in others[:failing]:
        service.add_faults([Fault(kind="status", code=500, only=notes)])
    with (
        SharedServer(services).served() as served,
        of_several(len(services), tmp_path, served).started(
            "tail", "--follow", "-n", "0", *FAST
        ) as run,
    ):
        assert fails.wait(60)
        first.add([now(60, "late")])
        first.add([now(0, "new")])
        assert read(run, 2) == ["late", "new"]
        ended(run)


def test_a_refusal_by_one_of_several_organizations_ends_it(tmp_path: Path) -> None:
    """Also while another one fails for a time."""
    services = [a_service(number, 0) for number in range(2)]
    for service, code in zip(services, (500, 403), strict=True):
        service.add([now(100, "a")])
        service.add_faults([Fault.parse(f"status:code={code}@2-")])
    with (
        SharedServer(services).served() as served,
        of_two(tmp_path, served).started("tail", "--follow", *FAST) as run,
    ):
        assert run.wait(60) == 1
        assert run.stderr.read().startswith(b"AE-ORGANIZATIONS: ")


@pytest.mark.parametrize("follow", [(), ("--follow",)])
def test_events_are_printed_although_another_organization_fails_from_the_start(
    follow: tuple[str, ...], tmp_path: Path
) -> None:
    """The first one of three; the error of the run names it."""
    first, *others = services = [a_service(number, 0) for number in range(3)]
    first.add_faults([Fault.parse("status:code=500@*")])
    for number, service in enumerate(others):
        service.add([now(100 - number, f"{number}")])
    with (
        SharedServer(services).served() as served,
        of_several(3, tmp_path, served).started("tail", *follow, *FAST) as run,
    ):
        assert read(run, 2) == ["0", "1"]
        if follow:
            others[1].add([now(10, "new")])
            assert read(run, 1) == ["new"]
            ended(run)
        else:
            assert run.wait(60) == 1
            assert f"\nAE-500: {an_id(0)}: ".encode() in run.stderr.read()


def test_it_ends_after_ten_organizations_that_fail(tmp_path: Path) -> None:
    """As any run does: the others would fail as well."""
    services = [a_service(number, 0) for number in range(MAX_FAILURES + 2)]
    for service in services:
        service.add_faults([Fault.parse("status:code=500@*")])
    with SharedServer(services).served() as served:
        done = of_several(len(services), tmp_path, served)("tail")
    assert done.exit_code == 1
    assert "AE-ORGANIZATIONS: " in done.log
    assert "AE-500: 2 more organizations were not started" in done.log
    assert sum(len(service.requests) for service in services) == MAX_FAILURES


def test_a_token_that_is_limited_ends_no_organization_with_another(tmp_path: Path) -> None:
    """Its organizations come first in the settings, and one failure of another one follows."""
    services = [a_service(n, 0, access_token="acme_pat_limited") for n in range(MAX_FAILURES + 2)]
    for service in services:
        service.add_faults([Fault.parse("status:code=429,retry-after=86400@*")])
    services += [a_service(MAX_FAILURES + n, 0) for n in (2, 3)]
    services[-2].add_faults([Fault.parse("status:code=429,retry-after=86400@1")])
    services[-1].add([now(50, "a")])
    with SharedServer(services).served() as served:
        items = json.dumps(served.with_tokens)
        command = Command(tmp_path, {"base_url": served.base_url, "organizations": items})
        with command.started("tail", "--follow", *FAST) as run:
            assert read(run, 1) == ["a"]
            ended(run)


def test_ten_organizations_that_are_refused_do_not_end_it(tmp_path: Path) -> None:
    """The refusal of one says nothing about the others, whose events are printed."""
    services = [a_service(number, 0) for number in range(MAX_FAILURES + 2)]
    for number in (0, -1):
        services[number].add([now(50 - number, f"{number}")])
    for service in services[1:-1]:
        service.add_faults([Fault.parse("status:code=403@*")])
    with SharedServer(services).served() as served:
        done = of_several(len(services), tmp_path, served)("tail")
    assert done.exit_code == 1
    assert ids(done.lines) == ["-1", "0"]
    assert f": {MAX_FAILURES} of {len(services)}. " in done.log


@pytest.mark.parametrize(("n", "exit_code"), [("1", 0), ("10", 1)])
def test_it_fails_if_older_events_than_the_printed_ones_may_be_among_the_newest(
    n: str, exit_code: int, tmp_path: Path
) -> None:
    """The search for the newest events fails for one of two organizations, which is read later."""
    first, second = services = [a_service(0, 0), a_service(1, 20)]
    first.add([now(100, "newest")])
    second.add_faults([Fault.parse("status:code=500@1")])
    with SharedServer(services).served() as served:
        done = of_two(tmp_path, served)("tail", "-n", n)
    assert ids(done.lines) == ["newest"]
    assert done.exit_code == exit_code
    assert (f"\nAE-500: {an_id(1)}: " in done.log) == (exit_code == 1)


Try = tuple[list[EventPage], OrganizationsError | None]

BEGUN_AT = parse_instant("2026-01-02T00:00:00Z")


def old_page(organization_id: str, name: str) -> EventPage:
    """A page with one event from before the start."""
    instants = [parse_instant("2026-01-01T00:00:00Z")]
    shape = RecordShape()
    return EventPage(
        [name.encode()], instants, organization_id=organization_id, shape=shape, state=dict
    )


def unread(*failed: str, not_started: Sequence[str] = ()) -> OrganizationsError:
    errors = {name: service_error("AE-500") for name in failed}
    return OrganizationsError(errors, 3, not_started=not_started)


@pytest.mark.parametrize(
    ("tries", "expected"),
    [
        ([([], unread("a")), ([old_page("a", "old")], None)], []),
        ([([], unread("a", not_started=["b"])), ([old_page("b", "old")], None)], []),
        ([([], unread("a")), ([old_page("b", "late")], None)], ["late"]),
        ([([], unread("a")), ([], unread("b")), ([old_page("b", "late")], None)], ["late"]),
    ],
)
def test_an_old_event_is_new_if_its_organization_was_read_before(
    tries: list[Try], expected: list[str]
) -> None:
    """Even if that fails later; `-n 0` hides those of one that failed or was not started so far."""
    left = iter(tries)

    def pages(state: object) -> Generator[EventPage, None, None]:
        del state
        found, error = next(left)
        yield from found
        if error is not None:
            raise error

    printed: list[bytes] = []
    tail = Tail(cast("AuditEvents", SimpleNamespace(pages=pages)), printed.extend, BEGUN_AT)
    for _ in tries[1:]:
        with pytest.raises(OrganizationsError):
            tail.begin(0)
    tail.begin(0)
    assert [text.decode() for text in printed] == expected


def test_a_search_that_fails_for_one_organization_is_told_and_does_not_end_a_follower(
    tmp_path: Path,
) -> None:
    """Its older events are not printed, although there are fewer events than were asked for."""
    first, second = services = [a_service(number, 0) for number in range(2)]
    first.add([now(5000, "first")])
    second.add([now(9000, "older")])
    second.add_faults([Fault.parse("status:code=500@1")])
    with (
        SharedServer(services).served() as served,
        of_two(tmp_path, served).started("tail", "--follow", *FAST) as run,
    ):
        assert read(run, 1) == ["first"]
        second.add([now(0, "new")])
        assert read(run, 1) == ["new"]
        log = ended(run)
    assert "read to their end: 1 of 2. Of these organizations, only events since " in log


def test_an_error_names_the_organization(tmp_path: Path) -> None:
    """Its window and what the service said do not tell which one it is about."""
    services = [a_service(number, 0) for number in range(2)]
    services[1].add_faults([Fault.parse("status:code=403@*")])
    with SharedServer(services).served() as served:
        done = of_two(tmp_path, served)("tail", "-n", "3")
    assert done.exit_code == 1
    assert f"\nAE-403: {an_id(1)}: " in done.log


def test_a_retry_names_the_organization(tmp_path: Path) -> None:
    """Also while the newest events are searched for."""
    services = [a_service(number, 0) for number in range(2)]
    services[1].add_faults([Fault.parse("status:code=429,retry-after=0@1")])
    with SharedServer(services).served() as served:
        done = of_two(tmp_path, served)("tail", "-n", "3", TAP_AUDIT_EVENTS_MAX_RETRIES="1")
    assert done.exit_code == 0
    assert f"Warning: {an_id(1)}: Retry 1 of 1 in " in done.log


@pytest.mark.parametrize(("requested", "seconds"), [(600, 600), (2000, 900)])
def test_it_waits_as_long_as_the_service_says(
    requested: int, seconds: int, service: Service, command: Command
) -> None:
    """Also if no retries of the request are left, or a run would end; at most 15 minutes."""
    service.add_faults([Fault.parse(f"status:code=429,retry-after={requested}@1-")])
    retries = {"TAP_AUDIT_EVENTS_MAX_RETRIES": "0"}
    with command.started("tail", "--follow", *FAST, **retries) as run:
        assert f"Retrying in {seconds}.0 s".encode() in run.stderr.readline()
        ended(run)


def test_the_longest_wait_of_several_organizations_counts(tmp_path: Path) -> None:
    services = [a_service(number, 0) for number in range(2)]
    for service, fault in zip(services, ("code=429,retry-after=2000", "code=500"), strict=True):
        service.add_faults([Fault.parse(f"status:{fault}@1-")])
    with SharedServer(services).served() as served:
        command = of_two(tmp_path, served)
        with command.started("tail", "--follow", *FAST) as run:
            log = sorted(run.stderr.readline().decode() for _ in services)
            ended(run)

    assert [f"{an_id(n)}: AE-" in line for n, line in enumerate(log)] == [True, True]
    assert all(line.endswith("Retrying in 900.0 s\n") for line in log)


def test_a_wait_is_not_cut_short_by_an_old_wakeup(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of the run may leave one behind."""
    times = iter([0.0, 0.0, 59.99, 60.0])
    clock = SimpleNamespace(monotonic=lambda: next(times))
    monkeypatch.setattr("tap_audit_events.cli.tail.time", clock)
    stop = Stop()
    stop.wakeups.put(None)
    wait(60.0, stop)
    assert list(times) == []


@pytest.mark.parametrize("at", ["1", "2", "4"])
def test_a_refusal_ends_it(at: str, service: Service, command: Command) -> None:
    service.add([now(100, "a")])
    service.add_faults([Fault.parse(f"status:code=403@{at}-")])

    with command.started("tail", "--follow", *FAST) as run:
        assert run.wait(60) == 1
        assert run.stderr.read().startswith(b"AE-403: ")


def test_follow_has_no_end(command: Command) -> None:
    done = command("tail", "--follow", "--end", "2026-01-01T00:00:00Z")

    assert done.exit_code == 1
    assert done.error.startswith("AE-SETTINGS: --follow has no end: ")


# A closed pipe


@pytest.mark.parametrize(
    "arguments", [["tail"], ["count", "--by", "day"], ["verify", "--against", "a.jsonl"]]
)
def test_a_closed_stdout_is_one_line(
    arguments: list[str], service: Service, command: Command
) -> None:
    """Closed before the start, as by `>&-`."""
    service.add(history(3))
    (command.folder / "a.jsonl").write_bytes(b"")
    done = command.under(["sh", "-c", 'exec "$@" >&-', "sh"], *arguments)
    assert done.exit_code == 1
    assert done.error.startswith("AE-EXPORT: The output cannot be written: stdout: Bad file")


@pytest.mark.parametrize("arguments", [["-n", "100000"], ["--follow", *FAST]])
def test_a_reader_that_has_enough_ends_it_quietly(
    arguments: list[str], service: Service, command: Command
) -> None:
    service.add([*history(3000), now(50, "a")])
    with command.started("tail", *arguments) as run:
        run.stdout.readline()
        run.stdout.close()
        for n in range(100):
            service.add([now(20, f"{n}")])
        assert run.wait(60) == 0
        assert run.stderr.read() == b""
        run.stdout = open_nothing()


@pytest.mark.parametrize("fault", [[], ["status:code=500@3-"]])
def test_it_ends_when_nobody_reads_although_nothing_is_new(
    fault: list[str], service: Service, command: Command
) -> None:
    """Else it would send requests for ever, also while the service fails."""
    service.add([now(50, "a")])
    service.add_faults(map(Fault.parse, fault))
    with command.started("tail", "--follow", *FAST, TAP_AUDIT_EVENTS_MAX_RETRIES="0") as run:
        assert read(run, 1) == ["a"]
        run.stdout.close()
        assert run.wait(60) == 0
        run.stdout = open_nothing()


def test_it_ends_when_nobody_reads_its_socket(service: Service, command: Command) -> None:
    """As some programs, such as Node.js, give one to the processes that they start."""
    service.add([now(50, "a")])
    ours, its_stdout = socket.socketpair()
    with (command.folder / "log").open("wb") as log, its_stdout:
        tap = ForkedTap(
            ("tail", "--follow", *FAST),
            environment=command.variables(),
            folder=command.folder,
            streams=(its_stdout.fileno(), log.fileno()),
            module=COMMAND,
        )
    try:
        ours.recv(1 << 16)
        ours.close()
        assert tap.wait(60) == 0
    finally:
        tap.kill()


def test_a_pipe_that_does_not_block_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a program makes it that does several things at a time; it holds less than this."""
    data = bytes(5_000_000)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with open(reading, "rb") as reader, ThreadPoolExecutor() as thread:  # noqa: PTH123 - a pipe
        read = thread.submit(reader.read)
        with open(writing, "wb") as stdout:  # noqa: PTH123 - a pipe
            monkeypatch.setattr(sys, "stdout", stdout)
            write_stdout(data)
        assert read.result() == data


def open_nothing() -> Any:
    return open("/dev/null", "rb")  # noqa: PTH123 - closed with the run
