"""The definition of the Meltano plugin agrees with the tap's own description."""

import json
import re
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
KINDS = {
    "string": "base_url organization_id access_token access_token_file user_agent"
    " flattening_separator",
    "date_iso8601": "start_date end_date",
    "array": "organizations action_types",
    "integer": "page_size concurrency lookback_seconds request_timeout_seconds max_retries"
    " max_response_megabytes flattening_max_depth flattening_max_key_length",
    "options": "details_format",
    "boolean": "raw_event flattening_enabled",
    "object": "stream_maps stream_map_config batch_config",
}
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


def test_each_setting_has_the_kind_that_meltano_can_pass_on() -> None:
    """A number is an integer, as Meltano fails to write a `decimal` into a configuration."""
    kinds = {name: kind for kind, names in KINDS.items() for name in names.split()}
    assert {each["name"]: each["kind"] for each in SETTINGS} == kinds
    (choice,) = (each["options"] for each in SETTINGS if "options" in each)
    assert [option["value"] for option in choice] == ["object", "string"]


def test_settings_that_hold_a_token_are_sensitive() -> None:
    """Meltano hides them in its lists and logs."""
    hidden = [each["name"] for each in SETTINGS if each.get("sensitive")]
    assert hidden == ["organizations", "access_token"]


def test_the_definition_has_exactly_the_taps_capabilities() -> None:
    assert sorted(EXTRACTOR["capabilities"]) == sorted(about()["capabilities"])


def test_the_definition_requires_what_the_tap_requires() -> None:
    """In addition, it needs an organization and a token or its file, or `organizations`."""
    required = set(about()["settings"]["required"])

    assert [set(group) - required for group in EXTRACTOR["settings_group_validation"]] == [
        {"organization_id", "access_token"},
        {"organization_id", "access_token_file"},
        {"organizations"},
    ]
    assert all(required < set(group) for group in EXTRACTOR["settings_group_validation"])


HOME = "https://github.com/somebody/tap-audit-events"


@pytest.mark.parametrize(
    ("repository", "installed"),
    [(REPOSITORY, "../tap-audit-events"), (HOME, f"git+{HOME}.git")],
)
def test_another_project_installs_the_tap_from_its_home_or_else_from_a_clone(
    repository: str, installed: str
) -> None:
    """There is no home yet; the host in `pyproject.toml` is reserved, so nobody can claim it."""
    assert generator().plugin_definition.pip_url(repository) == installed


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


def test_the_links_of_the_definition_begin_with_the_repository() -> None:
    names = ("repo", "docs", "domain_url", "logo_url")
    assert {EXTRACTOR[name].startswith(REPOSITORY) for name in names} == {True}


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


def test_the_page_names_the_version_of_meltano_that_is_tested() -> None:
    pins = (PROJECT / "requirements" / "meltano.txt").read_text()
    page = (PROJECT / "docs" / "meltano.md").read_text()

    (tested,) = re.findall(r"^meltano==(\S+)", pins, re.MULTILINE)
    assert f"with Meltano {tested}, " in page


@pytest.mark.parametrize("form", ["definition", "lock"])
def test_the_definition_is_up_to_date(form: str) -> None:
    """`make docs` was run after the last change to its contents."""
    module = generator().plugin_definition
    path = {"definition": module.DEFINITION, "lock": module.LOCK}[form]

    assert path.read_text() == getattr(module, f"as_{form}")()
