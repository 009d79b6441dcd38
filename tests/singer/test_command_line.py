"""Each option of the SDK's command line works."""

import errno
import json
import os
import select
import shlex
import subprocess
import sys
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.sandbox import Service
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.running import run

THREE_EVENTS = [an_event(id=str(n), at=f"2024-05-06T07:08:0{n}Z") for n in range(3)]


@pytest.fixture(scope="module")
def discovered() -> bytes:
    """The output of discovery, without any setting."""
    return run(None, "--discover").raise_for_exit_code().stdout


@pytest.fixture
def catalog(discovered: bytes) -> dict[str, Any]:
    """The discovered catalog, which a test may change."""
    found: dict[str, Any] = json.loads(discovered)
    return found


def metadata_of(catalog: dict[str, Any], *breadcrumb: str) -> dict[str, Any]:
    """The metadata of a field, which the caller may change."""
    for entry in catalog["streams"][0]["metadata"]:
        if entry["breadcrumb"] == list(breadcrumb):
            found: dict[str, Any] = entry["metadata"]
            return found
    raise LookupError(breadcrumb)


def leaves(schema: dict[str, Any]) -> list[dict[str, Any]]:
    inner = schema.get("properties", {}).values()
    return [leaf for each in inner for leaf in leaves(each)] if inner else [schema]


def test_discovery_lists_the_streams(catalog: dict[str, Any]) -> None:
    """The stream of events is incremental by occurredAt; id and occurredAt are always selected."""
    stream, coverage = catalog["streams"]
    assert coverage["tap_stream_id"] == "audit_events_coverage"
    assert coverage["key_properties"] == ["organization_id", "covered_until"]
    assert stream["tap_stream_id"] == stream["stream"] == "audit_events"
    assert stream["key_properties"] == ["id"]
    assert stream["replication_key"] == "occurredAt"
    assert stream["replication_method"] == "INCREMENTAL"
    for key in ("id", "occurredAt"):
        assert metadata_of(catalog, "properties", key)["inclusion"] == "automatic"


def test_the_schema_is_one_that_every_loader_accepts(catalog: dict[str, Any]) -> None:
    """It has only strings and objects, each with a description, and requires only the keys."""
    schema = catalog["streams"][0]["schema"]
    fields = ["id", "occurredAt", "action", "actor", "context", "scope", "entity"]
    assert list(schema["properties"]) == fields
    assert schema["required"] == ["id", "occurredAt"]
    assert schema["properties"]["id"]["type"] == "string"
    assert schema["properties"]["occurredAt"]["type"] == "string"
    assert schema["properties"]["occurredAt"]["format"] == "date-time"
    details = schema["properties"]["action"]["properties"]["details"]
    assert details["type"] == ["object", "null"]
    assert "properties" not in details
    others = [leaf for leaf in leaves(schema)[2:] if leaf != details]
    assert all(leaf["type"] == ["string", "null"] for leaf in others)
    assert len(others) == 17
    text = json.dumps(schema)
    for word in ("enum", "$ref", "anyOf", "oneOf", '"additionalProperties": false'):
        assert word not in text
    assert text.count('"format"') == 1
    assert text.count('"required"') == 1
    assert text.count('"description"') == 7 + 17 + 1


@pytest.mark.parametrize("form", [[], ["--format=markdown"]])
def test_about_describes_the_settings_without_a_configuration(form: list[str]) -> None:
    """Neither a service nor a token is needed to read about the tap."""
    done = run(None, "--about", *form).raise_for_exit_code()
    for name in SETTINGS_SCHEMA["properties"]:
        assert name in done.stdout.decode()


