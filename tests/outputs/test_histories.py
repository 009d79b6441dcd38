"""Every kind of output through the same history: complete, once, and as it was after a failure."""

import re
import signal
from pathlib import Path

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.cli.exported import (
    EVERY_FORMAT,
    HOSTILE,
    expected,
    exported,
    history,
    without_nulls,
)
from tests.cli.failing import EVENTS, SMALL_PAGES, refused
from tests.outputs.killing import found, ids

WAITS = "status:code=429,retry-after=60@5"
FIRST, NEW = history(100), history(60, start=100)


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(params=EVERY_FORMAT)
def to(request: pytest.FixtureRequest) -> str:
    """The output; its form selects the kind."""
    path: str = request.param
    return path


@pytest.fixture
def extended(to: str) -> tuple[str, ...]:
    """The arguments of an export that adds what is new."""
    return ("export", "--to", to, "--state", "s.json")


@pytest.fixture
def replaced(to: str) -> tuple[str, ...]:
    """The arguments of an export that replaces the output."""
    return ("export", "--to", to)


def old_is_exported(to: str, service: Service, command: Command) -> None:
    """Export some events, unless the output is a folder: one without a state must be new."""
    if not to.endswith("/"):
        service.add(EVENTS[:50])
        command("export", "--to", to).raise_for_exit_code()


def test_the_first_run_exports_every_event_unchanged(
    to: str, replaced: tuple[str, ...], service: Service, command: Command
) -> None:
    service.add(HOSTILE)

    done = command(*replaced, TAP_AUDIT_EVENTS_PAGE_SIZE="2").raise_for_exit_code()

    assert list(map(without_nulls, exported(command.folder / to))) == expected(HOSTILE)
    assert done.stdout == b""
    assert done.log.startswith(f"Exported to {to}: 6 events in ")
    assert command.left_over == []


def test_new_and_late_events_are_added_and_without_any_no_file_changes(
    to: str, extended: tuple[str, ...], service: Service, command: Command
) -> None:
    service.add(FIRST)
    command(*extended).raise_for_exit_code()
    service.add(NEW)
    done = command(*extended).raise_for_exit_code()
    assert done.log.startswith(f"Added to {to}: 60 events in ")
    before = snapshot(command.folder)

    done = command(*extended).raise_for_exit_code()

    assert done.log.startswith(f"Nothing new for {to}: 0 events in ")
    assert snapshot(command.folder) == before
    late = [{**NEW[-1], "id": "late"}]
    service.add(late)
    command(*extended).raise_for_exit_code()
    assert found(command, to) == ids(FIRST + NEW + late)
    assert command.left_over == []


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
    to: str, extended: tuple[str, ...], replaced: tuple[str, ...], command: Command
) -> None:
    command(*extended).raise_for_exit_code()
    assert list(command.folder.iterdir()) == []

    command(*replaced).raise_for_exit_code()
    assert (command.folder / to).exists()
    assert exported(command.folder / to) == []


def test_an_error_in_the_middle_keeps_the_events_before_it_with_a_state(
    to: str, extended: tuple[str, ...], service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=403@5")])

    done = command(*extended, **SMALL_PAGES)

    assert exported(command.folder / to) == expected(EVENTS[:40])
    assert refused(done, "AE-403").endswith(
        f"The 40 events before that are in {to}: the next export continues after them."
    )
    command(*extended, **SMALL_PAGES).raise_for_exit_code()
    assert exported(command.folder / to) == expected(EVENTS)
    assert command.left_over == []


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


def test_a_signal_keeps_the_events_before_it_with_a_state(
    to: str, extended: tuple[str, ...], service: Service, command: Command
) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAITS)])

    with command.started(*extended, **SMALL_PAGES) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 128 + signal.SIGINT
        log = run.stderr.read().decode()

    (count,) = map(int, re.findall(r"The (\d+) events", log))  # as many as the export had received
    assert log == (
        f"AE-STOPPED: Stopped by a signal, SIGINT. The {count} events before that are in"
        f" {to}: the next export continues after them.\n"
    )
    assert 0 < count <= 40
    assert exported(command.folder / to) == expected(EVENTS[:count])
    command(*extended).raise_for_exit_code()
    assert exported(command.folder / to) == expected(EVENTS)


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


def test_a_second_writer_at_the_same_time_is_refused(
    to: str, extended: tuple[str, ...], service: Service, command: Command
) -> None:
    """The first run waits for its fifth page; the second run changes nothing."""
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAITS)])
    with command.started(*extended, **SMALL_PAGES) as first:
        assert b"Retry 1 of 8" in first.stderr.readline()

        done = command(*extended)

        assert refused(done, "AE-BUSY").startswith("AE-BUSY: Another run is writing to ")
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 128 + signal.SIGTERM
    command(*extended).raise_for_exit_code()
    assert found(command, to) == ids(EVENTS)
