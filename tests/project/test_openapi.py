"""openapi.yaml is a valid document, and agrees with the tap and the sandbox."""

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
"""Parameters for the range and the pages; the others filter events by other fields."""


def fields(schema: dict[str, Any], path: str = "") -> dict[str, dict[str, Any]]:
    """Return the schema of every field by its path, such as ``actor.id``."""
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rpartition("/")[2]]
    found = {path: schema}
    for name, inner in schema.get("properties", {}).items():
        found |= fields(inner, f"{path}.{name}".lstrip("."))
    return found


STREAM = fields(SCHEMA)
EVENT = fields(SCHEMAS["AuditEvent"])


def validate(event: dict[str, Any]) -> None:
    """Raise ValidationError if an event does not match the document."""
    schema = {"$ref": "#/components/schemas/AuditEvent", "components": DOCUMENT["components"]}
    Draft202012Validator(schema).validate(event)


def test_the_document_is_valid() -> None:
    """It matches the schema of OpenAPI, and each schema in it matches that of JSON Schema."""
    schemathesis.openapi.from_dict(DOCUMENT).validate()

    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)


def test_the_stream_has_the_fields_of_the_document() -> None:
    """The stream has all fields of the document and no others."""
    assert STREAM.keys() == EVENT.keys()


@pytest.mark.parametrize("path", STREAM)
def test_a_field_of_the_stream_has_the_type_and_format_of_the_document(path: str) -> None:
    """The stream may allow null too, and it requires only fields that the document requires."""
    ours, theirs = STREAM[path], EVENT[path]
    types = ours["type"] if isinstance(ours["type"], list) else [ours["type"]]

    assert [name for name in types if name != "null"] == [theirs["type"]]
    assert ours.get("format") == theirs.get("format")
    assert {*ours.get("required", [])} <= {*theirs.get("required", [])}


@pytest.mark.parametrize("path", STREAM)
def test_the_values_a_description_lists_are_those_of_the_document(path: str) -> None:
    """The stream has no enum, so that new values pass. Its descriptions list the known values."""
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
    """An event with all required fields matches it."""
    event = an_event()
    validate(event)

    del (event[group] if group else event)[name]

    with pytest.raises(ValidationError, match=f"'{name}' is a required property"):
        validate(event)


@pytest.mark.parametrize(
    ("action_type", "details", "is_one"),
    [
        ("workspace_create", {}, False),
        ("workspace_create", {"fields": {"name": 1}}, False),
        ("workspace_create", {"fields": {"name": "Research"}, "new": [1]}, True),
        ("unheard_of", {}, True),
    ],
)
def test_the_document_restricts_only_the_details_of_workspace_create(
    action_type: str, details: dict[str, Any], is_one: bool
) -> None:
    """interface.md does not show the details of any other action type."""
    event = an_event(action={"type": action_type, "details": details})

    if is_one:
        validate(event)
    else:
        with pytest.raises(ValidationError):
            validate(event)


def test_tap_and_sandbox_know_the_parameters_of_the_document() -> None:
    """The names of the parameters and the bounds of the page size are the same."""
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


def test_each_filter_of_the_document_is_a_setting_and_is_kept_in_state_and_coverage() -> None:
    """Thus a run with a wider filter knows which events were never requested."""
    filters = [name for name in PARAMETERS if name not in NOT_FILTERS]
    names = {re.sub(r"(?=[A-Z])", "_", name).lower() for name in filters}
    state = to_run_state(Watermark(EARLIEST), organization_id="", action_types=[])

    assert names <= SETTINGS_SCHEMA["properties"].keys()
    assert names <= state.keys()
    assert names <= {*Coverage.__struct_fields__}
    assert names <= COVERAGE_SCHEMA["properties"].keys()