def test_an_os_error_that_has_nothing_to_do_with_stdout_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is a defect of the tap, and shown as one."""

    def fail(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(TapAuditEvents, "print_version", fail)
    assert isinstance(CliRunner().invoke(TapAuditEvents.cli, []).exception, PermissionError)


def test_the_sdk_does_not_change_the_declared_settings() -> None:
    """The SDK adds settings of its own, while documents are generated from the declared ones."""
    before = deepcopy(SETTINGS_SCHEMA)
    assert CliRunner().invoke(TapAuditEvents.cli, ["--about"]).exit_code == 0
    assert before == SETTINGS_SCHEMA


def test_about_as_json_lists_settings_and_capabilities() -> None:
    """ACTIVATE_VERSION is not one of the capabilities."""
    about = json.loads(run(None, "--about", "--format=json").raise_for_exit_code().stdout)
    assert about["settings"]["properties"].keys() >= SETTINGS_SCHEMA["properties"].keys()
    assert about["capabilities"] == [
        "catalog",
        "state",
        "discover",
        "about",
        "batch",
        "stream-maps",
        "schema-flattening",
        "structured-logging",
    ]


def test_version_prints_name_and_number() -> None:
    assert run(None, "--version").stdout.startswith(b"tap-audit-events v")


def test_the_garbage_collector_hardly_runs_while_the_sdk_is_imported() -> None:
    """It would search the objects of modules hundreds of times, and find nothing."""
    code = """if True:
        import atexit, gc, runpy, sys

        phases = []
        gc.callbacks.append(lambda phase, _: phases.append(phase))
        atexit.register(lambda: print(len(phases), file=sys.stderr))
        sys.argv = ["tap-audit-events", "--version"]
        runpy.run_module("tap_audit_events", run_name="__main__")
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stderr) < 100


def test_a_schema_test_writes_the_schema_only(service: Service, sync: Sync) -> None:
    """`--test=schema` sends no request."""
    done = sync("--test=schema").raise_for_exit_code()
    assert {message["type"] for message in done.messages} == {"SCHEMA"}
    assert service.requests == []


def test_an_unknown_test_is_refused() -> None:
    """A misspelt `--test=schema` must not become a test of the connection."""
    done = CliRunner().invoke(TapAuditEvents.cli, ["--test=shcema"])
    assert done.exit_code == 2
    assert "'shcema' is not one of" in done.output


def test_a_schema_message_names_the_keys(service: Service, sync: Sync) -> None:
    """Targets need the key and the bookmark property."""
    schema = sync().messages[0]
    assert schema["type"] == "SCHEMA"
    assert schema["stream"] == "audit_events"
    assert schema["key_properties"] == ["id"]
    assert schema["bookmark_properties"] == ["occurredAt"]


def test_deselected_fields_are_left_out(
    service: Service, sync: Sync, catalog: dict[str, Any]
) -> None:
    """Selection works at any depth; keys are always selected, and new fields with their parent."""
    service.add([THREE_EVENTS[0] | {"brandNew": 1}])
    metadata_of(catalog)["selected"] = True
    metadata_of(catalog, "properties", "id")["selected"] = False
    metadata_of(catalog, "properties", "context")["selected"] = False
    metadata_of(catalog, "properties", "actor", "properties", "email")["selected"] = False
    done = sync(catalog=catalog).raise_for_exit_code()
    (record,) = done.records
    expected = THREE_EVENTS[0] | {"brandNew": 1}
    del expected["context"]
    expected["actor"] = {k: v for k, v in expected["actor"].items() if k != "email"}
    assert record == expected
    assert "context" not in done.messages[0]["schema"]["properties"]


def test_a_deselected_stream_is_not_read(
    service: Service, sync: Sync, catalog: dict[str, Any]
) -> None:
    """No request is sent for such a stream."""
    metadata_of(catalog)["selected"] = False
    assert sync(catalog=catalog).raise_for_exit_code().records == []
    assert service.requests == []


def test_stream_maps_change_and_filter_records(service: Service, sync: Sync) -> None:
    """Stream maps work on every field; events that they filter out still count as read."""
    service.add(THREE_EVENTS)
    maps = {
        "audit_events": {
            "who": "actor['email']",
            "hash": "md5(id)",
            "context": None,
            "__filter__": "id != '2'",
            "__alias__": "renamed",
        }
    }
    done = sync(stream_maps=maps).raise_for_exit_code()
    assert [record["who"] for record in done.records] == ["zoe@example.com"] * 2
    assert all("context" not in record and len(record["hash"]) == 32 for record in done.records)
    assert {m["stream"] for m in done.messages if m["type"] == "RECORD"} == {"renamed"}
    assert done.bookmark == THREE_EVENTS[2]["occurredAt"]
    assert sync(stream_maps=maps, state=done.state).records == []


