"""`export --as ocsf`: every kind of output has the events as OCSF, and remembers that."""

import json
from pathlib import Path

import pytest

from tap_audit_events.sandbox import Service
from tests.builders import ORGANIZATION_ID, an_event
from tests.cli.command import Command
from tests.cli.exported import HOSTILE, expected, history, without_nulls
from tests.outputs.kind import Kind
from tests.outputs.test_histories import each_kind
from tests.outputs.test_histories import output as output  # noqa: PLC0414 - a fixture

OCSF = ("--as", "ocsf", "--ocsf-vendor", "Example")


@each_kind
def test_every_event_is_there_as_ocsf(output: Kind, service: Service) -> None:
    """A table has its usual columns, too; a later export adds what is new."""
    service.add(HOSTILE)
    output.export(*OCSF, TAP_AUDIT_EVENTS_PAGE_SIZE="2").raise_for_exit_code()
    new = history(3, start=1000)
    service.add(new)

    output.export(*OCSF).raise_for_exit_code()

    found = sorted(map(json.loads, output.ocsf()), key=lambda each: str(each["metadata"]["uid"]))
    events = sorted(HOSTILE + new, key=lambda each: str(each["id"]))
    assert [json.loads(each["raw_data"]) for each in found] == events
    assert {each["metadata"]["product"]["vendor_name"] for each in found} == {"Example"}
    if ".jsonl" not in output.to:
        stored = sorted(map(without_nulls, output.events()), key=lambda each: str(each["id"]))
        assert stored == sorted(expected(HOSTILE + new), key=lambda each: str(each["id"]))


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        (OCSF, (), "with '--as ocsf', which this run lacks"),
        ((), OCSF, "without '--as ocsf'"),
    ],
)
@each_kind
def test_an_output_keeps_its_form(
    first: tuple[str, ...], then: tuple[str, ...], said: str, output: Kind, service: Service
) -> None:
    service.add(history(3))
    output.export(*first).raise_for_exit_code()
    before = output.snapshot()
    done = output.export(*then)
    assert done.exit_code == 1
    assert any(each in done.error for each in (said, "there is no ocsf", "has other columns"))
    assert output.snapshot() == before


@pytest.mark.parametrize("to", ["e.parquet", "e.duckdb", "e/"])
def test_what_was_exported_can_be_verified(to: str, command: Command, service: Service) -> None:
    service.add(HOSTILE)
    command("export", "--to", to, *OCSF).raise_for_exit_code()
    command("verify", "--against", to).raise_for_exit_code()


def test_a_map_says_which_action_type_is_which_activity(command: Command, service: Service) -> None:
    service.add([an_event(action_type="file_delete")])
    (command.folder / "map.json").write_text('{"file_delete": "delete"}')
    run = ("export", "--to", "e.jsonl", "--as", "ocsf", "--ocsf-map", "map.json")
    command(*run).raise_for_exit_code()
    event = json.loads((command.folder / "e.jsonl").read_text())
    assert (event["activity_id"], event["api"]["operation"]) == (4, "file_delete")
    assert event["metadata"]["tenant_uid"] == ORGANIZATION_ID
    assert event["metadata"]["product"]["vendor_name"] == "Unknown"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": "removed"}', "'map.json': The activity of the action type 'a' is 'removed', but "),
        ('{"a": "read", "a": "delete"}', "'map.json' has the key 'a' more than once"),
        ('["a"]', "'map.json' must contain a JSON object"),
        ('{"a": ', "'map.json' is not JSON: "),
        ("", "'map.json' is empty"),
        (None, "'map.json' cannot be read: No such file or directory"),
    ],
)
def test_a_map_is_checked_before_anything_is_read(
    text: str | None, problem: str, command: Command, service: Service
) -> None:
    """The message names the file, and what is possible."""
    if text is not None:
        (command.folder / "map.json").write_text(text)
    done = command("export", "--to", "e.jsonl", "--as", "ocsf", "--ocsf-map", "map.json")
    assert done.exit_code == 1
    assert done.error.startswith(f"AE-FILE: The OCSF map file {problem}")
    assert not Path(command.folder / "e.jsonl").exists()
    assert service.requests == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--ocsf-vendor", "Example"), "--ocsf-vendor and --ocsf-map need --as ocsf"),
        (("--ocsf-map", "m"), "--ocsf-vendor and --ocsf-map need --as ocsf"),
        (("--as", "ecs"), "'ecs' is not 'ocsf'"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: tuple[str, ...], problem: str, command: Command
) -> None:
    done = command("export", "--to", "e.jsonl", *options)
    assert done.exit_code == 2
    assert problem in done.log


def test_an_empty_vendor_is_refused(command: Command) -> None:
    done = command("export", "--to", "e.jsonl", "--as", "ocsf", "--ocsf-vendor", "")
    assert "AE-SETTINGS: The vendor_name of OCSF events must be a text" in done.error
