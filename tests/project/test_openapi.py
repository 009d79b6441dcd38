"""openapi.yaml is a valid document, and says the same as the tap and the sandbox."""

import re
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import yaml
from jsonschema import Draft202012Validator, ValidationError

from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.events.instants import EARLIEST
from tap_audit_events.events.schema import COVERAGE_SCHEMA, SCHEMA
from tap_audit_events.extraction.coverage import Coverage
from tap_audit_events.extraction.run_state import to_run_state
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.sandbox.request import DEFAULT_PAGE_SIZE, MAXIMUM_PAGE_SIZE, PARAMETERS
from tests.builders import an_event

DOCUMENT: dict[str, Any] = yaml.safe_load(
    (Path(__file__).resolve().parents[2] / "openapi.yaml").read_text(encoding="utf-8")
)
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
NOT_FILTERS = ("startTime", "endTime", "order", "pageSize", "cursor")
"""Parameters for the range and the pages; the others select events by what they are."""


def fields(schema: dict[str, Any], path: str = "") -> dict[str, dict[str, Any]]:
    """Every field by its path, such as ``actor.id``, with its own schema."""
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rpartition("/")[2]]
    found = {path: schema}
    for name, inner in schema.get("properties", {}).items():
        found |= fields(inner, f"{path}.{name}".lstrip("."))
    return found


STREAM = fields(SCHEMA)
EVENT = fields(SCHEMAS["AuditEvent"])


def judge(event: dict[str, Any]) -> None:
    """Raise ValidationError if an event does not match the document."""
    schema = {"$ref": "#/components/schemas/AuditEvent", "components": DOCUMENT["components"]}
    Draft202012Validator(schema).validate(event)


def test_the_document_is_valid() -> None:
    """By the schema of OpenAPI, and each of its own schemas by that of JSON Schema."""
    schemathesis.openapi.from_dict(DOCUMENT).validate()

    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)


def test_the_stream_has_the_fields_of_the_document() -> None:
    """None is missing and none is made up."""
    assert STREAM.keys() == EVENT.keys()


@pytest.mark.parametrize("path", STREAM)
def test_a_field_of_the_stream_is_that_of_the_document(path: str) -> None:
    """The same type, but for null, and format; what the stream requires, the service gives."""
    ours, theirs = STREAM[path], EVENT[path]
    types = ours["type"] if isinstance(ours["type"], list) else [ours["type"]]

    assert [name for name in types if name != "null"] == [theirs["type"]]
    assert ours.get("format") == theirs.get("format")
    assert {*ours.get("required", [])} <= {*theirs.get("required", [])}


@pytest.mark.parametrize("path", STREAM)
def test_the_values_a_description_lists_are_those_of_the_document(path: str) -> None:
    """The stream has no enum, so that a new value can pass; its descriptions name what is known."""
    listed = re.search(r": ([\w, ]+) or (\w+)\.$", STREAM[path].get("description", ""))
    known = [*listed[1].split(", "), listed[2]] if listed else []

    assert EVENT[path].get("enum", []) == known


@pytest.mark.parametrize(
    ("group", "name"),
    [(path, name) for path, schema in EVENT.items() for name in schema.get("required", [])],
)
def test_an_event_without_a_required_field_does_not_match_the_document(
    group: str, name: str
) -> None:
    """And with all of them it is one."""
    event = an_event()
    judge(event)

    del (event[group] if group else event)[name]

    with pytest.raises(ValidationError, match=f"'{name}' is a required property"):
        judge(event)


@pytest.mark.parametrize(
    ("action_type", "details", "is_one"),
    [
        ("workspace_create", {}, False),
        ("workspace_create", {"fields": {"name": 1}}, False),
        ("workspace_create", {"fields": {"name": "Research"}, "new": [1]}, True),
        ("unheard_of", {}, True),
    ],
)
def test_only_the_details_that_are_shown_have_a_shape(
    action_type: str, details: dict[str, Any], is_one: bool
) -> None:
    """Those of workspace_create."""
    event = an_event(action={"type": action_type, "details": details})

    if is_one:
        judge(event)
    else:
        with pytest.raises(ValidationError):
            judge(event)


def test_tap_and_sandbox_know_the_parameters_of_the_document() -> None:
    """Their names, and how large a page can be."""
    parameters = DOCUMENT["components"]["parameters"]
    size = parameters["pageSize"]["schema"]
    setting = SETTINGS_SCHEMA["properties"]["page_size"]

    operation = DOCUMENT["paths"]["/v1/organizations/{organizationId}/audit_events"]["get"]
    next_page = DOCUMENT["components"]["links"]["nextPage"]["parameters"]

    assert tuple(parameters) == PARAMETERS
    assert [each["$ref"].rpartition("/")[2] for each in operation["parameters"]] == [*PARAMETERS]
    assert [*next_page] == ["path.organizationId", *(f"query.{name}" for name in PARAMETERS)]
    assert (size["default"], size["maximum"]) == (DEFAULT_PAGE_SIZE, MAXIMUM_PAGE_SIZE)
    assert (setting["minimum"], setting["maximum"]) == (size["minimum"], size["maximum"])


def test_each_filter_of_the_document_is_a_setting_and_kept_with_what_was_read() -> None:
    """So that a run with a wider filter knows which events were never requested."""
    filters = [name for name in PARAMETERS if name not in NOT_FILTERS]
    names = {re.sub(r"(?=[A-Z])", "_", name).lower() for name in filters}
    state = to_run_state(Watermark(EARLIEST), organization_id="", action_types=[])

    assert names <= SETTINGS_SCHEMA["properties"].keys()
    assert names <= state.keys()
    assert names <= {*Coverage.__struct_fields__}
    assert names <= COVERAGE_SCHEMA["properties"].keys()
