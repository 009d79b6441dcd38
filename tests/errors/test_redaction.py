"""The access token leaves the process only in the Authorization header, in any run.

`run` looks for the token in what each run leaves.
"""

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors.catalogue import CATALOGUE
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.errors.redaction import MASK
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.config.test_settings import GOOD
from tests.config.test_surroundings import run_in_shell
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.errors.test_masking import TOKEN, fresh_redaction  # noqa: F401 - a fixture
from tests.running import Run, run
from tests.singer.test_stopping import Start, start, wait_for_log  # noqa: F401 - a fixture

ECHOES: dict[str, dict[str, Any]] = {
    "errCode": {"code": 403, "err_code": f"Bearer {TOKEN}"},
    "msg": {"code": 400, "msg": f"no {TOKEN} {quote(TOKEN, safe='').lower()}"},
    "msg that is cut": {"code": 400, "msg": "x" * 290 + TOKEN},
    "Location": {"code": 302, "location": f"https://e.example/?t={quote(TOKEN, safe='')}"},
    "Retry-After": {"code": 429, "retry_after": TOKEN.replace("\\", "")},
    "long Retry-After": {"code": 503, "retry_after": "99999", "msg": TOKEN},
    "lower case": {"code": 403, "msg": f"no {TOKEN.lower()}"},
    "upper case": {"code": 403, "err_code": TOKEN.upper()},
}


@pytest.mark.parametrize("level", ["DEBUG", "INFO"])
@pytest.mark.parametrize("where", ECHOES)
def test_an_echo_in_an_error_is_masked(
    where: str, level: str, service: Service, sync: Sync
) -> None:
    """In each part of a response that a line shows, at any log level."""
    service.access_token = TOKEN
    service.add_faults([Fault(kind="status", **ECHOES[where])])
    done = sync(access_token=TOKEN, max_retries=0, environment={"LOGLEVEL": level})
    assert only_error(done)
    assert TOKEN.lower()[:12] not in done.log.lower()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-be"])
def test_an_echo_in_utf_16_is_masked(encoding: str, service: Service, sync: Sync) -> None:
    """Read as UTF-8, it has NUL bytes between its letters, which a line shows as escapes."""
    service.access_token = TOKEN
    body = f"<p>Bearer {TOKEN}</p>".encode(encoding)
    service.add_faults([Fault(kind="body", text=body)])
    done = sync(access_token=TOKEN, max_retries=0)
    assert "p\\x00a\\x00t" not in only_error(done)
    assert TOKEN[:12] not in re.sub(r"(\\x00)+", "", done.log)


@pytest.mark.parametrize("given", ["Bearer:TOKEN", "TOKEN.", "<TOKEN>;"])
def test_a_token_with_other_characters_around_it_is_masked(
    given: str, service: Service, sync: Sync
) -> None:
    """They are a mistake in the configuration; the service may echo the token without them."""
    service.add_faults([Fault(kind="status", code=401, msg="unknown: acme_pat_secret-name")])
    done = sync(access_token=given.replace("TOKEN", "acme_pat_secret-name"))
    assert f"unknown: {MASK}" in only_error(done)


@pytest.mark.parametrize("quote_mark", ['"', "'"])
def test_a_token_of_another_kind_in_quotes_is_masked(quote_mark: str, sync: Sync) -> None:
    """Without `pat_` it is known by its setting alone."""
    wrong = {"access_token": f"{quote_mark}of-another-kind{quote_mark}", "of-another-kind": 1}
    done = sync(**wrong)
    assert "has quotes around the token" in only_error(done)
    assert f"'{MASK}' is not a setting" in done.log
    assert "of-another-kind" not in done.log


@pytest.mark.parametrize(
    "settings_of",
    [
        lambda url: {"action_types": ["workspace_create", "acme_pat_secret-name"]},
        lambda url: {"base_url": f"{url}/acme_pat_secret-name"},
        lambda url: {"base_url": f"{url}/ACME_PAT_SECRET-NAME/x"},
        lambda url: {"base_url": f"{url}/a%2Facme%5Fpat%5Fsecret-name"},
    ],
)
def test_a_token_in_a_url_is_masked_in_the_debug_log(
    settings_of: Callable[[str], dict[str, Any]],
    service: Service,
    settings: dict[str, Any],
    sync: Sync,
) -> None:
    """Libraries log the URL of each request, which contains these settings."""
    done = sync(environment={"LOGLEVEL": "DEBUG"}, **settings_of(settings["base_url"]))
    assert "GET /" in done.log
    assert "secret-name" not in done.log.lower()
    service.violations.clear()  # the sandbox does not know these paths


def test_a_cursor_that_echoes_is_masked_in_the_debug_log(service: Service, sync: Sync) -> None:
    """Libraries log the URL of each request, with the cursor percent-encoded."""
    service.access_token = TOKEN
    page = json.dumps({"auditEvents": [], "nextCursor": TOKEN}).encode()
    service.add_faults([Fault(kind="body", text=page, when="1")])
    done = sync(access_token=TOKEN, concurrency=1, environment={"LOGLEVEL": "DEBUG"})
    assert f"cursor={MASK} HTTP" in done.log  # to its last character
    service.violations.clear()  # the cursor was none of the sandbox's


