"""A token in the wrong place of the settings or of the command line is not shown."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.errors.redaction import MASK
from tests.config.test_settings import GOOD
from tests.errors.test_errors import only_error
from tests.running import run


@pytest.mark.parametrize(
    "swapped",
    [
        {"acme_pat_secret-name7x2": "access_token"},
        {"access_token": GOOD["organization_id"], "organization_id": "acme_pat_secret-name7x2"},
        {"access_token": None, "acces_token": "acme_pat_secret-name7x2"},
        {"access_token": "Bearer acme_pat_secret-name7x2"},
        {"access_token": '"acme_pat_secret-name7x2"', "start_date": "acme_pat_secret-name7x2"},
        {"access_token": None, "access_token_file": "acme_pat_secret-name7x2"},
        {"access_token": "abcdefgh/secret-name", "access_token_file": "abcdefgh/secret-name"},
        {"action_types": ["workspace_create", "acme_pat_secret-name7x2", 5]},
        {"base_url": "https://Acme_PAT_Secret-name7x2.localhost:1"},
        {"base_url": "https://127.0.0.1:1/acme%5Fpat%5Fsecret-name7x2/x"},
        {"user_agent": "token=acme_pat_secret-name7x2;"},
        {"stream_maps": {"audit_events": {"acme_pat_secret-name7x2": "("}}},
    ],
)
def test_a_token_in_a_wrong_place_of_the_settings_is_not_shown(swapped: dict[str, Any]) -> None:
    """It may be a name, another setting's value, in quotes, in a URL, or next to other words."""
    unreachable = {"base_url": "https://127.0.0.1:1", "max_retries": 0}
    done = run(GOOD | unreachable | swapped, environment={"LOGLEVEL": "DEBUG"})
    assert "secret-name" not in done.log.lower()
    assert "AE-" in done.log


@pytest.mark.parametrize("name", ["ACCESS_TOKEN_FILE", "OTHER"])
def test_a_token_in_a_wrong_variable_is_not_shown(name: str) -> None:
    """Settings from the environment are masked like those from a file."""
    settings = {**GOOD, "base_url": "https://127.0.0.1:1", "max_retries": 0, "access_token": None}
    environment = {f"TAP_AUDIT_EVENTS_{name}": "acme_pat_secret-name7x2", "LOGLEVEL": "DEBUG"}
    done = run(settings, "--config", "ENV", environment=environment)
    assert "AE-SETTINGS: " in done.log
    assert "secret-name" not in done.log


@pytest.mark.parametrize(
    "command",
    [
        "tap_audit_events --config config.json TOKEN",
        "tap_audit_events --about --format=TOKEN",
        "tap_audit_events.cli count --by=TOKEN",
        "tap_audit_events.airbyte check --config config.json TOKEN",
    ],
)
def test_a_token_on_the_command_line_is_not_shown(command: str, tmp_path: Path) -> None:
    """The error shows the wrong argument, with the token masked."""
    arguments = command.replace("TOKEN", "acme_pat_secret-name7x2").split()
    (tmp_path / "config.json").write_text("{}")
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {1, 2}
    assert MASK in f"{done.stderr}{done.stdout}"
    assert "secret-name" not in f"{done.stderr}{done.stdout}"


@pytest.mark.parametrize("option", ["--config", "--state", "--catalog"])
def test_a_token_in_place_of_a_path_is_not_shown(option: str) -> None:
    """The error shows the file's name, with the token masked."""
    done = run(GOOD, option, "acme_pat_secret-name7x2")
    assert only_error(done).startswith(f"AE-FILE: The {option[2:]} file '{MASK}' cannot be read")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("base_url", f"https://127.0.0.1:1/{GOOD['access_token']}"),
        (
            "base_url",
            f"https://{GOOD['access_token']}.localhost:1".upper().replace("HTTPS", "https"),
        ),
        ("action_types", ["workspace_create", f"x{GOOD['access_token']}"]),
        ("exclude_action_types", [f"x{GOOD['access_token']}"]),
        ("user_agent", f"tap {GOOD['access_token']}"),
    ],
)
def test_a_setting_that_would_send_the_token_is_refused(name: str, value: object) -> None:
    """The token goes into the Authorization header only: not into a URL, or into the state."""
    line = only_error(run(GOOD | {name: value}))
    assert line == f"AE-SETTINGS: {name} contains the access token: remove it from there"


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        (name, schema)
        for name, schema in SETTINGS_SCHEMA["properties"].items()
        if {"string", "array"} & {*schema["type"]} and not schema.get("secret")
    ],
)
def test_no_other_setting_may_be_the_token(name: str, schema: dict[str, Any]) -> None:
    """A setting either has restricted values or is searched for the token."""
    token = GOOD["access_token"]
    with pytest.raises(SettingsError):
        read_settings(GOOD | {name: [token] if "array" in schema["type"] else token})
