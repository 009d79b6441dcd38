"""The files that `audit-events verify` writes: `--repair` and `--list`."""

import csv
import json
import os
import signal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tap_audit_events.cli.loaded.files import SUFFIXES
from tap_audit_events.sandbox import Fault, Service
from tests.cli.command import Command
from tests.cli.verifying import EVENTS, lines, verify
from tests.running import run
from tests.shared_server import SHARED, SharedServer, a_service, an_id

REPAIR_JSON_LINES = ("--repair", "missing.jsonl", "--repair-format", "jsonl")


@pytest.mark.parametrize("format_", ["jsonl", "singer"])
def test_the_repair_has_the_missing_events(
    format_: str, service: Service, command: Command
) -> None:
    """The repair has nothing else, especially no STATE, which would move a bookmark."""
    service.add(EVENTS)
    (command.folder / "a.jsonl").write_bytes(lines(EVENTS[:50] + EVENTS[60:]))

    verify(command, "a.jsonl", "--repair", "r", "--repair-format", format_, exit_code=1)

    text = (command.folder / "r").read_bytes()
    found = [json.loads(line) for line in text.splitlines()]
    if format_ == "singer":
        schema, *records = found
        assert (schema["type"], schema["key_properties"]) == ("SCHEMA", ["id"])
        assert {each["type"] for each in records} == {"RECORD"}
        found = [each["record"] for each in records]
        text = b"".join(json.dumps(each).encode() + b"\n" for each in found)
    assert found == EVENTS[50:60]
    with (command.folder / "a.jsonl").open("ab") as file:
        file.write(text)
    verify(command, "a.jsonl")


def test_a_file_of_an_export_with_state_can_be_repaired_as_documented(
    service: Service, command: Command
) -> None:
    """The file is renamed first, so that the next export does not find it changed."""
    export = ("export", "--to", "audit/events.jsonl", "--state", "audit.state.json")
    audit = command.folder / "audit"
    audit.mkdir()
    service.add(EVENTS[10:150])
    command(*export).raise_for_exit_code()
    service.add(EVENTS[:10])  # too old for the lookback
    service.add(EVENTS[150:])
    until = ("--end", EVENTS[100]["occurredAt"])

    verify(command, "audit/", *until, *REPAIR_JSON_LINES, exit_code=1)
    (audit / "events.jsonl").rename(audit / "until-october.jsonl")
    with (audit / "until-october.jsonl").open("ab") as file:
        file.write((command.folder / "missing.jsonl").read_bytes())
    command(*export).raise_for_exit_code()

    verify(command, "audit/")  # nothing is missing, nothing is there twice


@pytest.mark.parametrize("option", ["--repair", "--list"])
def test_a_pipe_or_a_device_is_not_replaced(
    option: str, service: Service, command: Command
) -> None:
    """Otherwise, it would be a file afterwards, for every program on the machine."""
    service.add(EVENTS)
    (command.folder / "a.jsonl").write_bytes(lines(EVENTS[:50]))
    os.mkfifo(command.folder / "pipe")

    done = command("verify", "--against", "a.jsonl", option, "pipe")

    assert done.error.startswith("AE-EXPORT: ")
    assert "pipe' exists, but is not a file" in done.error
    assert (command.folder / "pipe").is_fifo()


def test_a_second_run_with_the_same_file_at_the_same_time_is_refused(
    service: Service, command: Command
) -> None:
    """The first run waits for its second page. Otherwise, the file would have lines of both."""
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=429,retry-after=60@2")])
    (command.folder / "a.jsonl").write_bytes(lines(EVENTS[:50]))
    (command.folder / "c.json").write_text('{"page_size": 20}')
    arguments = ("verify", "-q", "--against", "a.jsonl", "--list", "r", "--config", "c.json")

    with command.started(*arguments) as first:
        assert b"Retry 1 of 8" in first.stderr.readline()
        done = command(*arguments)
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 128 + signal.SIGTERM

    assert done.exit_code == 1
    assert done.error.startswith("AE-BUSY: Another run is writing to ")
    assert command.left_over == []