@pytest.mark.parametrize("formatter", ["ConsoleFormatter", "StructuredFormatter"])
def test_a_log_of_ones_own_is_masked(
    formatter: str, service: Service, sync: Sync, tmp_path: Path
) -> None:
    """With handlers and a file set up by SINGER_SDK_LOG_CONFIG."""
    page = json.dumps({"auditEvents": [], "nextCursor": service.access_token}).encode()
    service.add_faults([Fault(kind="body", text=page, when="1")])
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "f": {"()": f"singer_sdk.logging.{formatter}"},
            "console": {"()": "singer_sdk.logging.ConsoleFormatter"},
        },
        "handlers": {
            "file": {
                "class": "logging.FileHandler",
                "formatter": "f",
                "filename": str(tmp_path / "tap.log"),
            },
            "stderr": {"class": "logging.StreamHandler", "formatter": "console"},
        },
        "root": {"level": "DEBUG", "handlers": ["file", "stderr"]},
    }
    (tmp_path / "log.json").write_text(json.dumps(config))  # YAML holds JSON
    environment = {"SINGER_SDK_LOG_CONFIG": str(tmp_path / "log.json")}
    sync(concurrency=1, environment=environment)
    service.violations.clear()  # the cursor was none of the sandbox's
    written = (tmp_path / "tap.log").read_text()
    assert f"cursor={MASK}" in written
    Run(b"", written, 1).check_discreet([service.access_token])


