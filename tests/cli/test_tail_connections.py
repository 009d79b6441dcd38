"""`audit-events tail` finds its start and polls as parallel as a run, over the same connections."""

import threading
from pathlib import Path

from tap_audit_events.sandbox import Fault
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.cli.tailing import FAST, ended, ids, now, of_several, read
from tests.shared_server import SharedServer, a_service

COUNT = 12
CONCURRENCY = 6
POLLS = 20


def test_the_start_is_searched_for_side_by_side(tmp_path: Path) -> None:
    """Several connections are needed, because no response arrives at once."""
    services = [a_service(number, 0) for number in range(COUNT)]
    for number, service in enumerate(services):
        service.add([now(100 - number, f"{number}")])
        service.add_faults([Fault(kind="hang", seconds=0.5, when="1")])
    with SharedServer(services).served() as served:
        command = of_several(COUNT, tmp_path, served)
        done = command("tail", "-n", "2", TAP_AUDIT_EVENTS_CONCURRENCY=str(CONCURRENCY))
    assert ids(done.lines) == ["10", "11"]
    first = [service.requests[0] for service in services]
    assert {request.params["order"] for request in first} == {"desc"}
    assert 1 < sum(not request.reused for request in first) <= CONCURRENCY


def test_every_poll_uses_the_same_connections(tmp_path: Path) -> None:
    """So their number does not grow with the polls, and neither does that of open files."""
    services = [a_service(number, 0) for number in range(COUNT)]
    services[0].add([now(100, "old")])
    polled = threading.Event()

    def notes(request: ReceivedRequest) -> bool:
        if request.number > POLLS:
            polled.set()
        return False

    services[-1].add_faults([Fault(kind="status", only=notes)])
    with SharedServer(services).served() as served:
        command = of_several(COUNT, tmp_path, served)
        settings = {"TAP_AUDIT_EVENTS_CONCURRENCY": str(CONCURRENCY)}
        with command.started("tail", "--follow", *FAST, **settings) as run:
            assert read(run, 1) == ["old"]
            assert polled.wait(60)
            ended(run)
    opened = [each for service in services for each in service.requests if not each.reused]
    assert len(opened) <= CONCURRENCY