@pytest.mark.parametrize(
    ("against", "options", "says"),
    [
        ("a.jsonl", ["--repair", "./a.jsonl"], "--against and --repair name the same file"),
        ("a.jsonl", ["--list", "link"], "--against and --list name the same file"),
        ("a.jsonl", ["--list", "hard"], "--against and --list name the same file"),
        ("a.jsonl", ["--repair", "x", "--list", "x"], "--repair and --list name the same file"),
        (".", ["--repair", "./x.jsonl"], "--repair is in the folder that --against names"),
        *(
            (".", ["--list", f"sub/x{suffix}"], "--list is in the folder that --against names")
            for suffix in SUFFIXES
        ),
    ],
)
def test_nothing_is_written_in_place_of_another_file(
    against: str, options: list[str], says: str, service: Service, command: Command
) -> None:
    """Neither a compared file nor the other output is replaced, and nothing is requested."""
    loaded = command.folder / "a.jsonl"
    loaded.write_bytes(lines(EVENTS[:50]))
    (command.folder / "link").symlink_to(loaded)
    (command.folder / "hard").hardlink_to(loaded)
    before = sorted(command.folder.iterdir())

    done = command("verify", "--against", against, *options)

    assert done.error.startswith(f"AE-EXPORT: {says}")
    assert sorted(command.folder.iterdir()) == before
    assert loaded.read_bytes() == lines(EVENTS[:50])
    assert not service.requests


@pytest.mark.parametrize("option", ["--repair", "--list"])
def test_an_error_names_the_file_that_cannot_be_written(option: str, command: Command) -> None:
    """The error does not name another file of the command line."""
    (command.folder / "a.jsonl").write_bytes(b"")
    done = command("verify", "--against", "a.jsonl", option, "x" * 300)
    assert done.error.startswith("AE-EXPORT: ")
    assert "a.jsonl" not in done.error


def test_a_repair_may_be_in_the_folder_of_the_loaded_files(
    service: Service, command: Command
) -> None:
    """Its name must not end like those of loaded files."""
    service.add(EVENTS)
    (command.folder / "a.jsonl").write_bytes(lines(EVENTS[:50]))

    verify(command, ".", "--repair", "missing.singer", exit_code=1)
    verify(command, ".", exit_code=1)

    messages = (command.folder / "missing.singer").read_bytes().splitlines()
    assert len(messages) == 1 + len(EVENTS[50:])


def test_a_full_temporary_folder_is_reported_in_one_line(
    service: Service, command: Command
) -> None:
    """The events are kept there until it is known which of them are missing."""
    service.add(EVENTS)
    (command.folder / "a.jsonl").write_bytes(lines(EVENTS))
    limited = ["bash", "-c", 'ulimit -f 1; exec "$@"', "bash"]

    done = command.under(limited, "verify", "--against", "a.jsonl", *REPAIR_JSON_LINES)

    assert done.exit_code == 1
    assert done.error.startswith("AE-EXPORT: The output cannot be written: '/")
    assert "audit-events-" in done.error
    assert "File too large" in done.error


@pytest.mark.parametrize("against", ["a.jsonl", "a.duckdb"])
def test_the_lack_of_a_writable_temporary_folder_is_reported_in_one_line(
    against: str, command: Command
) -> None:
    """Python tries several folders, also the current one, with a small file."""
    (command.folder / "a.jsonl").write_bytes(lines(EVENTS))
    (command.folder / "a.duckdb").touch()
    limited = ["bash", "-c", 'ulimit -f 0; exec "$@"', "bash"]

    done = command.under(limited, "verify", "--against", against)

    assert done.exit_code == 1
    assert done.error == (
        "AE-EXPORT: The output cannot be written: no folder for temporary files: set TMPDIR."
        " Fix that, and run the command again."
    )


def a_catalog(settings: dict[str, Any], *left_out: str, stream: bool = True) -> dict[str, Any]:
    """Return the tap's catalog, which deselects fields, or the stream."""
    catalog: dict[str, Any] = json.loads(run(settings, "--discover").stdout)
    (entry,) = (each for each in catalog["streams"] if each["tap_stream_id"] == "audit_events")
    for each in entry["metadata"]:
        each["metadata"]["selected"] = ".".join(each["breadcrumb"][1::2]) not in left_out and stream
    return catalog


MASKED = {"stream_maps": {"audit_events": {"actor": "{'id': md5(actor['id'])}", "context": None}}}


