"""The definition of the Meltano plugin agrees with the tap's own description."""

import json
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from referencing import Registry, Resource

from benchmarks.report import generator
from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tests.integrations.pipeline import PROJECT

FOLDER = PROJECT / "plugins" / "extractors"
EXTRACTOR: dict[str, Any] = yaml.safe_load((FOLDER / "tap-audit-events.yml").read_text())
SETTINGS: list[dict[str, Any]] = EXTRACTOR["settings"]
REPOSITORY: str = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["urls"][
    "Repository"
]
SCHEMAS = Path(__file__).parent / "hub_schemas"
HUB = "https://hub.example/"
DEPENDS_ON_VERSION = {"user_agent"}
"""Settings whose default changes from release to release, so that only the tap has it."""


@cache
def about() -> dict[str, Any]:
    """Return the tap's description of itself; this needs no service and no token."""
    command = [sys.executable, "-m", "tap_audit_events", "--about", "--format=json"]
    finished = subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    described: dict[str, Any] = json.loads(finished.stdout)
    return described


def test_the_definition_has_exactly_the_taps_settings() -> None:
    """The tap's own have its order and texts. Of those that the SDK adds, some are listed."""
    described = about()["settings"]["properties"]
    own = SETTINGS_SCHEMA["properties"]
    listed = generator().plugin_definition.TEXTS_OF_THE_SDK
    declared = {name: schema for name, schema in described.items() if name in {*own, *listed}}

    assert [each["name"] for each in SETTINGS] == list(declared)
    assert declared.keys() == own.keys() | listed.keys()
    assert {each["name"]: (each["label"], each["description"]) for each in SETTINGS} == {
        name: listed.get(name) or (schema["title"], schema["description"])
        for name, schema in declared.items()
    }
    assert {each["name"]: each["value"] for each in SETTINGS if "value" in each} == {
        name: schema["default"]
        for name, schema in declared.items()
        if schema.get("default") is not None and name not in DEPENDS_ON_VERSION
    }


def test_settings_that_hold_a_token_are_sensitive() -> None:
    """Meltano hides them in its lists and logs."""
    hidden = [each["name"] for each in SETTINGS if each.get("sensitive")]
    assert hidden == ["organizations", "access_token"]


def test_the_definition_has_exactly_the_taps_capabilities() -> None:
    assert sorted(EXTRACTOR["capabilities"]) == sorted(about()["capabilities"])


def test_the_definition_follows_the_schema_of_meltanos_hub() -> None:
    """And has what the hub shows: label, logo, a link, keywords."""

    def retrieve(uri: str) -> Resource[Any]:
        schema = json.loads((SCHEMAS / uri.removeprefix(HUB)).read_text())
        schema.pop("$id")  # its folders are not those of the references
        return Resource.from_contents(schema)

    schema = {"$ref": f"{HUB}plugin_definitions/extractors.schema.json"}
    registry: Registry[Any] = Registry(retrieve=retrieve)  # type: ignore[call-arg]  # of attrs
    validator = Draft7Validator(schema, registry=registry)
    assert [error.message for error in validator.iter_errors(EXTRACTOR)] == []
    assert {"label", "logo_url", "domain_url", "keywords", "description", "docs"} <= set(EXTRACTOR)
    logo = EXTRACTOR["logo_url"].removeprefix(f"{REPOSITORY}/raw/main/")
    assert (PROJECT / logo).is_file()


def test_this_project_uses_the_definition() -> None:
    """`meltano.yml` has only the name and variant, by which Meltano finds the lock file."""
    meltano = yaml.safe_load((PROJECT / "meltano.yml").read_text())
    (extractor,) = meltano["plugins"]["extractors"]
    lock = FOLDER / f"{extractor['name']}--{extractor['variant']}.lock"

    assert extractor == {
        "name": EXTRACTOR["name"],
        "variant": EXTRACTOR["variant"],
        "pip_url": "-e .",
    }
    assert json.loads(lock.read_text()) == {"plugin_type": "extractors", **EXTRACTOR}


@pytest.mark.parametrize("form", ["definition", "lock"])
def test_the_definition_is_up_to_date(form: str) -> None:
    """`make docs` was run after the last change to its contents."""
    module = generator().plugin_definition
    path = {"definition": module.DEFINITION, "lock": module.LOCK}[form]

    assert path.read_text() == getattr(module, f"as_{form}")()
