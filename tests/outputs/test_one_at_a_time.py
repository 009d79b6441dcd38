"""An output has one export at a time."""

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.outputs.killing import OLD, found, ids


@pytest.mark.parametrize("state", [[], ["--state", "other.json"]])
def test_a_file_has_one_export_at_a_time_with_any_state(
    state: list[str], service: Service, command: Command
) -> None:
    """The runs do not share a state file, so only the lock of the output separates them."""
    service.add(OLD)
    service.add_faults([Fault.parse("status:code=429,retry-after=60@1")])
    with command.started("export", "--to", "a.jsonl", "--state", "s.json") as first:
        assert b"Retry 1 of 8" in first.stderr.readline()

        done = command("export", "--to", "a.jsonl", *state)

    assert done.error.startswith("AE-BUSY: Another run is writing to ")


def test_another_export_may_add_to_the_same_folder_meanwhile(
    service: Service, command: Command
) -> None:
    """The other export has a state file of its own."""
    service.add(OLD)
    service.add_faults([Fault.parse("status:code=429,retry-after=60@1")])
    with command.started("export", "--to", "a/", "--state", "s.json") as first:
        assert b"Retry 1 of 8" in first.stderr.readline()

        command("export", "--to", "a/", "--state", "other.json").raise_for_exit_code()

    assert found(command, "a/") == ids(OLD)