@pytest.mark.parametrize(
    ("more", "left_out"),
    [
        ({"raw_event": True, "details_format": "string"}, None),
        (MASKED, None),
        (
            {"stream_maps": {"audit_events": {"__alias__": "other", "__filter__": "'7' in id"}}},
            None,
        ),
        ({"flattening_enabled": True, "flattening_max_depth": 2}, None),
        ({}, ["actor.email", "context"]),
        (MASKED | {"details_format": "string"}, ["entity", "actor.type"]),
    ],
    ids=["shaped", "masked", "filtered", "flattened", "deselected", "masked and deselected"],
)
def test_the_repair_has_the_messages_of_the_tap(
    more: dict[str, Any],
    left_out: list[str] | None,
    service: Service,
    command: Command,
    settings: dict[str, Any],
) -> None:
    """Whatever settings and a catalog change in the records, they change in the repair too."""
    service.add(EVENTS[:50])
    (command.folder / "c.json").write_text(json.dumps(more))
    (command.folder / "a.jsonl").touch()
    arguments, catalog = ["--config", "c.json", "--repair", "r"], None
    if left_out is not None:
        catalog = a_catalog(settings | more, *left_out)
        (command.folder / "catalog.json").write_text(json.dumps(catalog))
        arguments += ["--catalog", "catalog.json"]

    verify(command, "a.jsonl", *arguments, exit_code=1)

    def without_time(message: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in message.items() if name != "time_extracted"}

    repair = [json.loads(line) for line in (command.folder / "r").read_bytes().splitlines()]
    tap = run(settings | more, catalog=catalog).raise_for_exit_code().messages
    expected = [each for each in tap if each["type"] in {"SCHEMA", "RECORD"}]
    assert len(expected) > 1
    assert list(map(without_time, repair)) == list(map(without_time, expected))


LESS = "id VARCHAR, occurredat TIMESTAMP, action JSON, scope JSON, entity JSON"


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        (f"{LESS}, actor JSON", "context.requestId, context.sessionId, context.requestIp"),
        (f"{LESS}, context JSON, actor__type TEXT, actor__id TEXT", "actor.name, actor.email"),
        (None, "context"),
    ],
    ids=["column", "flattened", "lines"],
)
def test_fields_that_were_not_loaded_are_not_repaired_without_being_named(
    columns: str | None,
    missing: str,
    service: Service,
    command: Command,
    settings: dict[str, Any],
) -> None:
    """The command cannot know what left them out, and does not request anything."""
    service.add(EVENTS)
    against = "a.jsonl"
    less = {name: value for name, value in EVENTS[0].items() if name != "context"}
    (command.folder / against).write_bytes(lines([less]))
    if columns is not None:
        against = "a.duckdb"
        with duckdb.connect(str(command.folder / against)) as connection:
            connection.execute(f"CREATE TABLE audit_events ({columns})")
    catalog = a_catalog(settings, *missing.split(", "))
    (command.folder / "catalog.json").write_text(json.dumps(catalog))

    done = command("verify", "--against", against, "--repair", "r")

    assert done.error.startswith("AE-SETTINGS: ")
    assert f"has no column for '{missing}', which the file of --repair would have" in done.error
    assert "--catalog" in done.error
    assert not (command.folder / "r").exists()
    assert not service.requests
    verify(command, against, "--repair", "r", "--catalog", "catalog.json", exit_code=1)
    record = json.loads((command.folder / "r").read_bytes().splitlines()[1])["record"]
    assert not {*missing.split(", ")} & {*record, *(f"actor.{each}" for each in record["actor"])}


def test_a_table_of_an_export_has_every_field(service: Service, command: Command) -> None:
    """Its columns have other names than those of loaders."""
    service.add(EVENTS)
    command("export", "--to", "a.duckdb").raise_for_exit_code()
    verify(command, "a.duckdb", "--repair", "r")


@pytest.mark.parametrize(
    ("more", "arguments", "says"),
    [
        (
            MASKED,
            ["--repair-format", "jsonl"],
            "jsonl writes whole events, without stream_maps: use",
        ),
        ({}, ["--repair-format", "jsonl", "--catalog", "x"], "whole events, without --catalog"),
        ({"stream_maps": {"audit_events": {"id": "md5(id)"}}}, [], "stream_maps changes id, by"),
        ({"stream_maps": {"audit_events": {"id": "x("}}}, [], "stream_maps changes id, by"),
        ({"flattening_enabled": True}, [], "flattening_max_depth is missing"),
        ({}, ["--catalog", "x"], "The catalog file 'x' cannot be read"),
        ({}, ["--catalog", "c.json"], "The catalog"),
    ],
)
def test_a_repair_that_cannot_be_the_taps_is_refused(
    more: dict[str, Any], arguments: list[str], says: str, service: Service, command: Command
) -> None:
    """Nothing is requested and nothing is written."""
    service.add(EVENTS)
    (command.folder / "c.json").write_text(json.dumps(more))
    (command.folder / "a.jsonl").touch()

    done = command(
        "verify", "--against", "a.jsonl", "--config", "c.json", "--repair", "r", *arguments
    )

    assert done.exit_code == 1
    assert says in done.error
    assert not (command.folder / "r").exists()
    assert not service.requests


