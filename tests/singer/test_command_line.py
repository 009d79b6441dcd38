"""Each option of the SDK's command line works."""

import json
import os
import select
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.sandbox import Service
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


def test_a_schema_test_writes_the_schema_only(service: Service, sync: Sync) -> None:
    """`--test=schema` sends no request."""
    done = sync("--test=schema").raise_for_exit_code()
    assert {message["type"] for message in done.messages} == {"SCHEMA"}
    assert service.requests == []


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
