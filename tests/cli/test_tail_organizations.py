"""`audit-events tail` of several organizations: events in the order of time, even if some fail."""

import json
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tap_audit_events import AuditEvents, EventPage
from tap_audit_events.cli.tail import Tail
from tap_audit_events.errors.exceptions import OrganizationsError, service_error
from tap_audit_events.events.instants import parse_instant
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.run.failures import MAX_FAILURES
from tap_audit_events.sandbox import Fault
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.cli.command import Command
from tests.cli.tailing import FAST, ended, ids, now, of_several, of_two, read
from tests.shared_server import SharedServer, a_service, an_id


def test_the_events_of_several_organizations_are_in_the_order_of_time(tmp_path: Path) -> None:
    """`-n 3` prints the three newest events of all organizations."""
    first, second = services = [a_service(number, 0) for number in range(2)]
    first.add([now(100, "a"), now(60, "c")])
    second.add([now(80, "b"), now(40, "d")])
    with SharedServer(services).served() as served:
        done = of_two(tmp_path, served)("tail", "-n", "3")
    assert ids(done.stdout.decode().splitlines()) == ["b", "c", "d"]


@pytest.mark.parametrize("fault", ["status:code=500", "status:code=429,retry-after=0"])
def test_follow_waits_while_one_of_several_organizations_fails(fault: str, tmp_path: Path) -> None:
    """One organization fails at first, and again later; each event is printed once."""
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
def test_new_events_are_printed_while_the_start_is_retried(count: str, tmp_path: Path) -> None:
    """One of two organizations fails all the time; the new events of the other are printed."""
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


@pytest.mark.parametrize("failing", [1, MAX_FAILURES - 1])
def test_a_late_event_is_printed_while_other_organizations_fail_from_the_start(
    failing: int, tmp_path: Path
) -> None:
    """The event is dated before the start, but appears after the first read: `-n 0` prints it."""
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


def test_a_refusal_by_one_of_several_organizations_ends_follow(tmp_path: Path) -> None:
    """Follow ends although the other organization has an error that is retried."""
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
    """The first of three organizations fails, and the error of the run names it."""
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


def test_tail_ends_after_ten_organizations_that_fail(tmp_path: Path) -> None:
    """The others would probably fail as well, so they are not started."""
    services = [a_service(number, 0) for number in range(MAX_FAILURES + 2)]
    for service in services:
        service.add_faults([Fault.parse("status:code=500@*")])
    with SharedServer(services).served() as served:
        done = of_several(len(services), tmp_path, served)("tail")
    assert done.exit_code == 1
    assert "AE-ORGANIZATIONS: " in done.log
    assert "AE-500: 2 more organizations were not started" in done.log
    assert sum(len(service.requests) for service in services) == MAX_FAILURES


def test_a_rate_limited_token_does_not_end_organizations_with_another_token(tmp_path: Path) -> None:
    """Its organizations are first in the settings; an organization of another token fails once."""
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


def test_ten_organizations_that_are_refused_do_not_end_tail(tmp_path: Path) -> None:
    """A refusal says nothing about the other organizations, whose events are printed."""
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
def test_tail_fails_if_events_older_than_the_printed_ones_may_be_among_the_newest(
    n: str, exit_code: int, tmp_path: Path
) -> None:
    """One of two organizations fails during the search for the newest events, and is read later."""
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
    reasons = dict.fromkeys(not_started, ("AE-500", "it is down"))
    return OrganizationsError(errors, 3, not_started=reasons)


@pytest.mark.parametrize(
    ("tries", "expected"),
    [
        ([([], unread("a")), ([old_page("a", "old")], None)], []),
        ([([], unread("a", not_started=["b"])), ([old_page("b", "old")], None)], []),
        ([([], unread("a")), ([old_page("b", "late")], None)], ["late"]),
        ([([], unread("a")), ([], unread("b")), ([old_page("b", "late")], None)], ["late"]),
    ],
)
def test_an_old_event_is_printed_if_its_organization_was_read_before(
    tries: list[Try], expected: list[str]
) -> None:
    """`-n 0` hides the old events of an organization only until it has been read once."""
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


def test_a_search_that_fails_for_one_organization_is_logged_and_does_not_end_follow(
    tmp_path: Path,
) -> None:
    """The older events of that organization are not printed, although `-n` has room for them."""
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
    """Neither the window nor the message of the service says which organization it is about."""
    services = [a_service(number, 0) for number in range(2)]
    services[1].add_faults([Fault.parse("status:code=403@*")])
    with SharedServer(services).served() as served:
        done = of_two(tmp_path, served)("tail", "-n", "3")
    assert done.exit_code == 1
    assert f"\nAE-403: {an_id(1)}: " in done.log


def test_a_retry_names_the_organization(tmp_path: Path) -> None:
    """The retry happens while the newest events are searched for."""
    services = [a_service(number, 0) for number in range(2)]
    services[1].add_faults([Fault.parse("status:code=429,retry-after=0@1")])
    with SharedServer(services).served() as served:
        done = of_two(tmp_path, served)("tail", "-n", "3", TAP_AUDIT_EVENTS_MAX_RETRIES="1")
    assert done.exit_code == 0
    assert f"Warning: {an_id(1)}: Retry 1 of 1 in " in done.log


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
