"""Catalogs and stream maps as users and other tools write them."""

import json
from typing import Any

import pytest

from tap_audit_events.sandbox import Service
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.singer.test_complete import TEN_EVENTS, TEN_IDS
from tests.singer.test_incremental import state_of


def a_catalog(**metadata: Any) -> dict[str, Any]:
    root = {"breadcrumb": [], "metadata": {"selected": True, **metadata}}
    schema = {"properties": {"id": {"type": "string"}, "occurredAt": {"type": "string"}}}
    stream = {"tap_stream_id": "audit_events", "stream": "other", "schema": schema}
    return {"streams": [stream | {"metadata": [root], "key_properties": ["id"]}]}


@pytest.mark.parametrize("discovered", [{}, {"replication_method": "INCREMENTAL"}])
def test_a_replication_method_in_the_metadata_counts(
    discovered: dict[str, str], service: Service, sync: Sync
) -> None:
    """Some tools write `replication-method` only there, while discovery writes it elsewhere."""
    service.add(TEN_EVENTS)
    catalog = a_catalog(**{"replication-method": "FULL_TABLE"})
    catalog["streams"][0] |= discovered
    done = sync(catalog=catalog, state=state_of("2024-05-06T08:00:09Z")).raise_for_exit_code()
    assert done.ids == TEN_IDS
    assert "bookmark none, as the whole table was read" in done.log
    wrong = sync(catalog=a_catalog(**{"replication-key": "id"}))
    assert "replication_key of audit_events must be occurredAt" in only_error(wrong)


def test_a_catalog_that_selects_nothing_is_warned_about(sync: Sync) -> None:
    """A pipeline that succeeds without ever delivering events would be noticed too late."""
    done = sync(catalog=a_catalog(selected=False)).raise_for_exit_code()
    assert done.warnings == ["The catalog does not select audit_events: nothing is read"]


@pytest.mark.parametrize("name", ["id", "occurredAt"])
def test_a_key_cannot_be_deselected(name: str, service: Service, sync: Sync) -> None:
    """Targets need keys, but a catalog written by hand may not say that they are automatic."""
    service.add(TEN_EVENTS)
    catalog = a_catalog()
    deselected = {"breadcrumb": ["properties", name], "metadata": {"selected": False}}
    catalog["streams"][0]["metadata"].append(deselected)
    done = sync(catalog=catalog).raise_for_exit_code()
    assert all(name in record for record in done.records)
    assert name in done.messages[0]["schema"]["properties"]


@pytest.mark.parametrize(
    ("name", "metadata"),
    [
        ("id", {"inclusion": "automatic"}),
        ("id", {"selected": False}),
        ("context", {"selected": False}),
    ],
)
def test_fields_may_have_metadata_without_the_stream(
    name: str, metadata: dict[str, Any], service: Service, sync: Sync
) -> None:
    """Then the stream, its keys and all fields that are not deselected are selected."""
    service.add(TEN_EVENTS)
    whole = sync().raise_for_exit_code().records
    catalog = a_catalog()
    of_a_field = {"breadcrumb": ["properties", name], "metadata": metadata}
    catalog["streams"][0]["metadata"] = [of_a_field]
    done = sync(catalog=catalog).raise_for_exit_code()
    left_out = {"context"} & {name}
    assert done.records == [
        {field: each[field] for field in each.keys() - left_out} for each in whole
    ]
    (schema,) = [each for each in done.messages if each["type"] == "SCHEMA"]
    assert schema["schema"]["properties"].keys() == {"id", "occurredAt"}


@pytest.mark.parametrize(
    "breadcrumb",
    [
        ["properties", "contxt"],
        ["properties", "actor", "email"],
        ["properties", "actor", "properties", "mail"],
    ],
)
def test_a_deselected_field_that_does_not_exist_is_warned_about(
    breadcrumb: list[str], service: Service, sync: Sync
) -> None:
    """Otherwise a mistyped name would be noticed only in the warehouse, if at all."""
    service.add(TEN_EVENTS)
    catalog = a_catalog()
    deselected = {"breadcrumb": breadcrumb, "metadata": {"selected": False}}
    catalog["streams"][0]["metadata"].append(deselected)
    (warning,) = sync(catalog=catalog).raise_for_exit_code().warnings
    shown = f"'{json.dumps(breadcrumb)}'"
    assert warning.startswith(f"The catalog deselects {shown}, but the schema of audit_events has ")


def test_a_deselected_field_of_the_details_may_have_any_name(service: Service, sync: Sync) -> None:
    """No schema lists the fields of the details; as text, the details have no fields."""
    service.add(TEN_EVENTS)
    breadcrumb = ["properties", "action", "properties", "details", "properties", "fields"]
    catalog = a_catalog()
    deselected = {"breadcrumb": breadcrumb, "metadata": {"selected": False}}
    catalog["streams"][0]["metadata"].append(deselected)
    done = sync(catalog=catalog).raise_for_exit_code()
    assert not done.warnings
    assert not any(record["action"]["details"] for record in done.records)
    (warning,) = sync(catalog=catalog, details_format="string").raise_for_exit_code().warnings
    assert "the schema of audit_events has no such field" in warning


@pytest.mark.parametrize("name", ["contxt", "actor.email"])
@pytest.mark.parametrize("stream", ["audit_events", "copy"])
def test_a_stream_map_that_removes_no_field_is_warned_about(
    stream: str, name: str, service: Service, sync: Sync
) -> None:
    """Stream maps see fields before they are flattened, and only those of the top level."""
    service.add(TEN_EVENTS)
    a_map = {name: None, "context": None, "__source__": "audit_events"}
    if stream != "copy":
        del a_map["__source__"]
    flat = {"flattening_enabled": True, "flattening_max_depth": 1}
    (warning,) = sync(stream_maps={stream: a_map}, **flat).raise_for_exit_code().warnings
    assert warning.startswith(f"stream_maps removes '{name}', but the schema of audit_events has ")