def test_an_unexpected_error_shows_no_token(service: Service, settings: dict[str, Any]) -> None:
    """Neither its line nor its traceback, down to the cause."""
    breaking = (
        "from tap_audit_events import __main__\n"
        "from tap_audit_events.service import client\n"
        "def fail(self, *_):\n"
        "    raise ZeroDivisionError('Bearer ' + self._settings.access_token)\n"
        "client.Client._query = fail\n"
        "__main__.main()\n"
    )
    names = {f"TAP_AUDIT_EVENTS_{name.upper()}": value for name, value in settings.items()}
    done = subprocess.run(
        [sys.executable, "-c", breaking, "--config", "ENV"],
        env={**os.environ, **names},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"AE-DEFECT: {CATALOGUE['AE-DEFECT'].summary} (Zero" in done.stderr
    assert f"\nZeroDivisionError: Bearer {MASK}\n" in done.stderr
    Run(done.stdout.encode(), done.stderr, 1).check_discreet([service.access_token])


@pytest.mark.parametrize(
    "swapped",
    [
        {"acme_pat_secret-name": "access_token"},
        {"access_token": GOOD["organization_id"], "organization_id": "acme_pat_secret-name"},
        {"access_token": "organization_id", "acme_pat_secret-name": 1},
        {"access_token": None, "acces_token": "acme_pat_secret-name"},
        {"start_date": "acme_pat_secret-name"},
        {"user_agent": "acme_pat_secret-name\n"},
        {"access_token": "Bearer acme_pat_secret-name"},
        {"access_token": "acme_pat_secret-name\n", "acme_pat_secret-name": True},
        {"access_token": '"acme_pat_secret-name"', "start_date": "acme_pat_secret-name"},
        {"access_token": "'acme_pat_secret-name' "},
        {"access_token": None, "access_token_file": "acme_pat_secret-name"},
        {"access_token": None, "access_token_file": "/run/Acme_pat_secret-name"},
        {"access_token": None, "access_token_file": "'acme_pat_secret-name'"},
        {"access_token": "acme_pat_secret-name", "access_token_file": "acme_pat_secret-name"},
        {"access_token": "abcdefgh/secret-name", "access_token_file": "abcdefgh/secret-name"},
        {"action_types": ["acme_pat_secret-name"]},
        {"action_types": ["workspace_create", "acme_pat_secret-name", 5]},
        {"action_types": "workspace_create,acme_pat_secret-name"},
        {"base_url": "https://acme_pat_secret-name"},
        {"base_url": "https://acme_pat_secret-name.localhost:1/"},
        {"base_url": "https://Acme_PAT_Secret-name.localhost:1"},
        {"base_url": "https://127.0.0.1:1/acme_pat_secret-name"},
        {"base_url": "https://127.0.0.1:1/acme%5Fpat%5Fsecret-name/x"},
        {"base_url": "https://127.0.0.1:1/ACME_PAT_SECRET-NAME"},
        {"base_url": "acme_pat_secret-name"},
        {"user_agent": "token=acme_pat_secret-name;"},
        {"stream_map_config": "acme_pat_a/secret-name"},
        {"stream_maps": {"acme_pat_secret-name": {"id": "("}}},
        {"stream_maps": {"audit_events": {"acme_pat_secret-name": "("}}},
    ],
)
def test_a_token_in_a_wrong_place_of_the_settings_is_not_shown(swapped: dict[str, Any]) -> None:
    """As a name, as the value of another setting, in quotes, in a URL, or with extra words."""
    unreachable = {"base_url": "https://127.0.0.1:1", "max_retries": 0}
    done = run(GOOD | unreachable | swapped, environment={"LOGLEVEL": "DEBUG"})
    assert "secret-name" not in done.log.lower()
    assert "AE-" in done.log


@pytest.mark.parametrize(
    "name", ["a-secret-name", "'a-secret-name'", "secret-name.txt", "base64/secret-name=="]
)
def test_a_name_in_place_of_a_path_is_not_shown(name: str) -> None:
    """Even if it does not look like a token of the service."""
    done = run(GOOD | {"access_token": None, "access_token_file": name})
    expected = (
        "names a file that cannot be read: No such file or directory; a relative path starts at the"
        " folder in which the command was started"
    )
    assert only_error(done) == f"AE-SETTINGS: access_token_file {expected}"
    assert "secret-name" not in done.log


@pytest.mark.parametrize(
    "name", ["ACCESS_TOKEN_FILE", "BASE_URL", "START_DATE", "ACTION_TYPES", "PAGE_SIZE", "OTHER"]
)
def test_a_token_in_a_wrong_variable_is_not_shown(name: str) -> None:
    """The environment's settings are masked like those of a file."""
    settings = {**GOOD, "base_url": "https://127.0.0.1:1", "max_retries": 0, "access_token": None}
    environment = {f"TAP_AUDIT_EVENTS_{name}": "acme_pat_secret-name", "LOGLEVEL": "DEBUG"}
    done = run(settings, "--config", "ENV", environment=environment)
    assert "AE-SETTINGS: " in done.log
    assert "secret-name" not in done.log


@pytest.mark.parametrize(
    "arguments",
    ["acme_pat_secret-name", "--acme_pat_secret-name", "--about --format=acme_pat_secret-name"],
)
def test_a_token_on_the_command_line_is_not_shown(arguments: str, tmp_path: Path) -> None:
    """The lines about wrong arguments show them."""
    done = run_in_shell(GOOD, tmp_path, f"TAP {arguments}")
    assert done.exit_code == 2
    assert MASK in done.log
    assert "secret-name" not in done.log


@pytest.mark.parametrize("option", ["--config", "--state", "--catalog"])
def test_a_token_in_place_of_a_path_is_not_shown(option: str) -> None:
    """The error names the file without its path."""
    done = run(GOOD, option, "acme_pat_secret-name")
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
    """Either it may not be any text, or the token is looked for in it."""
    token = GOOD["access_token"]
    with pytest.raises(SettingsError):
        read_settings(GOOD | {name: [token] if "array" in schema["type"] else token})


@pytest.mark.parametrize("changed", [str, str.lower, str.upper])
def test_a_token_with_capitals_is_refused_in_any_case(changed: Callable[[str], str]) -> None:
    """A client may change the case of a URL's host."""
    token = "acme_pat_SeCrEt-name"
    with pytest.raises(SettingsError) as raised:
        read_settings(GOOD | {"access_token": token, "user_agent": changed(token)})
    assert "user_agent contains the access token: remove it from there" in raised.value.lines[0]


def test_a_name_that_only_looks_like_a_token_stays_in_state_and_schema(
    service: Service, sync: Sync
) -> None:
    """It may be an action type or a field; a mask would change what the next run reads."""
    service.add([an_event(action_type="user_pat_created")])
    done = sync(
        action_types=["user_pat_created"],
        stream_maps={"audit_events": {"compat_version": "'1'", "__else__": None, "id": "id"}},
    ).raise_for_exit_code()
    assert done.records == [{"compat_version": "1", "id": "event-1"}]
    schema = next(message for message in done.messages if message["type"] == "SCHEMA")
    assert "compat_version" in schema["schema"]["properties"]
    assert "user_pat_created" in json.dumps(done.state)


def test_objects_do_not_show_the_token(service: Service, settings: dict[str, Any]) -> None:
    """A debugger or a careless log line prints their repr."""
    logger = logging.getLogger("authenticator")
    authenticator = AccessTokenAuthenticator(read_settings(settings), logger)
    tap = TapAuditEvents(config=dict(settings))
    shown = [authenticator, tap, tap.settings, read_settings(settings), *tap.streams.values()]
    assert not [each for each in shown if service.access_token in f"{each!r}{each}"]


def test_the_process_title_does_not_hold_the_token(
    service: Service,
    start: Start,  # noqa: F811
) -> None:
    """Anybody on the machine can list it."""
    service.add_faults([Fault(kind="hang", seconds=300)])
    process = start(forks=False)
    wait_for_log(process, "Reading ")
    title = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    assert b"tap_audit_events" in title
    assert service.access_token.encode() not in title
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM


def test_a_record_is_the_services_own_data(service: Service, sync: Sync) -> None:
    """An event that contains the token is delivered unchanged; STATE does not contain the token."""
    service.add([an_event(id=service.access_token, actor={"name": f"is {service.access_token}"})])
    done = sync().raise_for_exit_code()
    assert done.records[0]["actor"] == {"name": f"is {service.access_token}"}
    assert done.ids == [service.access_token]
    assert service.access_token not in json.dumps(done.state)
