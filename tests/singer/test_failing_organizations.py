"""What is given up if organizations fail: only those that share what fails."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tap_audit_events.run.failures import MAX_FAILURES
from tap_audit_events.sandbox import Fault
from tests.running import Run
from tests.shared_server import SharedServer, a_service

RUNS = 20
REFUSED = Fault(kind="status", code=401)
DOWN = Fault(kind="status", code=503)


class Arrived:
    """Counts the requests for all organizations."""

    def __init__(self) -> None:
        self._count = 0

    def after(self, first: int) -> Callable[[object], bool]:
        """A condition that is true for all requests after the first ones."""

        def is_later(_: object) -> bool:
            self._count += 1
            return self._count > first

        return is_later


def not_started(done: Run) -> list[str]:
    return [line for line in done.errors if " not started, because " in line]


def test_a_part_of_the_service_that_stays_down_keeps_no_organization_from_being_read() -> None:
    """Its organizations are the first in the settings. Requests are bounded in each of the runs."""
    down = [a_service(number, 1) for number in range(60)]
    up = [a_service(number, 1) for number in range(60, 66)]
    for each in down:
        each.add_faults([DOWN])
    state, read = None, []
    with SharedServer([*down, *up]).served() as shared:
        for _ in range(RUNS):
            before = len(shared.several.requests)
            done = shared.run(state=state, max_retries=0)
            requests = len(shared.several.requests) - before
            assert done.exit_code == 1
            state = done.state if done.states else state
            read += [record["organization_id"] for record in done.records]
            if given_up := not_started(done):
                assert requests == MAX_FAILURES
                (line,) = given_up
                assert line.startswith(f"AE-500: {66 - MAX_FAILURES} more organizations were not")
                assert "no page of any organization has arrived" in line
                assert "The next run reads them" not in line
            else:
                assert requests == 66
                assert len(done.errors) == 1 + 60
    assert sorted(read) == [each.organization_id for each in up]


def test_many_organizations_that_fail_are_retried_only_once_each() -> None:
    """Otherwise a run would take hours if half of thousands of organizations are down."""
    services, arrived = [a_service(n, 1) for n in range(130)], Arrived()
    for each in services:
        each.add_faults([Fault(kind="status", code=503, only=arrived.after(1))])
    with SharedServer(services).served() as shared:
        done = shared.run(max_retries=2)
    counts = [len(each.requests) for each in services]
    assert not not_started(done)
    assert {*counts} == {1, 2, 3}
    assert counts.count(2) > 30


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_refused_token_is_sent_once(concurrency: int) -> None:
    """One line says how many other organizations have it."""
    services = [a_service(n, 1, access_token="acme_pat_other") for n in range(50)]
    with SharedServer(services).served() as shared:
        done = shared.run(concurrency=concurrency)
        assert len(shared.several.requests) == 1
    total, error, more = done.errors
    assert "50 of 50" in total
    assert error.startswith("AE-401: ")
    assert more == (
        "AE-401: 49 more organizations were not started, because the service refuses their access"
        " token"
    )
    assert "0 of 50 organizations had new events, 1 failed, 49 not started" in done.log
    assert len(done.log.splitlines()) < 20


def test_a_refused_token_is_read_again_from_its_file_before_organizations_are_given_up(
    tmp_path: Path,
) -> None:
    """The new token is refused as well."""
    token_file, new_file = tmp_path / "token", tmp_path / "new"
    token_file.write_text("acme_pat_old")
    new_file.write_text("acme_pat_new")
    services = [a_service(number, 1) for number in range(50)]

    def replace_token(_: object) -> bool:
        if new_file.exists():
            new_file.replace(token_file)
        return True

    for each in services:
        each.add_faults([Fault(kind="status", code=401, only=replace_token)])
    with SharedServer(services).served() as shared:
        done = shared.run(access_token=None, access_token_file=str(token_file))
        requests = shared.several.requests
    assert [request.headers["authorization"] for request in requests] == [
        "Bearer acme_pat_old",
        "Bearer acme_pat_new",
    ]
    assert not_started(done)[0].startswith("AE-401: 49 more organizations were not started")


def test_a_token_that_is_refused_in_the_middle_of_a_run_is_given_up_soon() -> None:
    """One organization's 401 does not show yet that the token was revoked."""
    services = [a_service(number, 1) for number in range(80)]
    arrived = Arrived()
    for each in services:
        each.add_faults([Fault(kind="status", code=401, only=arrived.after(20))])
    with SharedServer(services).served() as shared:
        done = shared.run(concurrency=2)
        refused = [request for request in shared.several.requests if request.status == 401]
    assert len(done.records) == 20
    assert MAX_FAILURES <= len(refused) <= MAX_FAILURES + 2
    (line,) = not_started(done)
    assert line.endswith("because the service refuses their access token")


@pytest.mark.parametrize(
    "fault",
    [
        "reset@*",
        "status:code=429,retry-after=3600@*",
        "body:text=sign%20in,content-type=text/html@*",
    ],
)
def test_a_fleet_stops_soon_if_nobody_gets_a_page(fault: str) -> None:
    """Whatever stands in the way of all gets few requests, at any concurrency."""
    services = [a_service(number, 1) for number in range(100)]
    for each in services:
        each.add_faults([fault])
    with SharedServer(services).served() as shared:
        done = shared.run(concurrency=32, max_retries=0)
        assert len(shared.several.requests) == MAX_FAILURES
    (line,) = not_started(done)
    assert f": {100 - MAX_FAILURES} more organizations were not started" in line


def test_an_organization_that_hangs_at_the_start_holds_up_no_other() -> None:
    """The first request is sent alone, but not for long."""
    services = [a_service(number, 1) for number in range(5)]
    arrived: list[object] = []

    def is_first(request: object) -> bool:
        arrived.append(request)
        return len(arrived) == 1

    for each in services:
        each.add_faults([Fault(kind="hang", seconds=4, only=is_first)])
    with SharedServer(services).served() as shared:
        shared.run(concurrency=4).raise_for_exit_code()
        first, *others = (request.seconds for request in shared.several.requests)
    assert max(others) < first + 4
