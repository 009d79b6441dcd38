"""The access token leaves the process only in the Authorization header, whoever runs it.

`run`, `run_source` and `Command` also look for the token in the output and the log of each run.
"""

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from singer_sdk.singerlib import SchemaMessage, StateMessage

from tap_audit_events import AuditEvents
from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors.exceptions import AuditEventsError
from tap_audit_events.errors.redaction import MASK, MIN_SECRET_LENGTH, register_secret
from tap_audit_events.events.instants import parse_instant
from tap_audit_events.extraction.id_groups import Group
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.singer.messages import MessageWriter
from tap_audit_events.singer.tap import TapAuditEvents
from tests.airbyte.source import run_source
from tests.builders import an_event
from tests.cli.command import Command
from tests.conftest import Sync
from tests.errors.test_redaction import TOKEN
from tests.events.bodies import an_envelope
from tests.extraction.watermarks import bookmark_of, digests_of
from tests.running import Run, forms_of, run
from tests.singer.test_stopping import Start, start, wait_for_log  # noqa: F401 - a fixture

# An echo of the service


def of_tap(settings: Mapping[str, Any], folder: Path) -> str:
    del folder
    done = run(settings, environment={"LOGLEVEL": "DEBUG"})
    assert done.exit_code == 1
    return f"{done.log}{done.stdout.decode()}"


def of_command(settings: Mapping[str, Any], folder: Path) -> str:
    done = Command(folder, dict(settings))("export", "--to", "x.jsonl", LOGLEVEL="DEBUG")
    assert done.exit_code == 1
    return f"{done.log}{done.stdout.decode()}"


def of_source(settings: Mapping[str, Any], folder: Path) -> str:
    del folder
    done = run_source("read", settings)
    assert done.exit_code == 1
    return done.stdout.decode()


def of_python(settings: Mapping[str, Any], folder: Path) -> str:
    del folder
    with pytest.raises(AuditEventsError) as raised:
        list(AuditEvents(**settings).pages())
    return f"{raised.value!r}{raised.value}"


IN_JSON = json.dumps(TOKEN)
ECHOES: dict[str, dict[str, Any]] = {
    "errCode": {"code": 403, "err_code": f"Bearer {TOKEN}"},
    "msg": {"code": 400, "msg": f"no {TOKEN} {quote(TOKEN, safe='').lower()}"},
    "msg that is cut": {"code": 400, "msg": "x" * 290 + TOKEN},
    "Location": {"code": 302, "location": f"https://e.example/?t={quote(TOKEN, safe='')}"},
    "Retry-After": {"code": 429, "retry_after": TOKEN.replace("\\", "")},
    "long Retry-After": {"code": 503, "retry_after": "99999", "msg": TOKEN},
    "page": {"kind": "body", "text": f"<pre>Authorization: Bearer {TOKEN}</pre>".encode()},
    "event": {"kind": "body", "text": an_envelope(b'{"id": "x", "t": %b}' % IN_JSON.encode())},
    "cursor": {"kind": "body", "text": b'{"auditEvents": [], "nextCursor": %b}' % IN_JSON.encode()},
    "many": {"kind": "body", "text": (quote(TOKEN, safe="") * 4000).encode()},
}


