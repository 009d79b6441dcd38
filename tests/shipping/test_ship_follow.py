"""`audit-events ship --follow`: events as they appear, each once, whatever either side does."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.cli.command import Command
from tests.cli.failing import refused
from tests.cli.tailing import FAST, ended, now
from tests.forking import PipedTap
from tests.shipping.receiver import Closes, Receiver, Status
from tests.shipping.ship import NO_RETRIES, STATE, arguments, ship, shipped_later

STOPPED = "AE-STOPPED: Stopped by a signal, SIGINT."


@contextmanager
def following(command: Command, to: Receiver, *more: str, **environment: str) -> Iterator[PipedTap]:
    with command.started(*arguments(to, "--follow", *FAST, *more), **environment) as run:
        yield run


def arrives(receiver: Receiver, *names: str) -> None:
    """Wait until these events have arrived, after those before."""
    receiver.wait_until(lambda: set(names) <= set(receiver.ids))


def wait_for_polls(service: Service, count: int) -> None:
    """Wait until the service has received so many more requests."""
    first = len(service.requests)
    has_come = threading.Event()

    def counts(request: ReceivedRequest) -> bool:
        if request.number > first + count:
            has_come.set()
        return False

    service.add_faults([Fault(kind="reset", only=counts)])
    assert has_come.wait(60)


def test_events_are_sent_as_they_appear(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """A late event, dated before all others, is sent too, and each event once."""
    service.add([now(1000, "a"), now(50, "b")])
    with following(command, receiver) as run:
        arrives(receiver, "a", "b")
        service.add([now(20, "c")])
        arrives(receiver, "c")
        service.add([now(70, "late")])
        arrives(receiver, "late")
        log = ended(run)

    assert receiver.ids == ["a", "b", "c", "late"]
    assert STOPPED in log
    assert shipped_later(command, receiver) == []


def test_a_quiet_check_touches_neither_the_receiver_nor_the_state(
    service: Service, command: Command, receiver: Receiver
) -> None:
    service.add([now(1000, "a"), now(50, "b")])
    with following(command, receiver) as run:
        arrives(receiver, "b")
        wait_for_polls(service, 2)
        before = (command.folder / STATE).stat()
        wait_for_polls(service, 5)
        after = (command.folder / STATE).stat()
        ended(run, signal.SIGTERM)

    assert len(receiver.requests) == 1
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_outage_of_the_receiver_is_waited_out(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """Although no retries are left: it may last as long as it will."""
    service.add([now(50, "a")])
    with following(command, receiver, **NO_RETRIES) as run:
        arrives(receiver, "a")
        receiver.stop()
        service.add([now(20, "b")])
        assert b"Retrying in" in run.stderr.readline()
        assert b"Retrying in" in run.stderr.readline()
        receiver.start()
        arrives(receiver, "b")
        receiver.faults += [Status(503), Closes(), Status(429, {"Retry-After": "1"})]
        service.add([now(10, "c")])
        arrives(receiver, "c")
        ended(run)

    assert receiver.ids == ["a", "b", "c"]


@pytest.mark.parametrize("retry_after", ["600", "5000"])
def test_a_receiver_is_given_at_most_15_minutes(
    retry_after: str, service: Service, command: Command, receiver: Receiver
) -> None:
    service.add([now(50, "a")])
    receiver.faults.append(Status(503, {"Retry-After": retry_after}))
    with following(command, receiver) as run:
        seconds = min(int(retry_after), 900)
        assert f"Retrying in {seconds}.0 s".encode() in run.stderr.readline()
        ended(run)


@pytest.mark.parametrize("kind", ["status:code=500", "status:code=429,retry-after=0", "reset"])
def test_an_outage_of_the_service_is_waited_out(
    kind: str, service: Service, command: Command, receiver: Receiver
) -> None:
    """The warning names the service's error, not the receiver."""
    service.add([now(50, "a")])
    service.add_faults([Fault.parse(f"{kind}@1-3")])
    with following(command, receiver, **NO_RETRIES) as run:
        warning = run.stderr.readline().decode()
        arrives(receiver, "a")
        service.add([now(20, "b")])
        arrives(receiver, "b")
        ended(run)

    assert "AE-RECEIVER" not in warning
    assert receiver.ids == ["a", "b"]


def test_a_secret_may_be_replaced_while_it_runs(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """The receiver accepts only the new one from then on."""
    file = command.folder / "secret"
    file.write_text("old-secret")
    receiver.authorization = "Bearer old-secret"
    service.add([now(50, "a")])
    with following(command, receiver, "--secret-file", "secret") as run:
        arrives(receiver, "a")
        file.write_text("new-secret")
        receiver.authorization = "Bearer new-secret"
        service.add([now(20, "b")])
        arrives(receiver, "b")
        ended(run)

    assert receiver.ids == ["a", "b"]


@pytest.mark.parametrize("status", [401, 404])
def test_a_refusal_ends_it(
    status: int, service: Service, command: Command, receiver: Receiver
) -> None:
    service.add([now(50, "a")])
    receiver.faults += [None, *[Status(status)] * 10]
    with following(command, receiver) as run:
        arrives(receiver, "a")
        service.add([now(20, "b")])
        assert run.wait(60) == 1
        assert b"AE-RECEIVER-REFUSED: " in run.stderr.read()

    receiver.faults.clear()
    assert shipped_later(command, receiver) == ["b"]


def test_an_end_is_refused(command: Command, receiver: Receiver) -> None:
    done = ship(command, receiver, "--follow", "--end", "2026-01-01")

    assert "--follow has no end" in refused(done, "AE-SETTINGS")