def test_a_catalog_without_the_stream_is_refused(
    service: Service, command: Command, settings: dict[str, Any]
) -> None:
    """The tap would write nothing with it."""
    service.add(EVENTS)
    (command.folder / "a.jsonl").touch()
    catalog = a_catalog(settings, stream=False)
    (command.folder / "catalog.json").write_text(json.dumps(catalog))

    done = command("verify", "--against", "a.jsonl", "--repair", "r", "--catalog", "catalog.json")
    alone = command("verify", "--against", "a.jsonl", "--catalog", "catalog.json")

    assert done.error.startswith("AE-CATALOG: The catalog does not select audit_events")
    assert "--catalog is for the file of --repair: give both" in alone.error


def test_a_repair_has_the_stream_maps_of_the_environment(
    service: Service, command: Command
) -> None:
    service.add(EVENTS[:3])
    (command.folder / "a.jsonl").touch()

    command(
        *("verify", "--against", "a.jsonl", "--repair", "r"),
        TAP_AUDIT_EVENTS_STREAM_MAPS='{"audit_events": {"context": "__NULL__"}}',
        TAP_AUDIT_EVENTS_FLATTENING_ENABLED="true",
        TAP_AUDIT_EVENTS_FLATTENING_MAX_DEPTH="1",
        TAP_AUDIT_EVENTS_FLATTENING_SEPARATOR="_",
    )

    record = json.loads((command.folder / "r").read_bytes().splitlines()[1])["record"]
    assert record["actor_email"] == EVENTS[0]["actor"]["email"]
    assert not [name for name in record if name.startswith("context")]


def test_several_organizations_are_verified_and_repaired(tmp_path: Path) -> None:
    """They have events of the same ids. Rows of others are ignored; UUIDs may be in upper case."""
    shared = SharedServer([a_service(number, 10) for number in range(10, 13)])
    with shared.served():
        settings = {
            "base_url": shared.base_url,
            "access_token": SHARED,
            "organizations": json.dumps([{"organization_id": an_id(n)} for n in (10, 11)]),
        }
        command = Command(tmp_path, settings)
        command("export", "--to", "a.duckdb").raise_for_exit_code()
        verify(command, "a.duckdb")
        with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
            connection.execute(
                f"DELETE FROM audit_events WHERE id = 'e0003' AND organization_id = '{an_id(11)}'"  # noqa: S608
            )
            connection.execute(
                f"INSERT INTO audit_events BY NAME SELECT '{an_id(12)}' AS organization_id,"
                " 'x' AS id, now() AS occurred_at, '2024-05-06T08:00:00Z' AS occurred_at_text"
            )
            connection.execute("UPDATE audit_events SET organization_id = upper(organization_id)")
            connection.execute(
                "CREATE TABLE alone AS SELECT id, occurred_at_text FROM audit_events"
            )

        verify(command, "a.duckdb", "--repair", "r", "--list", "l", exit_code=1)
        alone = command("verify", "--against", "a.duckdb", "--table", "alone")

    listed = list(csv.DictReader((tmp_path / "l").read_text().splitlines()))
    assert [(each["kind"], each["organization_id"], each["id"]) for each in listed] == [
        ("missing", an_id(11), "e0003")
    ]
    schema, record = map(json.loads, (tmp_path / "r").read_text().splitlines())
    assert schema["key_properties"] == ["organization_id", "id"]
    assert (record["record"]["organization_id"], record["record"]["id"]) == (an_id(11), "e0003")
    assert "it has no column organization_id" in alone.error


@pytest.mark.parametrize(
    ("name", "form", "says"),
    [
        ("a.parquet", None, "it has no column organization_id"),
        ("folder/a.parquet", None, "it has no column organization_id"),
        ("a.jsonl", "org_{0}", "'e0000' does not say its organization: with several, each needs"),
        ("a.jsonl", "{0:.35}a", "no event is of an organization in the settings: each needs"),
    ],
)
def test_files_that_do_not_say_the_organization_are_refused(
    name: str, form: str | None, says: str, tmp_path: Path
) -> None:
    """Otherwise, all events would count as missing, and a repair would load them again."""
    shared = SharedServer([a_service(number, 10) for number in range(2)])
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    events = [{"id": f"e{n:04}", "occurredAt": "2024-05-06T00:00:00Z"} for n in range(10)]
    if form is None:
        pq.write_table(pa.Table.from_pylist(events), path)
    else:
        scope = {"organizationId": form.format(an_id(0))}
        path.write_bytes(lines(event | {"scope": scope} for event in events))
    with shared.served():
        settings = {
            "base_url": shared.base_url,
            "access_token": SHARED,
            "organizations": json.dumps([{"organization_id": an_id(n)} for n in (0, 1)]),
        }
        arguments = ("--against", name.partition("/")[0], "--repair", "r")

        done = Command(tmp_path, settings)("verify", *arguments)

    assert done.exit_code == 1
    assert done.error.startswith("AE-LOADED: ")
    assert says in done.error
    assert not (tmp_path / "r").exists()
