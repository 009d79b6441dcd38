"""Every kind of output through the same histories: each event is there once, whatever happens."""

import random
import re
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.cli.exported import HOSTILE, expected, history, without_nulls
from tests.cli.failing import EVENTS, SMALL_PAGES, refused, varied
from tests.outputs.killing import ids
from tests.outputs.kind import Kind
from tests.outputs.kinds import KILLS, KINDS

WAITS = "status:code=429,retry-after=60@5"
FIRST, NEW = history(100), history(60, start=100)
NEXT = "the next run continues after them."
SMALL_PARTS = "tests.outputs.small_parts"
PAGES = {"TAP_AUDIT_EVENTS_PAGE_SIZE": "10"}


@pytest.fixture
def output(request: pytest.FixtureRequest, command: Command) -> Kind:
    """A new output of the kind of a row."""
    created: Kind = request.param(request, command)
    return created


each_kind = pytest.mark.parametrize("output", KINDS, indirect=True)


@each_kind
def test_the_first_run_exports_every_event_unchanged(output: Kind, service: Service) -> None:
    service.add(HOSTILE)

    done = output.export(TAP_AUDIT_EVENTS_PAGE_SIZE="2").raise_for_exit_code()

    assert list(map(without_nulls, output.events())) == expected(HOSTILE)
    assert done.stdout == b""
    assert done.log.startswith(f"Added to {output.name}: 6 events in ")
    assert output.left_over == []


@each_kind
def test_new_and_late_events_are_added_and_nothing_is_written_without_any(
    output: Kind, service: Service
) -> None:
    service.add(FIRST)
    output.export().raise_for_exit_code()
    service.add(NEW)
    done = output.export().raise_for_exit_code()
    assert done.log.startswith(f"Added to {output.name}: 60 events in ")
    before = output.snapshot()

    done = output.export().raise_for_exit_code()

    assert done.log.startswith(f"Nothing new for {output.name}: 0 events in ")
    assert output.snapshot() == before
    late = [{**NEW[-1], "id": "late"}]
    service.add(late)
    output.export().raise_for_exit_code()
    assert output.ids() == ids(FIRST + NEW + late)
    assert output.left_over == []


@each_kind
def test_an_error_in_the_middle_keeps_the_events_before_it(output: Kind, service: Service) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=403@5")])

    done = output.export(**SMALL_PAGES)

    assert output.events() == expected(EVENTS[:40])
    assert refused(done, "AE-403").endswith(
        f"The 40 events before that are in {output.name}: {NEXT}"
    )
    output.export(**SMALL_PAGES).raise_for_exit_code()
    assert output.events() == expected(EVENTS)
    assert output.left_over == []


@each_kind
def test_a_signal_keeps_the_events_before_it(output: Kind, service: Service) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAITS)])

    with output.command.started(*output.arguments, **SMALL_PAGES) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 128 + signal.SIGTERM
        log = run.stderr.read().decode()

    (count,) = map(int, re.findall(r"The (\d+) events", log))  # as many as the export had received
    assert log == (
        f"AE-STOPPED: Stopped by a signal, SIGTERM. The {count} events before that are in"
        f" {output.name}: {NEXT}\n"
    )
    assert 0 < count <= 40
    assert output.events() == expected(EVENTS[:count])
    output.export().raise_for_exit_code()
    assert output.events() == expected(EVENTS)
    assert output.left_over == []


@each_kind
def test_a_full_store_keeps_what_it_had_and_the_next_run_continues(
    output: Kind, service: Service
) -> None:
    service.add(EVENTS[:10])
    output.export().raise_for_exit_code()
    service.add(varied(3000))

    with output.full() as export:
        done = export()

    assert "The output cannot be written: " in refused(done)
    assert output.events() == expected(EVENTS[:10])
    assert output.left_over == []
    output.export().raise_for_exit_code()
    assert output.ids() == ids(EVENTS[:10] + varied(3000))


@each_kind
def test_of_two_writers_at_the_same_time_one_is_refused(output: Kind, service: Service) -> None:
    """The first one waits for its fifth page."""
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAITS)])
    with output.command.started(*output.arguments, **SMALL_PAGES) as first:
        assert b"Retry 1 of 8" in first.stderr.readline()

        second = output.export()

        first.send_signal(signal.SIGTERM)
        exit_code, log = first.wait(60), first.stderr.read().decode()
    if output.is_locked:
        assert refused(second, "AE-BUSY").startswith("AE-BUSY: Another run is writing to ")
        assert exit_code == 128 + signal.SIGTERM
    else:
        second.raise_for_exit_code()
        assert exit_code == 1
        assert log.startswith(("AE-EXPORT: ", "AE-BUSY: "))
    output.export().raise_for_exit_code()
    assert output.ids() == ids(EVENTS)
    assert output.left_over == []


@pytest.mark.parametrize(("output", "kills"), KILLS, indirect=["output"])
def test_runs_that_are_killed_at_random_moments_store_each_event_once(
    output: Kind, kills: int, service: Service, record_property: Callable[[str, str], None]
) -> None:
    """They are killed on the same output, one after the other. New events follow when one ends."""
    choose = random.Random(20261129)
    export = partial(output.command.started, *output.arguments, module=SMALL_PARTS, **PAGES)
    added = history(50)
    service.add(added)
    with export() as run:
        assert run.wait(60) == 0  # the first run of a module takes longer
    killed, is_complete, most_seconds = 0, True, 1.0

    while killed < kills:
        if is_complete:
            new = history(choose.choice([1, 50, 200]), start=len(added))
            service.add(new)
            added += new
        started_at = time.monotonic()
        with export() as run:
            try:
                assert run.wait(choose.uniform(0, most_seconds)) == 0, run.stderr.read()
                is_complete, most_seconds = True, time.monotonic() - started_at
            except subprocess.TimeoutExpired:
                run.kill()
                is_complete, most_seconds = False, 1.1 * most_seconds
                killed += 1

    output.export().raise_for_exit_code()
    assert output.events() == expected(added)
    assert output.left_over == []
    record_property(f"Kills that {output.name} survived", f"{killed} ({len(added)} events)")
