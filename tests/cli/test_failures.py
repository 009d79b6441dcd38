"""An error during an export is one line, which says what the output contains."""

import re
import signal

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.cli.exported import EVERY_FORMAT, expected, exported
from tests.cli.failing import EVENTS, SMALL_PAGES, refused


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_an_error_in_the_middle_keeps_the_events_before_it_with_a_state(
    to: str, service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=403@5")])
    arguments = ("export", "--to", to, "--state", "s.json")

    done = command(*arguments, **SMALL_PAGES)

    kept = exported(command.folder / to)
    assert kept == expected(EVENTS[:40])
    assert refused(done, "AE-403").endswith(
        f"The 40 events before that are in {to} and in the state file: the next export continues"
        " after them."
    )
    command(*arguments, **SMALL_PAGES).raise_for_exit_code()
    assert exported(command.folder / to) == expected(EVENTS)
    assert command.left_over == []


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_an_error_in_the_middle_changes_nothing_without_a_state(
    to: str, service: Service, command: Command
) -> None:
    if not to.endswith("/"):
        service.add(EVENTS[:50])
        command("export", "--to", to).raise_for_exit_code()
        service.add(EVENTS[50:])
    else:
        service.add(EVENTS)
    before = exported(command.folder / to)
    requests = len(service.requests)
    service.add_faults([Fault.parse(f"status:code=403@{requests + 5}")])

    done = command("export", "--to", to, **SMALL_PAGES)

    assert refused(done, "AE-403").endswith(f" {to} is as it was before.")
    assert exported(command.folder / to) == before
    assert command.left_over == []


def test_an_error_of_the_first_request_adds_nothing(service: Service, command: Command) -> None:
    service.add_faults([Fault.parse("status:code=401@*")])

    done = command("export", "--to", "a.jsonl", "--state", "s.json")

    assert refused(done, "AE-401").endswith("Nothing was added to a.jsonl.")
    assert list(command.folder.iterdir()) == []


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_a_signal_keeps_the_events_before_it_with_a_state(
    to: str, service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=429,retry-after=60@5")])
    arguments = ("export", "--to", to, "--state", "s.json")

    with command.started(*arguments, **SMALL_PAGES) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 128 + signal.SIGINT
        log = run.stderr.read().decode()

    (count,) = map(int, re.findall(r"The (\d+) events", log))  # as many as the export had received
    assert log == (
        f"AE-STOPPED: Stopped by a signal, SIGINT. The {count} events before that are in"
        f" {to} and in the state file: the next export continues after them.\n"
    )
    assert 0 < count <= 40
    assert exported(command.folder / to) == expected(EVENTS[:count])
    command(*arguments).raise_for_exit_code()
    assert exported(command.folder / to) == expected(EVENTS)


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_a_signal_changes_nothing_without_a_state(
    to: str, service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=429,retry-after=60@5")])

    with command.started("export", "--to", to, **SMALL_PAGES) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 128 + signal.SIGTERM
        assert run.stderr.read().decode() == (
            f"AE-STOPPED: Stopped by a signal, SIGTERM. {to} is as it was before.\n"
        )

    assert list(command.folder.iterdir()) == []
