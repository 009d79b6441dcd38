"""`--quarantine`: each subcommand continues after events that cannot be used."""

import json
from pathlib import Path

import pytest

from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.outputs.killing import NEW, OLD, deaths, found, ids, old_is_exported
from tests.run.test_quarantine import lines

NO_ID = an_event(id="", at=NEW[5]["occurredAt"])
FILE = "quarantine.jsonl"
SAID = "Warning: 1 event cannot be used and is not delivered: it is in "


@pytest.fixture
def path(command: Command) -> Path:
    return command.folder / FILE


def test_an_export_continues_and_says_so(service: Service, command: Command, path: Path) -> None:
    """With the option, or with the setting, which the option overrides."""
    service.add([*OLD, NO_ID, *NEW])
    assert command("export", "--to", "a.jsonl").error.startswith("AE-EVENT: ")
    done = command("export", "--to", "a.jsonl", "--quarantine", FILE).raise_for_exit_code()
    assert found(command, "a.jsonl") == ids([*OLD, *NEW])
    assert len(lines(path)) == 1
    assert done.warnings[-1].startswith(SAID)
    by_setting = {"TAP_AUDIT_EVENTS_QUARANTINE_FILE": "of-setting.jsonl"}
    command("export", "--to", "b.jsonl", **by_setting).raise_for_exit_code()
    command("export", "--to", "c.jsonl", "--quarantine", FILE, **by_setting).raise_for_exit_code()
    assert len(lines(command.folder / "of-setting.jsonl")) == len(lines(path)) == 1


def test_count_and_tail_continue(service: Service, command: Command, path: Path) -> None:
    """Only the other events are counted and printed."""
    service.add([*OLD, NO_ID, *NEW])
    done = command("count", "--by", "day", "--format", "json", "--quarantine", FILE)
    assert sum(row["events"] for row in json.loads(done.stdout)) == len([*OLD, *NEW])
    assert len(lines(path)) == 1
    done = command("tail", "-n", "100", "--quarantine", FILE).raise_for_exit_code()
    assert ids([json.loads(line) for line in done.lines]) == ids([*OLD, *NEW])[-100:]


def test_verify_says_which_events_cannot_be_in_the_table(
    service: Service, command: Command, path: Path
) -> None:
    """They are no difference, but each run says how many there are."""
    service.add([*OLD, NO_ID, *NEW])
    command("export", "--to", "a.jsonl", "--quarantine", FILE).raise_for_exit_code()
    arguments = ("--against", "a.jsonl", "--quarantine", FILE)
    for _ in range(2):
        done = command("verify", *arguments, "--quiet").raise_for_exit_code()
        assert SAID in done.log
    (command.folder / "a.jsonl").write_text("")
    assert command("verify", *arguments).error.startswith("AE-DIFFERENT: ")
    assert len(lines(path)) == 1


@pytest.mark.parametrize("option", ["--to", "--state"])
def test_the_file_must_not_be_an_output(option: str, command: Command) -> None:
    """Lines of the one would be read as lines of the other."""
    named = {"--to": "a.jsonl", "--state": "state.json"} | {option: FILE}
    arguments = [each for pair in named.items() for each in pair]
    done = command("export", *arguments, "--quarantine", f"./{FILE}")
    assert "name the same file" in done.error
    assert command("export", "--to", "b.jsonl", "--quarantine", "").exit_code == 1


def test_verify_does_not_read_the_file_as_a_table(service: Service, command: Command) -> None:
    """Its rows are no events of the table."""
    service.add(OLD)
    (command.folder / "loaded").mkdir()
    done = command("verify", "--against", "loaded", "--quarantine", f"loaded/{FILE}")
    assert "--quarantine is in the folder that --against names" in done.error


def test_an_export_that_is_killed_at_any_step_keeps_the_event_once(
    service: Service, command: Command, path: Path
) -> None:
    """It is in the file before the state covers it, and the next export does not repeat it."""
    arguments = ("export", "--to", "a.jsonl", "--state", "state.json", "--quarantine", FILE)
    old_is_exported(service, command, *arguments)
    service.add([NO_ID])
    for _ in deaths(command, *arguments):
        if found(command, "a.jsonl") != ids(OLD):
            assert len(lines(path)) == 1
        command(*arguments).raise_for_exit_code()
        assert found(command, "a.jsonl") == ids([*OLD, *NEW])
        assert len(lines(path)) == 1