@pytest.mark.parametrize("where", ECHOES)
@pytest.mark.parametrize("output_of", [of_tap, of_command, of_source, of_python])
def test_a_token_that_the_service_echoes_is_masked(
    *,
    output_of: Callable[[Mapping[str, Any], Path], str],
    where: str,
    service: Service,
    settings: dict[str, Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each part of the response that an error or the log shows is masked, at any log level."""
    service.access_token = TOKEN
    service.add_faults([Fault(**{"kind": "status"} | ECHOES[where])])
    output = output_of(settings | {"access_token": TOKEN, "max_retries": 0}, tmp_path)
    ours = [each.getMessage() for each in caplog.records if not each.name.startswith("urllib3")]
    text = "\n".join([output, *ours])
    assert "AE-" in text
    assert not [form for form in {*forms_of(TOKEN), TOKEN[:12]} if form in text.lower()]
    service.violations.clear()  # the sandbox did not send this cursor


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
@pytest.mark.parametrize("logger", ["root", "urllib3"])
def test_a_log_that_the_user_has_configured_is_masked(
    logger: str, formatter: str, service: Service, sync: Sync, tmp_path: Path
) -> None:
    """SINGER_SDK_LOG_CONFIG may give handlers to any logger: they show no token either."""
    page = json.dumps({"auditEvents": [], "nextCursor": service.access_token}).encode()
    service.add_faults([Fault(kind="body", text=page, when="1")])
    file = {"class": "logging.FileHandler", "formatter": "f", "filename": str(tmp_path / "log")}
    debug = {"level": "DEBUG", "handlers": ["file", *(["stderr"] if logger == "root" else [])]}
    console = {"class": "logging.StreamHandler", "formatter": "console"}
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "f": {"()": f"singer_sdk.logging.{formatter}"},
            "console": {"()": "singer_sdk.logging.ConsoleFormatter"},
        },
        "handlers": {"file": file, "stderr": console},
        "loggers": {"urllib3": debug} if logger == "urllib3" else {},
        "root": {"level": "INFO", "handlers": ["stderr"]} if logger == "urllib3" else debug,
    }
    (tmp_path / "log.json").write_text(json.dumps(config))  # JSON is valid YAML
    sync(concurrency=1, environment={"SINGER_SDK_LOG_CONFIG": str(tmp_path / "log.json")})
    service.violations.clear()  # the sandbox did not send this cursor
    written = (tmp_path / "log").read_text()
    assert f"cursor={MASK}" in written
    Run(b"", written, 1).check_discreet([service.access_token])


# Failures of the program

DEFECT = """
import logging, sys
from {package} import __main__
from tap_audit_events.service import client
def fail(self, *_):
    logging.getLogger('urllib3').warning('a library logs %s', self.settings.access_token)
    raise ZeroDivisionError('Bearer ' + self.settings.access_token)
client.Client._query = fail
sys.exit(__main__.main())
"""
AT_START = """
import logging, sys
from {package} import __main__
from tap_audit_events.errors.redaction import register_secret
def fail(*_, **__):
    register_secret('{token}')
    raise ZeroDivisionError('Bearer {token}')
logging.captureWarnings = fail
sys.exit(__main__.main())
"""


@pytest.mark.parametrize("program", [DEFECT, AT_START])
@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("tap_audit_events", ["--config", "ENV"]),
        ("tap_audit_events.cli", ["count", "--by", "day"]),
        ("tap_audit_events.airbyte", ["read", "--config", "config", "--catalog", "catalog"]),
    ],
)
def test_a_traceback_shows_no_token(
    *,
    package: str,
    arguments: list[str],
    program: str,
    service: Service,
    settings: dict[str, Any],
    tmp_path: Path,
) -> None:
    """It is masked in the log of libraries too, and in a traceback that the interpreter prints."""
    (tmp_path / "config").write_text(json.dumps(settings))
    stream = {"stream": {"name": "audit_events"}, "sync_mode": "full_refresh"}
    (tmp_path / "catalog").write_text(json.dumps({"streams": [stream]}))
    names = {f"TAP_AUDIT_EVENTS_{name.upper()}": value for name, value in settings.items()}
    code = program.format(package=package, token=service.access_token)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **names},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"ZeroDivisionError: Bearer {MASK}" in f"{done.stderr}{done.stdout}"
    assert (f"a library logs {MASK}" in f"{done.stderr}{done.stdout}") == (program is DEFECT)
    assert service.access_token not in f"{done.stderr}{done.stdout}"


def test_objects_do_not_show_the_token(service: Service, settings: dict[str, Any]) -> None:
    """A debugger or a careless log line prints the `repr` of an object."""
    authenticator = AccessTokenAuthenticator(read_settings(settings), logging.getLogger("x"))
    tap = TapAuditEvents(config=dict(settings))
    shown = [authenticator, tap, tap.settings, AuditEvents(**settings), *tap.streams.values()]
    assert not [each for each in shown if service.access_token in f"{each!r}{each}"]


# Messages


def test_an_event_that_contains_the_token_is_delivered_unchanged(
    service: Service, sync: Sync
) -> None:
    """A record is the service's own data; STATE does not contain the token."""
    service.add([an_event(id=service.access_token, actor={"name": f"is {service.access_token}"})])
    done = sync().raise_for_exit_code()
    assert done.records[0]["actor"] == {"name": f"is {service.access_token}"}
    assert done.ids == [service.access_token]
    assert service.access_token not in json.dumps(done.state)


def test_a_name_that_only_looks_like_a_token_stays_in_state_and_schema(
    service: Service, sync: Sync
) -> None:
    """Such a name may be an action type or a field: a mask would change what the next run reads."""
    service.add([an_event(action_type="user_pat_created7")])
    done = sync(
        action_types=["user_pat_created7"],
        stream_maps={"audit_events": {"compat_version7": "'1'", "__else__": None, "id": "id"}},
    ).raise_for_exit_code()
    assert done.records == [{"compat_version7": "1", "id": "event-1"}]
    schema = next(message for message in done.messages if message["type"] == "SCHEMA")
    assert "compat_version7" in schema["schema"]["properties"]
    assert "user_pat_created7" in json.dumps(done.state)


@pytest.mark.usefixtures("no_secrets")
def test_state_and_schema_never_hold_the_token() -> None:
    """The token may be the id of an event or a property in a catalog."""
    register_secret(TOKEN)
    writer = MessageWriter()
    state = {"bookmarks": {"audit_events": {"names": ["1", TOKEN, '","'], "n": 10**30}}}
    schema = SchemaMessage("audit_events", {"properties": {TOKEN: {"description": TOKEN}}}, ["id"])
    lines = [writer.format_message(each).decode() for each in (StateMessage(state), schema)]
    assert json.loads(lines[0])["value"]["bookmarks"]["audit_events"] == {
        "names": ["1", MASK, '","'],
        "n": 10**30,
    }
    assert json.loads(lines[1])["schema"] == {"properties": {MASK: {"description": MASK}}}


@pytest.mark.usefixtures("no_secrets")
def test_digests_in_state_are_never_masked() -> None:
    """A short token may occur in base64; after a mask there, the next run would repeat events."""
    watermark = Watermark(
        parse_instant("2024-05-06T08:00:00Z"),
        [Group(parse_instant("2024-05-06T08:00:00Z"), digests_of(map(str, range(500))))],
        lookback_seconds=300,
    )
    bookmark = bookmark_of(watermark, organization_id="x", action_types=["kept"])
    (entry,) = bookmark["watermark"]
    text = str(max(entry["ids"], key=lambda each: len(str(each))))
    token = max(re.findall("[A-Za-z0-9]+", text), key=len)[:MIN_SECRET_LENGTH]
    register_secret(token)
    state = {"bookmarks": {"audit_events": bookmark | {"note": f"is {token}"}}}
    line = MessageWriter().serialize_message(StateMessage(value=state))
    left = json.loads(line)["value"]["bookmarks"]["audit_events"]
    assert left["watermark"][0]["ids"] == entry["ids"]
    assert left["note"] == f"is {MASK}"
