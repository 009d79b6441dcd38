"""The specification that ``spec`` prints fits Airbyte's forms and the settings of the source."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tests.airbyte.source import run_source

PROJECT = Path(__file__).resolve().parents[2]
SETTINGS = SETTINGS_SCHEMA["properties"]
FORM_TYPES = {"string", "integer", "number", "boolean", "array"}


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    done = run_source("spec")
    assert done.exit_code == 0
    (found,) = done.of_type("SPEC")
    return dict(found)


@pytest.fixture(scope="module")
def form(spec: dict[str, Any]) -> dict[str, Any]:
    return dict(spec["connectionSpecification"])


def test_each_setting_is_a_field_of_the_form(form: dict[str, Any]) -> None:
    """A field has a title, a description, a position and one type, as forms do not support null.

    It has no keyword of other platforms.
    """
    fields = form["properties"]
    assert [*fields] == [name for name in SETTINGS if name in fields]
    left_out = SETTINGS.keys() - fields.keys()
    assert left_out == {"access_token_file", "quarantine_file"}
    assert [field["order"] for field in fields.values()] == [*range(len(fields))]
    for field in fields.values():
        assert field["type"] in FORM_TYPES
        assert field["title"]
        assert field["description"].endswith(".")
        names = re.findall(r"(?<!/)\b\w+\b", field["description"])
        assert not left_out & {*names}
        assert "The tap" not in field["description"]
        assert not {"secret", "writeOnly"} & field.keys()
        if field["type"] == "array":
            assert field["items"]["type"] in {"string", "object"}


def test_only_the_tokens_are_secret(form: dict[str, Any]) -> None:
    """The token for all organizations is required, as Airbyte's form has no other place for it."""
    item = form["properties"]["organizations"]["items"]["properties"]
    for fields in (form["properties"], item):
        secret = [name for name, field in fields.items() if "airbyte_secret" in field]
        assert secret == ["access_token"]
        assert fields["access_token"]["airbyte_secret"] is True
    assert form["required"] == ["base_url", "access_token"]
    assert "access_token_file" not in item


def test_the_examples_of_the_form_are_valid(form: dict[str, Any]) -> None:
    Draft7Validator.check_schema(form)
    for name, field in form["properties"].items():
        for example in field.get("examples", []):
            Draft7Validator(form["properties"][name]).validate(example)


def test_the_specification_names_the_sync_modes_and_the_page(spec: dict[str, Any]) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert spec["documentationUrl"] == f"{project['urls']['Documentation']}/airbyte.md"
    assert spec["supportsIncremental"] is True
    assert spec["supported_destination_sync_modes"] == ["append", "overwrite", "append_dedup"]