def test_flattening_makes_columns_of_nested_fields(service: Service, sync: Sync) -> None:
    """The SDK's flattening works, and every digit of a number is kept."""
    text = json.dumps(THREE_EVENTS[0]).replace('"Research"', "0.10000000000000000000000001", 1)
    service.add_raw([text.encode()])
    done = sync(flattening_enabled=True, flattening_max_depth=2).raise_for_exit_code()
    (record,) = done.records
    assert record["actor__email"] == "zoe@example.com"
    assert record["action__details"] == '{"fields":{"name":0.10000000000000000000000001}}'
    assert "actor__email" in done.messages[0]["schema"]["properties"]
    (record,) = sync(flattening_enabled=True, flattening_max_depth=0).records
    assert record["actor"]["email"] == "zoe@example.com"


def test_a_depth_alone_does_not_flatten_and_is_warned_about(service: Service, sync: Sync) -> None:
    """A depth has no effect without `flattening_enabled`, but is easily taken for sufficient."""
    service.add(THREE_EVENTS)
    depth = {"flattening_max_depth": 2}
    done = sync(**depth).raise_for_exit_code()
    assert done.warnings == ["flattening_max_depth has no effect without flattening_enabled"]
    assert "actor" in done.records[0]
    assert sync(**depth, flattening_enabled=False).raise_for_exit_code().warnings == []


def test_activate_version_messages_are_not_written(service: Service, sync: Sync) -> None:
    """The SDK's setting for them is not a setting of this tap, which warns about it."""
    service.add(THREE_EVENTS)
    done = sync(emit_activate_version_messages=True).raise_for_exit_code()
    assert len(done.records) == 3
    assert {m["type"] for m in done.messages} == {"SCHEMA", "RECORD", "STATE"}
    assert len(done.warnings) == 1


@pytest.mark.parametrize(
    ("option", "kilobytes"), [("--discover", 0), ("--discover", 16), ("--about", 0)]
)
def test_a_full_disk_is_an_error_of_one_line(
    option: str, kilobytes: int, settings: dict[str, Any], tmp_path: Path
) -> None:
    """This holds for output that is not a message, even if only the end of it does not fit."""
    file = shlex.quote(str(tmp_path / "x"))
    limited = ["bash", "-c", f'ulimit -f {kilobytes} && exec "$@" > {file}', "-"]
    quiet = {"PYTHONWARNINGS": "ignore"}  # libraries warn about the limit
    buffered = {"PYTHONUNBUFFERED": ""}
    error = only_error(run(settings, option, under=limited, environment=quiet | buffered))
    assert error.startswith("AE-OUTPUT: The tap cannot write to stdout: File too large. ")


def test_everything_is_written_to_a_pipe_that_does_not_block(
    service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    """A parent process may set up such a pipe and read it slowly."""
    service.add([an_event(id=f"{n}", x="y" * 2000) for n in range(100)])
    (tmp_path / "config.json").write_text(json.dumps(settings))
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    command = [sys.executable, "-m", "tap_audit_events", "--config", str(tmp_path / "config.json")]
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.DEVNULL) as process:
        while select.select([], [writing], [], 0)[1] and process.poll() is None:
            time.sleep(0.01)  # until the pipe is full
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            records = sum(b'"RECORD"' in line for line in pipe)
    assert (process.returncode, records) == (0, 100)


def test_help_says_what_the_tap_does() -> None:
    """The first sentence says what the tap writes, and where."""
    shown = run(None, "--help").raise_for_exit_code().stdout.decode()
    assert "Write the audit events of an organization to stdout, as Singer messages." in shown
