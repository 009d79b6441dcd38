"""openapi.yaml is a valid document, and agrees with the tap and the sandbox."""

from pathlib import Path
from typing import Any

import pytest
import schemathesis
import yaml
from jsonschema import Draft202012Validator

from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.events.schema import SCHEMA
from tap_audit_events.sandbox.request import DEFAULT_PAGE_SIZE, MAXIMUM_PAGE_SIZE, PARAMETERS

DOCUMENT: dict[str, Any] = yaml.safe_load(
    (Path(__file__).resolve().parents[2] / "openapi.yaml").read_text(encoding="utf-8")
)
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


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
