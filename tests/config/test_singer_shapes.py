"""Catalogs and states of another shape are refused before any request."""

from typing import Any

import pytest

from tap_audit_events.config.singer_shapes import check_catalog
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.sandbox import Service
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.running import Run


@pytest.mark.parametrize(
    ("catalog", "problem"),
    [
        ({}, "The catalog must look like"),
        ({"streams": {}}, "The catalog must look like"),
        ({"streams": []}, "has no stream audit_events"),
        (
            {"streams": [{"tap_stream_id": "audit_events", "schema": {"properties": {"id": 5}}}]},
            "The catalog must look like",
        ),
        ({"streams": [{"tap_stream_id": "audit_events"}]}, "The catalog must look like"),
    ],
)
def test_a_catalog_of_another_shape_is_refused(
    catalog: object, problem: str, service: Service, sync: Sync
) -> None:
    """The tap does not guess what a malformed catalog means."""
    line = only_error(sync(catalog=catalog))
    assert line.startswith("AE-CATALOG: ")
    assert problem in line
    assert service.requests == []


def with_property(schema: object) -> dict[str, Any]:
    properties = {"id": {"type": "string"}, "tags": schema}
    return {"streams": [{"tap_stream_id": "audit_events", "schema": {"properties": properties}}]}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"type": 5},
        {"type": "array", "items": [{"type": "string"}]},
        {"anyOf": [{"type": "string"}, True]},
    ],
)
def test_a_malformed_schema_of_a_property_is_refused(schema: object) -> None:
    """Otherwise the SDK would end the run with a traceback."""
    with pytest.raises(SettingsError, match="must look like"):
        check_catalog(with_property(schema))


def test_the_error_says_where_the_catalog_is_malformed() -> None:
    """A catalog may have thousands of lines, so the error names the path in it."""
    with pytest.raises(SettingsError) as raised:
        check_catalog(with_property({"anyOf": [5]}))
    problem = "streams[0].schema.properties.*.anyOf[0] is a number instead of an object"
    assert f"but {problem}; " in str(raised.value)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": ["array", "null"], "items": {"type": "object", "properties": {"a": {}}}},
        {"type": "array", "items": None},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
    ],
)
def test_a_schema_of_a_property_is_not_changed(schema: object) -> None:
    """Every schema that the SDK can read is accepted."""
    stream = check_catalog(with_property(schema))["streams"][0]
    assert stream["schema"]["properties"]["tags"] == schema


@pytest.mark.parametrize(
    "change",
    [
        {"key_properties": "id"},
        {"replication_key": ["occurredAt"]},
        {"replication_method": {}},
        {"metadata": [{"breadcrumb": [], "metadata": {"selected": "false"}}]},
        {"metadata": [{"breadcrumb": [], "metadata": {"selected-by-default": "false"}}]},
        {"metadata": [{"breadcrumb": ["properties", "id"], "metadata": {"inclusion": "no"}}]},
        {"metadata": [{"breadcrumb": [], "metadata": {"table-key-properties": "id"}}]},
        {"metadata": [{"breadcrumb": [], "metadata": {"replication-method": ["FULL_TABLE"]}}]},
    ],
)
def test_values_of_another_type_are_refused(change: dict[str, Any]) -> None:
    """For example, the text "false" would select a field that somebody deselected."""
    catalog = with_property({"type": "string"})
    catalog["streams"][0] |= change
    with pytest.raises(SettingsError, match="must look like"):
        check_catalog(catalog)


