"""An export into a Delta table in a bucket; `test_histories.py` has what all outputs share."""

import signal
from dataclasses import replace
from uuid import uuid4

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.cli.exported import expected
from tests.cli.failing import EVENTS, SMALL_PAGES, refused
from tests.forking import signal_until_gone
from tests.outputs.delta_table import DeltaBucket
from tests.outputs.object_store import KEY_ID, SECRET, ObjectStore

WAITS = "status:code=429,retry-after=60@{}"


@pytest.fixture
def output(command: Command, store: ObjectStore) -> DeltaBucket:
    return DeltaBucket(command, store)


def test_a_slash_at_the_end_makes_no_difference(output: DeltaBucket, service: Service) -> None:
    service.add(EVENTS[:50])
    output.export().raise_for_exit_code()
    service.add(EVENTS[50:])

    output.command("export", "--to", f"{output.to}/").raise_for_exit_code()

    assert output.events() == expected(EVENTS)


def test_the_store_refuses_the_second_write_of_a_commit(
    output: DeltaBucket, service: Service
) -> None:
    """Both runs have begun with the same version of the table."""
    service.add(EVENTS[:20])
    output.export().raise_for_exit_code()
    service.add(EVENTS[20:])
    service.add_faults([Fault.parse(WAITS.format(len(service.requests) + 5))])
    with output.command.started(*output.arguments, **SMALL_PAGES) as first:
        assert b"Retry 1 of 8" in first.stderr.readline()

        output.export().raise_for_exit_code()

        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 1
        assert first.stderr.read().startswith(b"AE-BUSY: Another run is writing to ")
    assert output.events() == expected(EVENTS)


def test_a_second_signal_ends_a_wait_for_the_store_at_once(
    output: DeltaBucket, service: Service
) -> None:
    """At the first one, the export writes what it has read. The library retries for minutes."""
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAITS.format(5))])
    with output.command.started(*output.arguments, **SMALL_PAGES) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        with output.store.silent():
            assert signal_until_gone(run, signal.SIGTERM) == 128 + signal.SIGTERM


def test_errors_of_the_store_are_one_line_without_credentials(
    output: DeltaBucket, service: Service
) -> None:
    service.add(EVENTS)
    closed, missing = "http://127.0.0.1:1", f"delta:s3://{uuid4()}/a"
    unknown = {"AWS_METADATA_ENDPOINT": closed, "AWS_ENDPOINT_URL": output.store.url}
    without = replace(output.command, environment=unknown)

    with output.store.refusing():
        errors = [refused(output.export())]
    assert "check the credentials" in errors[-1]
    errors.append(refused(output.command("export", "--to", missing)))
    assert "create the bucket" in errors[-1]
    errors.append(refused(without(*output.arguments)))
    assert "set the credentials" in errors[-1]
    errors.append(refused(output.export(AWS_ENDPOINT_URL=closed)))
    assert "check the network" in errors[-1]

    assert not [error for error in errors if KEY_ID in error or SECRET in error or "\x1b" in error]
