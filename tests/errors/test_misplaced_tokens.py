"""A token in the wrong place of the settings or of the command line is not shown."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.errors.redaction import MASK
from tap_audit_events.sandbox import Fault, Service
from tests.config.test_settings import GOOD
from tests.config.test_surroundings import run_in_shell
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.errors.test_masking import fresh_redaction  # noqa: F401 - a fixture
from tests.running import run


@pytest.mark.parametrize("given", ["Bearer:TOKEN", "TOKEN.", "<TOKEN>;"])
def test_a_token_with_other_characters_around_it_is_masked(
    given: str, service: Service, sync: Sync
) -> None:
    """They are a mistake in the settings; the service may echo the token without them."""
    service.add_faults([Fault(kind="status", code=401, msg="unknown: acme_pat_secret-name7x2")])
    done = sync(access_token=given.replace("TOKEN", "acme_pat_secret-name7x2"))
    assert f"unknown: {MASK}" in only_error(done)


@pytest.mark.parametrize("quote_mark", ['"', "'"])
def test_a_token_of_another_kind_in_quotes_is_masked(quote_mark: str, sync: Sync) -> None:
    """A token without `pat_` is recognized only by the setting that holds it."""
    wrong = {"access_token": f"{quote_mark}of-another-kind{quote_mark}", "of-another-kind": 1}
    done = sync(**wrong)
    name, value = done.errors
    assert f"'{MASK}' is not a setting" in name
    assert "has quotes around the token" in value
    assert "of-another-kind" not in done.log


@pytest.mark.parametrize(
    "swapped",
    [
        {"acme_pat_secret-name7x2": "access_token"},
        {"access_token": GOOD["organization_id"], "organization_id": "acme_pat_secret-name7x2"},
        {"access_token": "organization_id", "acme_pat_secret-name7x2": 1},
        {"access_token": None, "acces_token": "acme_pat_secret-name7x2"},
        {"start_date": "acme_pat_secret-name7x2"},
        {"user_agent": "acme_pat_secret-name7x2\n"},
        {"access_token": "Bearer acme_pat_secret-name7x2"},
        {"access_token": "acme_pat_secret-name7x2\n", "acme_pat_secret-name7x2": True},
        {"access_token": '"acme_pat_secret-name7x2"', "start_date": "acme_pat_secret-name7x2"},
        {"access_token": "'acme_pat_secret-name7x2' "},
        {"access_token": None, "access_token_file": "acme_pat_secret-name7x2"},
        {"access_token": None, "access_token_file": "/run/Acme_pat_secret-name7x2"},
        {"access_token": None, "access_token_file": "'acme_pat_secret-name7x2'"},
        {"access_token": "acme_pat_secret-name7x2", "access_token_file": "acme_pat_secret-name7x2"},
        {"access_token": "abcdefgh/secret-name", "access_token_file": "abcdefgh/secret-name"},
        {"action_types": ["acme_pat_secret-name7x2"]},
        {"action_types": ["workspace_create", "acme_pat_secret-name7x2", 5]},
        {"action_types": "workspace_create,acme_pat_secret-name7x2"},
        {"base_url": "https://acme_pat_secret-name7x2"},
        {"base_url": "https://acme_pat_secret-name7x2.localhost:1/"},
        {"base_url": "https://Acme_PAT_Secret-name7x2.localhost:1"},
        {"base_url": "https://127.0.0.1:1/acme_pat_secret-name7x2"},
        {"base_url": "https://127.0.0.1:1/acme%5Fpat%5Fsecret-name7x2/x"},
        {"base_url": "https://127.0.0.1:1/ACME_PAT_SECRET-NAME7X2"},
        {"base_url": "acme_pat_secret-name7x2"},
        {"user_agent": "token=acme_pat_secret-name7x2;"},
        {"stream_map_config": "acme_pat_a/secret-name7x2"},
        {"stream_maps": {"acme_pat_secret-name7x2": {"id": "("}}},
        {"stream_maps": {"audit_events": {"acme_pat_secret-name7x2": "("}}},
    ],
)
def test_a_token_in_a_wrong_place_of_the_settings_is_not_shown(swapped: dict[str, Any]) -> None:
    """It may be a name, another setting's value, in quotes, in a URL, or next to other words."""
    unreachable = {"base_url": "https://127.0.0.1:1", "max_retries": 0}
    done = run(GOOD | unreachable | swapped, environment={"LOGLEVEL": "DEBUG"})
    assert "secret-name" not in done.log.lower()
    assert "AE-" in done.log


def test_a_relative_path_of_a_token_file_is_named_as_it_was_tried(tmp_path: Path) -> None:
    """Under cron, the working directory is another one than in a terminal."""
    settings = GOOD | {"access_token_file": "secrets/token"}
    del settings["access_token"]
    (tmp_path / "config.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "tap_audit_events", "--config", "config.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    (line,) = [line for line in done.stderr.splitlines() if "AE-" in line]
    assert line.endswith(
        f"AE-SETTINGS: access_token_file '{tmp_path}/secrets/token' cannot be read: No such file or"
        " directory; a relative path starts at the folder in which the command was started"
    )


@pytest.mark.parametrize(
    "name", ["ACCESS_TOKEN_FILE", "BASE_URL", "START_DATE", "ACTION_TYPES", "PAGE_SIZE", "OTHER"]
)
def test_a_token_in_a_wrong_variable_is_not_shown(name: str) -> None:
    """Settings from the environment are masked like those from a file."""
    settings = {**GOOD, "base_url": "https://127.0.0.1:1", "max_retries": 0, "access_token": None}
    environment = {f"TAP_AUDIT_EVENTS_{name}": "acme_pat_secret-name7x2", "LOGLEVEL": "DEBUG"}
    done = run(settings, "--config", "ENV", environment=environment)
    assert "AE-SETTINGS: " in done.log
    assert "secret-name" not in done.log


@pytest.mark.parametrize(
    "arguments",
    [
        "acme_pat_secret-name7x2",
        "--acme_pat_secret-name7x2",
        "--about --format=acme_pat_secret-name7x2",
    ],
)
def test_a_token_on_the_command_line_is_not_shown(arguments: str, tmp_path: Path) -> None:
    """The error shows the wrong argument, with the token masked."""
    done = run_in_shell(GOOD, tmp_path, f"TAP {arguments}")
    assert done.exit_code == 2
    assert MASK in done.log
    assert "secret-name" not in done.log


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
        ("user_agent", f"tap {GOOD['access_token']}"),
    ],
)
def test_a_setting_that_would_send_the_token_is_refused(name: str, value: object) -> None:
    """The token is sent in the Authorization header only, so not in a URL or another header."""
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


@pytest.mark.parametrize("changed", [str, str.lower, str.upper])
def test_a_setting_that_contains_the_token_in_another_case_is_refused(
    changed: Callable[[str], str],
) -> None:
    """An HTTP client may change the case of a URL's host."""
    token = "acme_pat_SeCrEt-name"
    with pytest.raises(SettingsError) as raised:
        read_settings(GOOD | {"access_token": token, "user_agent": changed(token)})
    assert "user_agent contains the access token: remove it from there" in raised.value.lines[0]
