"""Every kind of file that an export without a state replaces as a whole, or leaves as it was."""

import signal

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.cli.exported import EVERY_FORMAT, expected, exported, history
from tests.cli.failing import EVENTS, SMALL_PAGES, refused
from tests.outputs.test_histories import WAITS

FIRST, NEW = history(100), history(60, start=100)


@pytest.fixture(params=EVERY_FORMAT)
def to(request: pytest.FixtureRequest) -> str:
    path: str = request.param
    return path


@pytest.fixture
def replaced(to: str) -> tuple[str, ...]:
    """The arguments of an export that replaces the output."""
    return ("export", "--to", to)


def old_is_exported(to: str, service: Service, command: Command) -> None:
    """Export some events, unless the output is a folder: one without a state must be new."""
    if not to.endswith("/"):
        service.add(EVENTS[:50])
        command("export", "--to", to).raise_for_exit_code()


def test_a_second_run_without_a_state_replaces_the_output(
    to: str, replaced: tuple[str, ...], service: Service, command: Command
) -> None:
    service.add(FIRST)
    command(*replaced).raise_for_exit_code()
    service.add(NEW)

    done = command(*replaced)

    if to.endswith("/"):
        assert "is not empty" in refused(done)
    else:
        done.raise_for_exit_code()
        assert exported(command.folder / to) == expected(FIRST + NEW)


def test_without_events_the_output_is_empty_and_with_a_state_there_is_none(
    to: str, replaced: tuple[str, ...], command: Command
) -> None:
    command(*replaced, "--state", "s.json").raise_for_exit_code()
    assert list(command.folder.iterdir()) == []

    command(*replaced).raise_for_exit_code()
    assert (command.folder / to).exists()
    assert exported(command.folder / to) == []


def test_an_error_in_the_middle_changes_nothing_without_a_state(
    to: str, replaced: tuple[str, ...], service: Service, command: Command
) -> None:
    old_is_exported(to, service, command)
    service.add(EVENTS[50:])
    before = exported(command.folder / to)
    service.add_faults([Fault.parse(f"status:code=403@{len(service.requests) + 5}")])

    done = command(*replaced, **SMALL_PAGES)

    assert refused(done, "AE-403").endswith(f" {to} is as it was before.")
    assert exported(command.folder / to) == before
    assert command.left_over == []


def test_a_signal_changes_nothing_without_a_state(
    to: str, replaced: tuple[str, ...], service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAITS)])

    with command.started(*replaced, **SMALL_PAGES) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 128 + signal.SIGTERM
        assert run.stderr.read().decode() == (
            f"AE-STOPPED: Stopped by a signal, SIGTERM. {to} is as it was before.\n"
        )

    assert list(command.folder.iterdir()) == []
