"""The definition of the Meltano plugin says what the tap says of itself."""

import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from typing import Any

import pytest
import yaml

from tests.integrations.pipeline import PROJECT
from tests.project.test_documents import generate_module

FOLDER = PROJECT / "plugins" / "extractors"
EXTRACTOR: dict[str, Any] = yaml.safe_load((FOLDER / "tap-audit-events.yml").read_text())
DEPENDS_ON_VERSION = {"user_agent"}
"""Settings whose default changes from release to release; it stays in the tap."""


@cache
def about() -> dict[str, Any]:
    """What the tap says of itself, without a service and without a token."""
    command = [sys.executable, "-m", "tap_audit_events", "--about", "--format=json"]
    finished = subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    described: dict[str, Any] = json.loads(finished.stdout)
    return described


def test_the_definition_has_exactly_the_taps_settings() -> None:
    """Each with its kind, default, title and description. Faker is optional: it is left out."""
    properties = about()["settings"]["properties"]

    assert [_without_placeholder(setting) for setting in EXTRACTOR["settings"]] == [
        _as_meltano_has_it(name, schema)
        for name, schema in properties.items()
        if name != "faker_config"
    ]


def _without_placeholder(setting: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in setting.items() if key != "placeholder"}


def _as_meltano_has_it(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    setting = {
        "name": name,
        "kind": _kind(schema),
        "label": schema["title"],
        "description": schema["description"],
    }
    if _kind(schema) == "options":
        setting["options"] = [{"label": each, "value": each} for each in schema["enum"] if each]
    if schema.get("secret"):
        setting["sensitive"] = True
    if schema.get("default") is not None and name not in DEPENDS_ON_VERSION:
        setting["value"] = schema["default"]
    return setting


def _kind(schema: dict[str, Any]) -> str:
    if schema.get("format") == "date-time":
        return "date_iso8601"
    if "enum" in schema:
        return "options"
    (kind,) = {schema["type"]} if isinstance(schema["type"], str) else {*schema["type"]} - {"null"}
    # Meltano fails to write a `decimal` into a tap's configuration.
    return "integer" if kind == "number" else kind


def test_the_definition_has_exactly_the_taps_capabilities() -> None:
    assert sorted(EXTRACTOR["capabilities"]) == sorted(about()["capabilities"])


def test_the_definition_requires_what_the_tap_requires() -> None:
    """And the token, by value or by file."""
    required = set(about()["settings"]["required"])

    assert [set(group) - required for group in EXTRACTOR["settings_group_validation"]] == [
        {"access_token"},
        {"access_token_file"},
    ]
    assert all(required < set(group) for group in EXTRACTOR["settings_group_validation"])


def test_another_project_installs_the_tap_from_its_repository() -> None:
    """No path: a path would lead to a folder of the other project."""
    urls = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["urls"]

    assert EXTRACTOR["pip_url"] == f"git+{urls['Repository']}.git"
    assert EXTRACTOR["repo"] == urls["Repository"]


def test_this_project_uses_the_definition() -> None:
    """Its `meltano.yml` repeats nothing; Meltano finds the lock file by name and variant."""
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
    """`make docs` was run after the last change to what it says."""
    module = generate_module().plugin_definition
    path = {"definition": module.DEFINITION, "lock": module.LOCK}[form]

    assert path.read_text() == getattr(module, f"as_{form}")()
