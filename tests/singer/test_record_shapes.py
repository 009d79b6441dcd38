"""Runs with `details_format` and `raw_event`, through the command line."""

import json
from typing import Any

import pytest

from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.conftest import Sync
from tests.running import Run
from tests.singer.test_command_line import metadata_of

SHAPES: tuple[dict[str, Any], ...] = (
    {},
    {"details_format": "string"},
    {"raw_event": True},
    {"details_format": "string", "raw_event": True},
)
in_both_lanes = pytest.mark.parametrize(
    "lane", [{}, {"stream_maps": {"audit_events": {}}}], ids=["verbatim", "sdk"]
)


def schema_of(run: Run) -> dict[str, Any]:
    (schema,) = (each["schema"] for each in run.messages if each["type"] == "SCHEMA")
    properties: dict[str, Any] = schema["properties"]
    return properties


def discovered(sync: Sync, **settings: Any) -> dict[str, Any]:
    catalog: dict[str, Any] = json.loads(sync("--discover", **settings).stdout)
    return catalog


@in_both_lanes
def test_details_are_json_text(service: Service, sync: Sync, lane: dict[str, Any]) -> None:
    """They are JSON text in the record and a string in the schema."""
    service.add([an_event()])
    run = sync(details_format="string", **lane).raise_for_exit_code()
    (record,) = run.records
    details = record["action"].pop("details")
    assert json.loads(details) == an_event()["action"]["details"]
    assert schema_of(run)["action"]["properties"]["details"]["type"] == ["string", "null"]


@in_both_lanes
def test_the_raw_event_contains_fields_without_a_column(
    service: Service, sync: Sync, lane: dict[str, Any]
) -> None:
    """Fields that the schema does not have are in it with every digit."""
    event = json.dumps(an_event(new={"price": "PRICE"}))
    event = event.replace('"PRICE"', "1.10000000000000000001")
    service.add_raw([event.encode()])
    run = sync(raw_event=True, **lane).raise_for_exit_code()
    (record,) = run.records
    assert record["raw_event"] == event
    assert schema_of(run)["raw_event"]["type"] == ["string", "null"]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_each_event_is_delivered_once_in_every_shape(
    service: Service, sync: Sync, shape: dict[str, Any]
) -> None:
    """STATE does not depend on the shape, which may change between two runs."""
    service.add([an_event(id=f"{n}", at=f"2024-05-06T07:00:0{n // 2}Z") for n in range(8)])
    plain = sync(page_size=3).raise_for_exit_code()
    first = sync(page_size=3, **shape).raise_for_exit_code()
    assert first.ids == plain.ids
    assert first.state == plain.state
    service.add([an_event(id="late", at="2024-05-06T07:00:01.5Z")])
    assert sync(state=first.state, page_size=3).ids == ["late"]
    assert sync(state=plain.state, page_size=3, **shape).ids == ["late"]


@pytest.mark.parametrize(("before", "then"), [*zip(SHAPES, SHAPES[::-1], strict=True)], ids=str)
def test_a_catalog_of_another_shape_can_be_used(
    service: Service, sync: Sync, before: dict[str, Any], then: dict[str, Any]
) -> None:
    """The schema fits the records, whatever the settings were at discovery."""
    service.add([an_event()])
    catalog = discovered(sync, **before)
    metadata_of(catalog)["selected"] = True
    run = sync(catalog=catalog, **then).raise_for_exit_code()
    wanted = sync(**then).raise_for_exit_code()
    assert schema_of(run) == schema_of(wanted)
    assert run.records == wanted.records


def test_a_change_that_a_user_makes_in_the_catalog_stays(service: Service, sync: Sync) -> None:
    """For example, a user adds fields of the details for a loader that makes columns of them."""
    service.add([an_event()])
    catalog = discovered(sync)
    metadata_of(catalog)["selected"] = True
    stream = catalog["streams"][0]
    details = {"type": ["object", "null"], "properties": {"fields": {"type": ["object"]}}}
    stream["schema"]["properties"]["action"]["properties"]["details"] = details
    run = sync(catalog=catalog, raw_event=True).raise_for_exit_code()
    assert schema_of(run)["action"]["properties"]["details"] == details


def test_raw_event_and_details_as_text_can_be_deselected(service: Service, sync: Sync) -> None:
    """They can be deselected like every other field."""
    service.add([an_event()])
    shape = {"details_format": "string", "raw_event": True}
    catalog = discovered(sync, **shape)
    metadata_of(catalog)["selected"] = True
    metadata_of(catalog, "properties", "raw_event")["selected"] = False
    metadata_of(catalog, "properties", "action", "properties", "details")["selected"] = False
    (record,) = sync(catalog=catalog, **shape).raise_for_exit_code().records
    assert record["action"] == {"type": "workspace_create"}
    assert "raw_event" not in record


def test_a_raw_event_that_contains_deselected_fields_is_warned_about(
    service: Service, sync: Sync
) -> None:
    """A user who deselects a field may not want it in the warehouse at all."""
    service.add([an_event()])
    catalog = discovered(sync, raw_event=True)
    metadata_of(catalog)["selected"] = True
    assert not sync(catalog=catalog, raw_event=True).warnings
    metadata_of(catalog, "properties", "actor", "properties", "email")["selected"] = False
    (warning,) = sync(catalog=catalog, raw_event=True).warnings
    assert "raw_event contains the whole event, including the deselected actor.email" in warning
    metadata_of(catalog, "properties", "raw_event")["selected"] = False
    assert not sync(catalog=catalog, raw_event=True).warnings
    maps = {"audit_events": {"context": "__NULL__"}}
    (warning,) = sync(raw_event=True, stream_maps=maps).warnings
    assert "before stream_maps" in warning