def schema_message(done: Run) -> dict[str, Any]:
    (message,) = [each for each in done.messages if each["type"] == "SCHEMA"]
    return message


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({}, ["id"]),
        ({"key_properties": None}, ["id"]),
        ({"key_properties": ["id"]}, ["id"]),
        ({"key_properties": ["id", "tags"]}, ["id", "tags"]),
        (
            {
                "metadata": [
                    {
                        "breadcrumb": [],
                        "metadata": {"selected": True, "table-key-properties": ["tags"]},
                    }
                ]
            },
            ["tags"],
        ),
    ],
)
def test_a_catalog_without_keys_does_not_remove_the_keys(
    change: dict[str, Any], keys: list[str], sync: Sync
) -> None:
    """Without keys, a target would load late events twice or refuse them."""
    catalog = with_property({"type": "string"})
    catalog["streams"][0] |= change
    assert schema_message(sync(catalog=catalog).raise_for_exit_code())["key_properties"] == keys


def test_an_empty_list_of_keys_removes_the_keys(sync: Sync) -> None:
    """Some targets then append. The keys that --discover wrote into the metadata do not count."""
    catalog = with_property({"type": "string"})
    metadata = {"selected": True, "table-key-properties": ["id"]}
    catalog["streams"][0] |= {
        "key_properties": [],
        "metadata": [{"breadcrumb": [], "metadata": metadata}],
    }
    done = sync(catalog=catalog).raise_for_exit_code()
    assert not schema_message(done).get("key_properties")


OF_PYTHON = {"version": 2, "bookmark": "2024-05-06T08:00:09Z", "ids": []}
"""The beginning of a state of `AuditEvents`, which a state of Airbyte contains too."""


@pytest.mark.parametrize("stream", ["audit_events", "audit_events_coverage"])
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"key_properties": ["nope"]},
            "key_properties of {} name fields that the stream does not have: ",
        ),
        ({"replication_key": "nope"}, "replication_key of {} must be "),
        ({"replication_method": "LOG_BASED"}, "replication_method of {} must be INCREMENTAL or"),
    ],
)
def test_keys_and_methods_that_a_stream_does_not_have_are_refused(
    stream: str, change: dict[str, Any], problem: str, service: Service, sync: Sync
) -> None:
    """This holds for both streams."""
    catalog = with_property({"type": "string"})
    if stream != "audit_events":
        catalog["streams"].append(catalog["streams"][0] | {"tap_stream_id": stream})
    catalog["streams"][-1] |= change
    line = only_error(sync(catalog=catalog))
    assert line.startswith(f"AE-CATALOG: The catalog's {problem.format(stream)}")
    assert service.requests == []


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({"bookmarks": []}, 'must look like {"bookmarks"'),
        (OF_PYTHON, 'must look like {"bookmarks"'),
        ({"organizations": [OF_PYTHON]}, 'must look like {"bookmarks"'),
        ({"type": "STREAM", "stream": {"stream_state": OF_PYTHON}}, 'must look like {"bookmarks"'),
        ({"completed": {"singer_state": {}}}, "has the bookmarks inside 'completed'"),
        ({"bookmarks": {"x": {"partitions": 5}}}, 'must look like {"bookmarks"'),
        ({"bookmarks": {"audit_events": {"partitions": [{}]}}}, 'must look like {"bookmarks"'),
        (
            {"bookmarks": {"x": {"partitions": [{"context": 1}]}}},
            "but bookmarks.*.partitions[0].context is a number instead of an object",
        ),
        ({"bookmarks": {"x": {"a": "\ud800"}}}, "contains half of a surrogate pair"),
        ({"bookmarks": {"audit_events": "2026-01-01T00:00:00Z"}}, 'must look like {"bookmarks"'),
        ({"singer_state": {"bookmarks": {}}}, "has the bookmarks inside 'singer_state'"),
        ({"type": "STATE", "value": {"bookmarks": {}}}, "has the bookmarks inside 'value'"),
        (
            {"bookmarks": {"audit_events": {"replication_key_value": "last week"}}},
            "its time 'last week' is not an RFC 3339 date-time",
        ),
    ],
)
def test_a_state_of_another_shape_is_refused(
    state: object, problem: str, service: Service, sync: Sync
) -> None:
    """A state that cannot be understood is not treated as empty."""
    line = only_error(sync(state=state))
    assert line.startswith("AE-STATE: ")
    assert problem in line
    assert service.requests == []
