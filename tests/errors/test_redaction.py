"""In every run, the access token leaves the process only in the Authorization header.

`run` looks for the token in the output and in the log of each run.
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

from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors.catalogue import CATALOGUE
from tap_audit_events.errors.redaction import MASK
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.errors.test_masking import TOKEN, fresh_redaction  # noqa: F401 - a fixture
from tests.running import Run
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
def test_a_token_that_an_error_response_echoes_is_masked(
    where: str, level: str, service: Service, sync: Sync
) -> None:
    """Each part of the response that the log shows is masked, at any log level."""
    service.access_token = TOKEN
    service.add_faults([Fault(kind="status", **ECHOES[where])])
    done = sync(access_token=TOKEN, max_retries=0, environment={"LOGLEVEL": level})
    assert only_error(done)
    assert TOKEN.lower()[:12] not in done.log.lower()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-be"])
def test_a_token_echoed_in_utf_16_or_utf_32_is_masked(
    encoding: str, service: Service, sync: Sync
) -> None:
    """If it is read as UTF-8, NULs stand between its letters, and the log shows them escaped."""
    service.access_token = TOKEN
    body = f"<p>Bearer {TOKEN}</p>".encode(encoding)
    service.add_faults([Fault(kind="body", text=body)])
    done = sync(access_token=TOKEN, max_retries=0)
    assert "p\\x00a\\x00t" not in only_error(done)
    assert TOKEN[:12] not in re.sub(r"(\\x00)+", "", done.log)


@pytest.mark.parametrize(
    "settings_of",
    [
        lambda url: {"action_types": ["workspace_create", "acme_pat_secret-name7x2"]},
        lambda url: {"base_url": f"{url}/acme_pat_secret-name7x2"},
        lambda url: {"base_url": f"{url}/ACME_PAT_SECRET-NAME7X2/x"},
        lambda url: {"base_url": f"{url}/a%2Facme%5Fpat%5Fsecret-name7x2"},
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


def test_a_cursor_that_echoes_the_token_is_masked_in_the_debug_log(
    service: Service, sync: Sync
) -> None:
    """Libraries log the URL of each request, with the cursor percent-encoded."""
    service.access_token = TOKEN
    page = json.dumps({"auditEvents": [], "nextCursor": TOKEN}).encode()
    service.add_faults([Fault(kind="body", text=page, when="1")])
    done = sync(access_token=TOKEN, concurrency=1, environment={"LOGLEVEL": "DEBUG"})
    assert f"cursor={MASK} HTTP" in done.log  # masked to its last character
    service.violations.clear()  # the sandbox did not send this cursor


@pytest.mark.parametrize("formatter", ["ConsoleFormatter", "StructuredFormatter"])
def test_a_log_that_the_user_has_configured_is_masked(
    formatter: str, service: Service, sync: Sync, tmp_path: Path
) -> None:
    """SINGER_SDK_LOG_CONFIG may set up handlers and a log file: they show no token either."""
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
    (tmp_path / "log.json").write_text(json.dumps(config))  # JSON is valid YAML
    environment = {"SINGER_SDK_LOG_CONFIG": str(tmp_path / "log.json")}
    sync(concurrency=1, environment=environment)
    service.violations.clear()  # the sandbox did not send this cursor
    written = (tmp_path / "tap.log").read_text()
    assert f"cursor={MASK}" in written
    Run(b"", written, 1).check_discreet([service.access_token])


def test_an_unexpected_error_shows_no_token(service: Service, settings: dict[str, Any]) -> None:
    """The token is masked in the line with the error's code and in the traceback."""
    breaking = (
        "from tap_audit_events import __main__\n"
        "from tap_audit_events.service import client\n"
        "def fail(self, *_):\n"
        "    raise ZeroDivisionError('Bearer ' + self.settings.access_token)\n"
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


def test_a_name_that_only_looks_like_a_token_stays_in_state_and_schema(
    service: Service, sync: Sync
) -> None:
    """Such a name may be an action type or a field: a mask would change what the next run reads."""
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
    """A debugger or a careless log line prints the `repr` of an object."""
    logger = logging.getLogger("authenticator")
    authenticator = AccessTokenAuthenticator(read_settings(settings), logger)
    tap = TapAuditEvents(config=dict(settings))
    shown = [authenticator, tap, tap.settings, read_settings(settings), *tap.streams.values()]
    assert not [each for each in shown if service.access_token in f"{each!r}{each}"]


def test_the_process_title_does_not_hold_the_token(
    service: Service,
    start: Start,  # noqa: F811
) -> None:
    """Anybody on the machine can list the titles of processes."""
    service.add_faults([Fault(kind="hang", seconds=300)])
    process = start(forks=False)
    wait_for_log(process, "Reading ")
    title = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    assert b"tap_audit_events" in title
    assert service.access_token.encode() not in title
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM


def test_an_event_that_contains_the_token_is_delivered_unchanged(
    service: Service, sync: Sync
) -> None:
    """A record is the service's own data; STATE does not contain the token."""
    service.add([an_event(id=service.access_token, actor={"name": f"is {service.access_token}"})])
    done = sync().raise_for_exit_code()
    assert done.records[0]["actor"] == {"name": f"is {service.access_token}"}
    assert done.ids == [service.access_token]
    assert service.access_token not in json.dumps(done.state)
