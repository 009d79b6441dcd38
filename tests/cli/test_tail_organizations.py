"""`audit-events tail` of several organizations: events in the order of time, even if some fail."""

import threading
from pathlib import Path

import pytest

from tap_audit_events.run.failures import MAX_FAILURES
from tap_audit_events.sandbox import Fault
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.cli.tailing import ended, following, ids, now, read, tail
from tests.shared_server import a_service, an_id


def test_the_events_of_several_organizations_are_in_the_order_of_time(tmp_path: Path) -> None:
    """`-n 3` prints the three newest events of all organizations."""
    first, second = services = [a_service(number, 0) for number in range(2)]
    first.add([now(100, "a"), now(60, "c")])
    second.add([now(80, "b"), now(40, "d")])
    assert ids(tail(services, tmp_path, "-n", "3").lines) == ["b", "c", "d"]


def test_follow_waits_while_one_of_several_organizations_fails(tmp_path: Path) -> None:
    """One organization fails at first, and again later; each event is printed once."""
    fault = "status:code=429,retry-after=0"
    first, second = services = [a_service(number, 0) for number in range(2)]
    first.add([now(100, "a")])
    second.add([now(90, "b")])
    second.add_faults([Fault.parse(f"{fault}@2-4")])
    with following(services, tmp_path) as run:
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


def test_new_events_are_printed_while_the_start_is_retried(tmp_path: Path) -> None:
    """One of two organizations fails all the time; the new events of the other are printed."""
    first, second = services = [a_service(number, 0) for number in range(2)]
    first.add([now(100, "a"), now(99, "b")])
    fails = threading.Event()

    def notes(request: ReceivedRequest) -> bool:
        if request.number > 2:
            fails.set()
        return request.number >= 2

    second.add_faults([Fault(kind="status", code=500, only=notes)])
    with following(services, tmp_path, "-n", "1") as run:
        assert fails.wait(60)
        first.add([now(0, f"new {n}") for n in range(3)])
        assert read(run, 4) == ["b", "new 0", "new 1", "new 2"]
        ended(run)


def test_a_late_event_is_printed_while_other_organizations_fail_from_the_start(
    tmp_path: Path,
) -> None:
    """The event is dated before the start, but appears after the first read: `-n 0` prints it."""
    failing = MAX_FAILURES - 1
    first, *others = services = [a_service(number, 0) for number in range(failing + 2)]
    first.add([now(50, "old")])
    fails = threading.Event()

    def notes(request: ReceivedRequest) -> bool:
        if request.number > 2:
            fails.set()
        return True

    for service in others[:failing]:
        service.add_faults([Fault(kind="status", code=500, only=notes)])
    with following(services, tmp_path, "-n", "0") as run:
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
    with following(services, tmp_path) as run:
        assert run.wait(60) == 1
        assert run.stderr.read().startswith(b"AE-ORGANIZATIONS: ")


def test_events_are_printed_although_another_organization_fails_from_the_start(
    tmp_path: Path,
) -> None:
    """The first of three organizations fails, and the error of the run names it."""
    first, *others = services = [a_service(number, 0) for number in range(3)]
    first.add_faults([Fault.parse("status:code=500@*")])
    for number, service in enumerate(others):
        service.add([now(100 - number, f"{number}")])
    done = tail(services, tmp_path)
    assert (ids(done.lines), done.exit_code) == (["0", "1"], 1)
    assert f"\nAE-500: {an_id(0)}: " in done.log

    with following(services, tmp_path) as run:
        assert read(run, 2) == ["0", "1"]
        others[1].add([now(10, "new")])
        assert read(run, 1) == ["new"]
        ended(run)


@pytest.mark.parametrize(("n", "exit_code"), [("1", 0), ("10", 1)])
def test_tail_fails_if_events_older_than_the_printed_ones_may_be_among_the_newest(
    n: str, exit_code: int, tmp_path: Path
) -> None:
    """One of two organizations fails during the search for the newest events, and is read later."""
    first, second = services = [a_service(0, 0), a_service(1, 20)]
    first.add([now(100, "newest")])
    second.add_faults([Fault.parse("status:code=500@1")])
    done = tail(services, tmp_path, "-n", n)
    assert ids(done.lines) == ["newest"]
    assert done.exit_code == exit_code
    assert (f"\nAE-500: {an_id(1)}: " in done.log) == (exit_code == 1)


def test_a_search_that_fails_for_one_organization_is_logged_and_does_not_end_follow(
    tmp_path: Path,
) -> None:
    """The older events of that organization are not printed, although `-n` has room for them."""
    first, second = services = [a_service(number, 0) for number in range(2)]
    first.add([now(5000, "first")])
    second.add([now(9000, "older")])
    second.add_faults([Fault.parse("status:code=500@1")])
    with following(services, tmp_path) as run:
        assert read(run, 1) == ["first"]
        second.add([now(0, "new")])
        assert read(run, 1) == ["new"]
        log = ended(run)
    assert "read to their end: 1 of 2. Of these organizations, only events since " in log
