"""Settings from several files and from the environment."""

import json
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.config.environment import settings_of
from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.config.sdk_settings import OF_THE_TAP
from tap_audit_events.config.settings import override, read_settings
from tap_audit_events.sandbox import Service
from tests.builders import ORGANIZATION_ID
from tests.config.test_settings import GOOD, TOKEN
from tests.conftest import Sync
from tests.running import run

ALL_SETTINGS = [*SETTINGS_SCHEMA["properties"], *OF_THE_TAP]


def test_several_files_and_the_environment_are_merged(service: Service, sync: Sync) -> None:
    """The environment replaces a file's settings, and its texts are read in the settings' types."""
    environment = {
        "TAP_AUDIT_EVENTS_PAGE_SIZE": "7",
        "TAP_AUDIT_EVENTS_REQUEST_TIMEOUT_SECONDS": "2.5",
        "TAP_AUDIT_EVENTS_ACTION_TYPES": '["a", "b"]',
        "TAP_AUDIT_EVENTS_START_DATE": "2026-01-31T00:00:00Z",
    }
    sync("--config", "ENV", environment=environment, page_size=3).raise_for_exit_code()
    (request,) = service.requests
    assert request.params["pageSize"] == "7"
    assert request.params["actionTypes"] == "a,b"
    assert request.params["startTime"] == "2026-01-31T00:00:00Z"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"access_token": TOKEN}, {"access_token_file": "/nowhere/token"}),
        ({"access_token_file": "/nowhere/token"}, {"access_token": TOKEN}),
        (
            {"organization_id": ORGANIZATION_ID},
            {"organizations": [{"organization_id": ORGANIZATION_ID}]},
        ),
        ({"organizations": []}, {"organization_id": ORGANIZATION_ID}),
    ],
)
def test_a_later_source_replaces_the_other_setting_of_a_pair(
    earlier: dict[str, Any], later: dict[str, Any], tmp_path: Path
) -> None:
    """If a later file or the environment sets one of two exclusive settings, the other is unset."""
    wrong = {"page_size": 0}  # so that no request is sent
    config = {name: value for name, value in GOOD.items() if name not in later} | earlier | wrong
    second = tmp_path / "second.json"
    second.write_text(json.dumps(later))
    environment = {
        f"TAP_AUDIT_EVENTS_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in later.items()
    }
    for more in (["--config", str(second)], ["--config", "ENV"]):
        done = run(config, *more, environment=environment)
        assert "page_size" in done.log
        assert "both set" not in done.log


def test_a_null_does_not_replace_the_other_setting_of_a_pair() -> None:
    """A null is treated as unset."""
    later = {"access_token": TOKEN, "access_token_file": None}
    assert read_settings(override(GOOD, later)) == read_settings(GOOD)
    assert override(GOOD, {"access_token_file": None})["access_token"] == TOKEN


def test_the_error_about_a_missing_setting_names_its_variable() -> None:
    """The environment is read only with ``--config ENV``, as the error says."""
    environment = {f"TAP_AUDIT_EVENTS_{name.upper()}": value for name, value in GOOD.items()}
    done = run({}, environment=environment)
    assert len(done.errors) == 3
    for name, line in zip(GOOD, done.errors, strict=True):
        variable = f"TAP_AUDIT_EVENTS_{name.upper()}"
        assert line.endswith(f" (in the environment, with --config ENV: {variable})")


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_variable_is_unset(text: str, service: Service, sync: Sync) -> None:
    """Compose files leave it like this. It holds for each setting, also for those of the SDK."""
    environment = {f"TAP_AUDIT_EVENTS_{name.upper()}": text for name in [*ALL_SETTINGS, "other"]}
    done = sync("--config", "ENV", environment=environment, page_size=7).raise_for_exit_code()
    assert done.warnings == []
    (request,) = service.requests
    assert request.params["pageSize"] == "7"
    assert {"actionTypes", "startTime"}.isdisjoint(request.params)


def test_an_empty_text_in_a_file_is_unset(service: Service, sync: Sync) -> None:
    """Meltano writes it for an empty variable, and platforms for an empty field of a form."""
    needed = ("base_url", "organization_id", "access_token")
    empty = {name: "" for name in ALL_SETTINGS if name not in needed}
    assert sync(**empty).raise_for_exit_code().warnings == []
    assert service.requests[0].params["pageSize"] == "1000"


@pytest.mark.parametrize(
    "name", ["PAGE_SIZE", "REQUEST_TIMEOUT_SECONDS", "MAX_RETRIES", "FLATTENING_MAX_DEPTH"]
)
def test_a_text_instead_of_a_number_in_the_environment_is_refused(name: str) -> None:
    """The error names the setting, like that of any other bad setting."""
    done = run(GOOD, "--config", "ENV", environment={f"TAP_AUDIT_EVENTS_{name}": "many"})
    assert done.exit_code == 1
    assert [line.split()[1].rstrip(":") for line in done.errors] == [name.lower()]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a, b", ["a", "b"]),
        ('["a", "b"]', ["a", "b"]),
        ("null", None),
        ('"a,b"', "a,b"),
        ("'a', 'b'", "'a', 'b'"),
    ],
)
def test_a_list_in_the_environment_is_json_or_has_commas(text: str, found: object) -> None:
    """Docker keeps the quotes in an env file. Such a text is not a list, so it is refused."""
    variables = {"TAP_AUDIT_EVENTS_ACTION_TYPES": "", "TAP_AUDIT_EVENTS_action_types": text}
    assert settings_of(variables) == {"action_types": found}
